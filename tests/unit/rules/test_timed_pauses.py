"""A pause that ends by itself: on time, not cut short by another person's shorter one, kept over a restart."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

from bus.messages import Pause, Resume
from rules.core.group import Group
from rules.engine.group_codec import dump_group, load_group
from rules.engine.groups import GroupStore
from rules.engine.pauses import PAUSES
from rules.engine.routing import Routing
from rules.rehearsal.history import load_history
from rules.rehearsal.simulation import at as at_
from tests.unit.rules.builders import (
    Event,
    failover,
    healthy,
    holds,
    moves,
    paused,
    resumed,
    route,
    rule_set,
    said,
    unhealthy,
)

HOME, AWAY = {"a": 1, "b": 0}, {"a": 0, "b": 1}
WELL = (route(HOME), healthy("a", at=0), healthy("b", at=0))


def test_it_ends_by_itself_and_what_waited_is_done() -> None:
    events = (*WELL, paused(at=5, seconds=100), unhealthy("a", at=10))
    assert holds(failover(), *events) == [(10, "Paused")]
    assert moves(failover(), *events) == [(105, AWAY)]


def test_its_hold_says_until_when() -> None:
    (hold, *_) = said(failover(), *WELL, paused(at=5, seconds=100), unhealthy("a", at=10), until=20)[-1:]
    since, until = at_(5).isoformat(), at_(105).isoformat()
    assert hold.what.detail == f"paused by ann since {since} until {until}: upgrade"


def test_a_person_may_resume_before() -> None:
    events = (*WELL, paused(at=5, seconds=100), unhealthy("a", at=10), resumed(at=50))
    assert moves(failover(), *events) == [(50, AWAY)]


def test_that_one_rule_is_resumed_ends_no_global_stop() -> None:
    """A pause of all rules, before or after a pause of one, is not overruled by the end of the other."""
    bad, stop, mine = unhealthy("a", at=10), paused(at=5), paused("web", at=6)
    for pauses in ((stop,), (stop, mine), (paused(at=7), mine), (stop, paused("web", at=6, seconds=300))):
        assert moves(failover(), *WELL, *pauses, bad, resumed("web", at=50)) == []
        assert moves(failover(), *WELL, *pauses, bad, resumed("web", at=50), resumed(at=60)) == [(60, AWAY)]
    assert moves(failover(), *WELL, mine, bad, resumed("web", at=50)) == [(50, AWAY)]
    assert moves(failover(), *WELL, paused("w*", at=6), bad, resumed("web", at=50)) == []
    assert moves(failover(), *WELL, paused("w*", at=6), bad, resumed("w*", at=50)) == [(50, AWAY)]


def test_of_two_pauses_the_one_that_is_left_ends_by_itself() -> None:
    events = (*WELL, paused(at=5, seconds=100), paused("web", at=6), unhealthy("a", at=10), resumed("web", at=50))
    assert moves(failover(), *events) == [(105, AWAY)]


def test_a_restart_between_forgets_no_other_pause() -> None:
    group_store = restarted(stored(*WELL, paused(at=5), paused("web", at=6), unhealthy("a", at=10)))
    group_store.apply([resumed("web", at=50)[1]], at_(50))
    assert [group.paused is not None for group in group_store.groups.values()] == [True]
    (decision,) = group_store.apply([resumed(at=60)[1]], at_(60))
    assert [action.weights for action in decision.actions] == [AWAY]  # type: ignore[union-attr]


def as_0_1_0_stored(*events: Event) -> list[Group]:
    """It did not store of which names a pause was said, but as the key of the pause itself."""
    return [
        replace(one, paused=one.paused and replace(one.paused, pattern=""), also_paused=()) for one in stored(*events)
    ]


def test_a_global_stop_that_0_1_0_stored_is_not_ended_by_the_resume_of_one_rule() -> None:
    group_store = restarted(as_0_1_0_stored(*WELL, paused(at=5), paused("web", at=6), unhealthy("a", at=10)))
    assert group_store.apply([resumed("web", at=50)[1]], at_(50))[0].actions == ()
    (decision,) = group_store.apply([resumed(at=60)[1]], at_(60))
    assert [action.weights for action in decision.actions] == [AWAY]  # type: ignore[union-attr]


def test_a_pause_that_0_1_0_stored_without_its_names_is_ended_by_a_resume() -> None:
    groups = [one for one in as_0_1_0_stored(*WELL, paused("web", at=5)) if one.rule != PAUSES]
    group_store = restarted(groups)
    group_store.apply([resumed("web", at=50)[1]], at_(50))
    assert [group.paused for group in group_store.groups.values()] == [None]


def test_a_global_stop_counts_though_its_clock_is_behind_that_of_who_resumed_one_rule() -> None:
    late = (52, paused(at=49)[1])
    assert moves(failover(), *WELL, paused("web", at=5), resumed("web", at=50), late, unhealthy("a", at=60)) == []
    mine = (52, paused("web", at=49)[1])
    assert moves(failover(), *WELL, paused("web", at=5), resumed("web", at=50), mine, unhealthy("a", at=60)) == [
        (60, AWAY)
    ]
    old = (52, resumed(at=4)[1])  # said before the pause, heard after it
    assert moves(failover(), *WELL, paused(at=5), old, unhealthy("a", at=60)) == []


def test_the_later_end_counts_whichever_command_comes_first() -> None:
    short, long, for_good = paused(at=5, seconds=50), paused("web", at=6, seconds=100), paused("w*", at=7)
    bad = unhealthy("a", at=10)
    for first, second in permutations((short, long)):
        assert moves(failover(), *WELL, (8, first[1]), (8, second[1]), bad) == [(106, AWAY)]
    assert moves(failover(), *WELL, short, for_good, bad) == []
    assert moves(failover(), *WELL, paused(at=1), short, bad) == []


def test_one_that_is_heard_after_its_end_stops_nothing() -> None:
    assert moves(failover(), *WELL, unhealthy("a", at=10), (9, paused(at=2, seconds=3)[1])) == [(10, AWAY)]


def test_a_pause_that_is_given_at_the_end_of_another_counts() -> None:
    late = (106, paused(at=104, seconds=100)[1])
    events = (*WELL, paused(at=5, seconds=100), late, unhealthy("a", at=107))
    assert moves(failover(), *events) == [(204, AWAY)]


def restarted(groups: list[Group]) -> GroupStore:
    """Another process reads what was stored."""
    return GroupStore(Routing(rule_set(failover()).rules), [load_group(dump_group(group)) for group in groups])


def stored(*events: Event) -> list[Group]:
    group_store = GroupStore(Routing(rule_set(failover()).rules))
    pauses = {}
    for at, fact in sorted(events, key=lambda event: event[0]):
        for decision in group_store.apply([fact], at_(at)):
            pauses[decision.group.rule, decision.group.object] = decision.group
    return [*group_store.groups.values(), *(group for group in pauses.values() if group.rule == PAUSES)]


def test_a_restart_forgets_no_deadline() -> None:
    group_store = restarted(stored(*WELL, paused(at=5, seconds=100), unhealthy("a", at=10)))
    assert group_store.next_alarm() == at_(105)
    assert group_store.fire_due(at_(104)) == []
    (decision,) = group_store.fire_due(at_(105))
    assert [action.weights for action in decision.actions] == [AWAY]  # type: ignore[union-attr]


def test_one_that_is_over_is_stored_no_more_and_stops_no_later_rule() -> None:
    group_store = restarted(stored(paused(at=5, seconds=100)))
    group_store.fire_due(at_(105))
    assert (PAUSES, "*") in group_store.dropped


def test_a_later_rule_is_paused_until_the_same_moment() -> None:
    groups = [group for group in stored(paused(at=5, seconds=100), paused(at=6, seconds=20)) if group.rule == PAUSES]
    group_store = restarted(groups)
    for at, fact in [*WELL, unhealthy("a", at=10)]:
        decisions = group_store.apply([fact], at_(max(at, 10)))
    assert decisions[0].group.held is not None
    assert decisions[0].group.held.reason == "Paused"
    (decision,) = group_store.fire_due(at_(105))
    assert [action.weights for action in decision.actions] == [AWAY]  # type: ignore[union-attr]


def test_histories_say_it_so() -> None:
    line = '{"at": 9, "command": {"pause": {"rule": "*", "forSeconds": 600, "by": "ann", "reason": "upgrade"}}}'
    ((at, fact),) = load_history([line], "outage.jsonl").events
    assert (at, fact) == (9, Pause(rule="*", for_seconds=600, by="ann", reason="upgrade", observed_at=at_(9)))
    assert not isinstance(fact, Resume)
