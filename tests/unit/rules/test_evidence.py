"""A window runs out only on evidence from its end or later, and no act goes against the present (decision 21)."""

from __future__ import annotations

from typing import Any

import pytest

from bus.messages import Approve
from rules.core.group import Group
from rules.core.reader import Reader
from rules.engine.decide import Decision, decide
from rules.kinds.traffic.state import TrafficState
from rules.rehearsal.simulation import at
from tests.unit.rules.builders import (
    OBJECT,
    Event,
    backends,
    failover,
    healthy,
    holds,
    moves,
    outcome,
    route,
    seen,
    the_rule,
    unhealthy,
)

HOME, AWAY = {"a": 1, "b": 0}, {"a": 0, "b": 1}
T, R = 10.0, 20.0


def rule(**keys: Any) -> dict[str, Any]:
    return failover(backends=backends("a", "b"), **{"tolerationSeconds": T, "recoverySeconds": R, **keys})


def look(service: str, status: str, moment: float, since: float, *, heard: float | None = None, **more: Any) -> Event:
    """Observation by a source that can be asked, and since when without a break."""
    more = {"signal": "probe", "source": "probe", **more}
    return seen(service, status, at=moment, heard=heard, since=at(since), **more)


STANDS = (route(HOME), look("a", "Healthy", 0, 0), look("b", "Healthy", 0, 0))
BAD = look("a", "Unhealthy", 5, 5)


# --- a failure -----------------------------------------------------------------------------------------------------


def test_a_window_that_is_over_waits_for_a_look_from_its_end_or_later() -> None:
    assert moves(rule(), *STANDS, BAD) == []
    assert moves(rule(), *STANDS, BAD, look("a", "Unhealthy", 14.9, 5)) == []
    assert moves(rule(), *STANDS, BAD, look("a", "Unhealthy", 15.1, 5), look("b", "Healthy", 15.1, 0)) == [(15.1, AWAY)]


def test_what_a_source_said_without_having_seen_it_does_not_move_the_begin_of_what_it_has_seen_since() -> None:
    """A Quorum repeats what its members showed before an outage of the bus, a moment before their next looks come."""
    repeated = look("a", "Healthy", 16, 0, validSeconds=-15)
    known = look("a", "Unhealthy", 16.1, 5)
    assert moves(rule(), *STANDS, repeated, known, look("b", "Healthy", 16.2, 0)) == [(16.2, AWAY)]
    seen_then = look("a", "Healthy", 16, 0, validSeconds=-8)
    assert moves(rule(), *STANDS, seen_then, known, look("b", "Healthy", 16.2, 0)) == []


def test_what_is_to_get_traffic_has_to_be_seen_healthy_at_the_windows_end_or_later() -> None:
    bad = look("a", "Unhealthy", 15, 5)
    assert moves(rule(), *STANDS, BAD, bad, look("b", "Healthy", 14, 0)) == []
    assert moves(rule(), *STANDS, BAD, bad, look("b", "Healthy", 15.5, 0)) == [(15.5, AWAY)]


def test_what_an_act_rests_on_is_seen_within_five_seconds() -> None:
    """The bad word is of 15, the good one of 40: by then the primary may be well."""
    seen_at_15_and_40 = [look("a", "Unhealthy", 15, 5), look("b", "Healthy", 40, 0)]
    assert moves(rule(), *STANDS, BAD, *seen_at_15_and_40) == []
    assert moves(rule(), *STANDS, BAD, *seen_at_15_and_40, look("a", "Unhealthy", 40.2, 5)) == [(40.2, AWAY)]


def test_what_hangs_was_seen_until_its_look_gave_up() -> None:
    """Each look at it takes eight seconds: none can be newer than that when it is heard."""
    hangs = look("a", "Unhealthy", 16, 5, heard=24, unanswered_until=at(24))
    assert moves(rule(), *STANDS, BAD, look("b", "Healthy", 23.9, 0), hangs) == [(24, AWAY)]
    answered = look("a", "Unhealthy", 16, 5, heard=24)
    assert moves(rule(), *STANDS, BAD, look("b", "Healthy", 23.9, 0), answered) == []


def test_a_target_that_recovered_while_its_source_was_not_heard_moves_nothing() -> None:
    """C1: the window ended in the outage, the recovery is heard after it."""
    after = [look("a", "Healthy", 30, 9), look("b", "Healthy", 30, 0)]
    assert moves(rule(), *STANDS, BAD, *after) == []


def test_a_target_that_recovered_after_its_window_while_nothing_was_heard_moves_nothing() -> None:
    after = [look("a", "Healthy", 30, 20), look("b", "Healthy", 30, 0)]
    assert moves(rule(), *STANDS, BAD, *after) == []


def test_a_target_that_recovered_and_failed_again_unheard_has_its_whole_window_once_more() -> None:
    again = [look("a", "Unhealthy", 30, 25), look("b", "Healthy", 30, 0)]
    late = [look("a", "Unhealthy", 36, 25), look("b", "Healthy", 36, 0)]
    assert moves(rule(), *STANDS, BAD, *again) == []
    assert moves(rule(), *STANDS, BAD, *again, *late) == [(36, AWAY)]


def test_what_stayed_bad_under_a_source_that_looked_all_the_time_acts_with_the_first_look_that_is_heard() -> None:
    after = [look("a", "Unhealthy", 30, 5), look("b", "Healthy", 30, 0)]
    assert moves(rule(), *STANDS, BAD, *after) == [(30, AWAY)]


def test_a_failure_that_began_unheard_is_dated_by_the_source_that_saw_it() -> None:
    after = [look("a", "Unhealthy", 30, 12), look("b", "Healthy", 30, 0)]
    assert moves(rule(), *STANDS, *after) == [(30, AWAY)]


def test_the_first_look_of_a_source_proves_nothing_about_the_time_before() -> None:
    """All reactors were away from 8 to 30: no process saw what was in between."""
    first = [look("a", "Unhealthy", 30, 30), look("b", "Healthy", 30, 30)]
    assert moves(rule(), *STANDS, BAD, *first, look("b", "Healthy", 41, 30)) == []
    later = [look("a", "Unhealthy", 41, 30), look("b", "Healthy", 41, 30)]
    assert moves(rule(), *STANDS, BAD, *first, *later) == [(41, AWAY)]


def test_the_same_version_before_and_after_shows_that_nothing_changed_in_between() -> None:
    bad = look("a", "Unhealthy", 5, 5, version="v7")
    same = [look("a", "Unhealthy", 30, 30, version="v7"), look("b", "Healthy", 30, 30)]
    other = [look("a", "Unhealthy", 30, 30, version="v9"), look("b", "Healthy", 30, 30)]
    assert moves(rule(), *STANDS, bad, *same) == [(30, AWAY)]
    assert moves(rule(), *STANDS, bad, *other) == []


def test_a_pause_that_the_source_cannot_see_anyway_is_no_break() -> None:
    bad = look("a", "Unhealthy", 13, 5)
    first = [look("a", "Unhealthy", 16, 16, resolution_seconds=4), look("b", "Healthy", 16, 16)]
    assert moves(rule(), *STANDS, BAD, bad, *first) == [(16, AWAY)]


def test_another_signal_that_was_bad_throughout_bridges_a_source_that_did_not_look() -> None:
    other = [look("a", "Unhealthy", 5, 5, signal="alert", source="alerts")]
    stays = [look("a", "Unhealthy", 31, 5, signal="alert", source="alerts")]
    first = [look("a", "Unhealthy", 30, 30), look("b", "Healthy", 31, 30)]
    assert moves(rule(), *STANDS, BAD, *other, *first, *stays) == [(31, AWAY)]


@pytest.mark.parametrize("second", [30, 30.5])
def test_the_first_looks_of_two_sources_prove_nothing_about_the_time_before_either(second: float) -> None:
    """Both were away from 8 to 30: the first one to come back proves nothing of what the other one saw before."""
    other = [look("a", "Unhealthy", 5, 5, signal="slo", source="slo")]
    first = [look("a", "Unhealthy", 30, 30), look("b", "Healthy", 30, 30)]
    first.append(look("a", "Unhealthy", second, second, signal="slo", source="slo"))
    assert moves(rule(), *STANDS, BAD, *other, *first, until=39) == []
    later = [look("a", "Unhealthy", 41, 30), look("b", "Healthy", 41, 30)]
    assert moves(rule(), *STANDS, BAD, *other, *first, *later) == [(41, AWAY)]


def test_a_failure_that_begins_again_does_not_end_a_window_that_only_a_signal_that_is_silent_had_opened() -> None:
    """The alert was heard at 5 and 8 and is silent since; the probe saw the target bad from 6 to 9, and from 13 on."""
    alert = [look("a", "Unhealthy", at, 5, signal="alert", source="alerts") for at in (5, 8)]
    probe = [look("a", "Unhealthy", 6, 6), look("a", "Healthy", 9, 9), look("a", "Unhealthy", 13, 13)]
    later = [look("a", "Unhealthy", 16, 13), look("b", "Healthy", 16, 0)]
    end = [look("a", "Unhealthy", 23, 13), look("b", "Healthy", 23, 0)]
    assert moves(rule(), *STANDS, *alert, *probe, *later) == []
    assert moves(rule(), *STANDS, *alert, *probe, *later, *end) == [(23, AWAY)]
    throughout = look("a", "Unhealthy", 17, 5, signal="alert", source="alerts")
    assert moves(rule(), *STANDS, *alert, *probe, *later, throughout) == [(17, AWAY)]


@pytest.mark.parametrize("signals", [("probe", "ready"), ("ready", "probe")])
def test_an_act_that_is_still_to_come_follows_the_signal_that_saw_the_failure_first(signals: tuple[str, str]) -> None:
    """Considered unhealthy at 10, without a target. Unseen 12 to 20; one sees it bad from 20, the other from 25."""
    early, late = signals
    nowhere = [route(HOME), look("b", "Unhealthy", 0, 0)]
    nowhere += [look("a", "Unhealthy", 11, 0, signal=name, source=name) for name in signals]
    again = [look("a", "Unhealthy", 20, 20, signal=early, source=early)]
    again += [look("a", "Unhealthy", 25, 25, signal=late, source=late)]
    again += [look("a", "Unhealthy", 25, 20, signal=early, source=early)]
    end = [look("b", "Healthy", 26, 26), look("a", "Unhealthy", 31, 20, signal=early, source=early)]
    end += [look("b", "Healthy", 31, 26)]
    assert moves(rule(recoverySeconds=5), *nowhere, *again, *end) == [(31, AWAY)]


def test_a_word_that_holds_for_some_seconds_proves_nothing_that_is_still_to_come() -> None:
    """The primary is settled as good at 40, is bad from 42 to 43, and due at 63: the word of 43 holds until 103."""
    bad = [look("a", "Unhealthy", 0, 0), look("a", "Unhealthy", 11, 0), look("b", "Healthy", 11, 0, valid_seconds=99)]
    good = [look("a", "Healthy", 20, 20), look("a", "Healthy", 41, 20)]
    again = [look("a", "Unhealthy", 42, 42), look("a", "Healthy", 43, 43, valid_seconds=60), route(AWAY, at=44)]
    assert moves(rule(), *bad, *good, *again, until=62) == []
    assert moves(rule(), *bad, *good, *again, until=70) == [(63, HOME)]


def test_a_failback_that_is_still_to_come_needs_the_whole_recovery_once_more_after_a_relapse() -> None:
    """The primary is settled as good at 40, but nothing can be done yet: the route is listed at 44."""
    bad = [look("a", "Unhealthy", 0, 0), look("a", "Unhealthy", 11, 0), look("b", "Healthy", 11, 0)]
    good = [look("a", "Healthy", 20, 20), look("a", "Healthy", 41, 20)]
    again = [look("a", "Unhealthy", 42, 42), look("a", "Healthy", 43, 43), route(AWAY, at=44)]
    late = [look("a", "Healthy", 45, 43), look("b", "Healthy", 45, 0)]
    end = [look("a", "Healthy", 63, 43), look("b", "Healthy", 63, 0)]
    assert moves(rule(), *bad, *good, *again, *late) == []
    assert moves(rule(), *bad, *good, *again, *late, *end) == [(63, HOME)]


def test_a_second_signal_that_is_dead_holds_nothing_up() -> None:
    dead = [
        look("a", "Healthy", 1, 0, signal="dead", source="dead"),
        look("b", "Healthy", 1, 0, signal="dead", source="dead"),
    ]
    after = [look("a", "Unhealthy", 15, 5), look("b", "Healthy", 15, 0)]
    assert moves(rule(), *STANDS, *dead, BAD, *after) == [(15, AWAY)]


def test_what_a_stranger_said_proves_until_it_is_stale_or_as_long_as_it_says() -> None:
    assert moves(rule(), route(HOME), healthy("b", at=0), healthy("a", at=0), unhealthy("a", at=5, stale=90)) == [
        (15, AWAY)
    ]
    short = unhealthy("a", at=5, stale=90, valid_seconds=8)
    assert moves(rule(), route(HOME), healthy("b", at=0), healthy("a", at=0), short) == []
    assert moves(rule(), route(HOME), healthy("b", at=0), healthy("a", at=0), short, unhealthy("a", at=40)) == [
        (40, AWAY)
    ]


def test_a_stranger_that_says_since_when_takes_back_what_it_confirmed_before() -> None:
    """It flapped: at 6 the other source confirmed two seconds, it was well from 6.2 on, and bad again from 7.5 on."""
    flap = [unhealthy("a", at=moment, since=at(5), valid_seconds=2) for moment in (5, 6)]
    again = [unhealthy("a", at=7.9, since=at(7.5), valid_seconds=20)]
    assert moves(rule(), route(HOME), healthy("b", at=0), healthy("a", at=0), *flap, *again) == [(17.5, AWAY)]


def test_a_repeat_that_was_last_seen_long_before_proves_no_more_than_that() -> None:
    repeats = [look("a", "Unhealthy", 20, 5, valid_seconds=-13), look("b", "Healthy", 20, 0)]
    assert moves(rule(), *STANDS, BAD, *repeats) == []


def test_what_is_said_by_a_clock_that_is_ahead_proves_what_those_who_looked_have_dated() -> None:
    """As a Quorum's, in a process whose clock is a second ahead: its members were seen at 15.5, by another clock."""
    said = look("a", "Unhealthy", 17, 5, heard=16, valid_seconds=-1.5)
    assert moves(rule(), *STANDS, BAD, said, look("b", "Healthy", 16, 0)) == [(16, AWAY)]
    vouched = look("a", "Unhealthy", 14, 5, heard=13, valid_seconds=1.5)  # until 14.5, by the reader's clock
    assert moves(rule(), *STANDS, BAD, vouched, look("b", "Healthy", 16, 0)) == []


# --- silence and the way back --------------------------------------------------------------------------------------


def test_what_a_source_has_seen_all_the_time_is_not_begun_again_by_its_words_that_prove_nothing_yet() -> None:
    """As a Quorum's: one of its members has only just turned bad, and the others were last seen before."""
    words = (look("a", "Unhealthy", 5.5, 5, valid_seconds=-4), look("a", "Unhealthy", 10, 5, valid_seconds=-8))
    over = (look("a", "Unhealthy", 15, 5), look("b", "Healthy", 15, 0))
    assert moves(rule(), *STANDS, *words, *over) == [(15, AWAY)]


def test_a_source_that_does_not_answer_is_told_of_after_two_seconds() -> None:
    assert holds(rule(), *STANDS, BAD, until=16.9) == []
    assert holds(rule(), *STANDS, BAD) == [(17, "SourceSilent")]


def test_a_source_that_does_not_believe_that_its_object_is_gone_is_told_of_as_that() -> None:
    """It says how it was at 5 and that this is in doubt; the list is believed at 45: it is gone."""
    doubted = [look("a", "Unhealthy", at, 5, valid_seconds=5 - at, doubted=True) for at in (16, 30, 44)]
    assert holds(rule(), *STANDS, BAD, *doubted) == [(17, "ListDoubted")]
    believed = [look("a", "Unhealthy", 45, 5), look("b", "Healthy", 45, 0)]
    assert moves(rule(), *STANDS, BAD, *doubted) == []
    assert moves(rule(), *STANDS, BAD, *doubted, *believed) == [(45, AWAY)]


def test_a_window_that_lacks_a_look_asks_for_it_of_all_who_may_be_needed_and_again_every_second() -> None:
    group = Group("web", OBJECT, TrafficState())
    given = the_rule(backends=backends("a", "b"), tolerationSeconds=T)
    group = decide(given, group, [fact for _, fact in (*STANDS, BAD)], at(5)).group
    assert group.next_deadline == at(15)
    decision = decide(given, group, [], at(15))
    asked = [(lack.source, lack.target, lack.since) for lack in decision.lacks]
    assert asked == [("probe", "service/east/shop/a", at(15)), ("probe", "service/east/shop/b", at(15))]
    assert decision.group.next_deadline == at(16)
    assert decide(given, decision.group, [], at(16)).lacks == decision.lacks


def test_a_recovery_needs_a_look_from_its_end_of_each_signal_that_had_failed() -> None:
    away = [BAD, look("a", "Unhealthy", 15, 5), look("b", "Healthy", 15, 0)]
    other = [look("a", "Healthy", 3, 3, signal="ready", source="ready")]
    back = look("a", "Healthy", 50, 50)
    assert moves(rule(), *STANDS, *other, *away, back, look("a", "Healthy", 71, 3, signal="ready", source="ready")) == [
        (15, AWAY)
    ]
    assert moves(rule(), *STANDS, *other, *away, back, look("a", "Healthy", 71, 50)) == [(15, AWAY), (71, HOME)]


def test_a_recovery_that_was_not_watched_begins_again_with_the_first_look() -> None:
    away = [BAD, look("a", "Unhealthy", 15, 5), look("b", "Healthy", 15, 0)]
    first = [look("a", "Healthy", 50, 50), look("a", "Healthy", 80, 80)]
    assert moves(rule(), *STANDS, *away, *first, look("a", "Healthy", 99, 80)) == [(15, AWAY)]
    assert moves(rule(), *STANDS, *away, *first, look("a", "Healthy", 101, 80)) == [(15, AWAY), (101, HOME)]


# --- the present ---------------------------------------------------------------------------------------------------


def test_traffic_does_not_leave_a_primary_that_is_healthy_now() -> None:
    """It was bad for long enough with nowhere to go; when there is a place, it is well again."""
    down = [route(HOME), look("a", "Healthy", 0, 0), look("b", "Unhealthy", 0, 0), BAD, look("a", "Unhealthy", 16, 5)]
    up = [look("a", "Healthy", 30, 30), look("b", "Healthy", 60, 60)]
    assert moves(rule(), *down, *up, until=69) == []
    assert (60, "HealthyNow") in holds(rule(recoverySeconds=100), *down, *up, look("b", "Healthy", 80, 60))


def test_traffic_comes_home_also_from_a_secondary_that_was_down_and_is_healthy_now() -> None:
    away = (*STANDS, BAD, look("a", "Unhealthy", 15, 5), look("b", "Healthy", 15, 0))
    secondary = (look("b", "Unhealthy", 20, 20), look("b", "Unhealthy", 31, 20), look("b", "Healthy", 40, 40))
    back = (look("a", "Healthy", 25, 25), look("a", "Healthy", 45, 25))
    assert moves(rule(), *away, *secondary, *back) == [(15, AWAY), (45, HOME)]


def test_an_unknown_health_proves_no_failure() -> None:
    both = (*STANDS, BAD, look("b", "Unhealthy", 5, 5), look("a", "Unhealthy", 15, 5), look("b", "Unhealthy", 15, 5))
    unsure = (look("a", "Unknown", 16, 16), look("b", "Healthy", 17, 17), look("a", "Unknown", 18, 16))
    assert moves(rule(), *both, *unsure) == []
    assert moves(rule(treatUnknownAs="Unhealthy"), *both, *unsure) == [(18, AWAY)]


def test_half_of_what_one_look_said_moves_nothing() -> None:
    """C6: all were down, and both are back in one moment; the secondary's observation comes first."""
    down = [route(HOME), look("a", "Healthy", 0, 0), look("b", "Unhealthy", 0, 0), BAD, look("a", "Unhealthy", 16, 5)]
    back = [look("b", "Healthy", 40, 40, heard=40.1), look("a", "Healthy", 40, 40, heard=40.2)]
    assert moves(rule(recoverySeconds=0), *down, *back) == []


def test_weights_that_another_writer_set_while_failed_over_are_put_right_without_a_look() -> None:
    away = [BAD, look("a", "Unhealthy", 15, 5), look("b", "Healthy", 15, 0)]
    drift = route({"a": 1, "b": 0}, at=25)
    assert moves(rule(), *STANDS, *away, look("a", "Healthy", 20, 20), drift, until=30) == [(15, AWAY), (25, AWAY)]


# --- silence as a failure, and clocks ------------------------------------------------------------------------------

DEAD = (route(HOME), look("a", "Healthy", 0, 0, stale=20), look("b", "Healthy", 0, 0, stale=900))


def silence(reader: Reader, *moments: float) -> list[tuple[float, Decision]]:
    """Decisions at these moments by a rule that takes Unknown as bad, where the primary's source is dead."""
    given = the_rule(backends=backends("a", "b"), tolerationSeconds=T, treatUnknownAs="Unhealthy")
    group, out = Group("web", OBJECT, TrafficState()), []
    group = decide(given, group, [fact for _, fact in DEAD], at(0), reader=reader).group
    for moment in moments:
        _, well = look("b", "Healthy", moment, 0, stale=900)
        decision = decide(given, group, [well], at(moment), reader=reader)
        group = decision.group
        out.append((moment, decision))
    return out


def acted(decisions: list[tuple[float, Decision]]) -> float | None:
    return next((moment for moment, decision in decisions if decision.actions), None)


def test_a_source_that_was_asked_for_fifteen_seconds_in_vain_counts_as_bad_where_unknown_does() -> None:
    """Silent from 20, so that the window ends at 30."""
    decisions = silence(Reader(at(-100)), *range(20, 36))
    assert acted(decisions) == 35
    assert [moment for moment, decision in decisions if any(one.source == "probe" for one in decision.lacks)] == [
        *range(20, 36)
    ]


def test_who_has_only_just_begun_to_listen_asks_first() -> None:
    assert acted(silence(Reader(at(40)), *range(40, 70))) == 55


def test_silence_that_is_broken_by_an_outage_of_the_bus_is_counted_from_the_start() -> None:
    given = the_rule(backends=backends("a", "b"), tolerationSeconds=T, treatUnknownAs="Unhealthy")
    before = silence(Reader(at(-100)), *range(20, 33))[-1][1].group
    _, well = look("b", "Healthy", 60, 0, stale=900)
    back = decide(given, before, [well], at(60), reader=Reader(at(60)))
    assert back.actions == ()
    assert {(one.source, one.target) for one in back.lacks} == {("probe", "service/east/shop/a")}
    _, well = look("b", "Healthy", 75, 0, stale=900)
    assert decide(given, back.group, [well], at(75), reader=Reader(at(60))).actions


def test_a_source_that_answers_before_its_silence_counts_keeps_its_traffic() -> None:
    given = rule(treatUnknownAs="Unhealthy")
    answers = [look("a", "Healthy", 34, 0, stale=900), look("b", "Healthy", 60, 0, stale=900)]
    assert moves(given, *DEAD, *answers, until=90) == []


def test_silence_is_bad_in_a_rehearsal_too() -> None:
    given = rule(treatUnknownAs="Unhealthy")
    assert moves(given, *DEAD, look("b", "Healthy", 60, 0, stale=900), until=90) == [(60, AWAY)]


def test_windows_are_longer_by_what_clocks_may_differ_so_that_none_is_early() -> None:
    given = the_rule(backends=backends("a", "b"), tolerationSeconds=T)
    reader = Reader(skew_seconds=0.5)
    group = decide(
        given, Group("web", OBJECT, TrafficState()), [fact for _, fact in (*STANDS, BAD)], at(5), reader=reader
    ).group
    assert group.next_deadline == at(15.5)
    late = [look("a", "Unhealthy", 15.4, 5)[1], look("b", "Healthy", 15.4, 0)[1]]
    decision = decide(given, group, late, at(15.4), reader=reader)
    assert decision.actions == ()
    last = [look("a", "Unhealthy", 15.5, 5)[1], look("b", "Healthy", 15.5, 0)[1]]
    assert decide(given, decision.group, last, at(15.5), reader=reader).actions


def test_what_a_guard_lets_go_long_after_it_was_found_right_is_looked_at_again() -> None:
    """The act is right at 5, and may be done from 60 on: whether it is right then has to be seen."""
    rules = [rule(guards={"blockedWindows": [{"cron": "0 0 * * *", "durationSeconds": 60}]}, tolerationSeconds=0)]
    bad = look("a", "Unhealthy", 5, 5)
    assert moves(rules, *STANDS, bad, look("b", "Healthy", 5, 0)) == []
    fresh = [look("a", "Unhealthy", 90, 5), look("b", "Healthy", 90, 0)]
    assert moves(rules, *STANDS, bad, look("b", "Healthy", 5, 0), *fresh) == [(90, AWAY)]
    assert moves(rules, *STANDS, bad, look("b", "Healthy", 5, 0), look("a", "Healthy", 90, 30)) == []


# --- a person's yes ------------------------------------------------------------------------------------------------


def approved(moment: float) -> Event:
    yes = Approve(rule="web", object=OBJECT, by="ann", reason="looked at it", observed_at=at(moment))
    return moment, yes


ASKED = (*STANDS, BAD, look("a", "Unhealthy", 15.1, 5), look("b", "Healthy", 15.1, 0))
"""Asked for at 15.1."""


@pytest.mark.parametrize(("last", "moved_at"), [(15.1, 40.7), (30, 40.7), (36, 40.5)])
def test_a_yes_outlasts_the_looks_that_come_one_after_the_other(last: float, moved_at: float) -> None:
    """Long after it was asked for, both sources are to look once more, and one of them answers first."""
    seen_since = [look("b", "Healthy", last, 0)]
    answers = [look("a", "Unhealthy", 40.5, 5), look("b", "Healthy", 40.7, 0)]
    asking = rule(mode="Approve")
    assert moves(asking, *ASKED, *seen_since, approved(40), *answers) == [(moved_at, AWAY)]


def test_what_is_asked_for_expires_although_one_source_is_heard_before_the_other() -> None:
    asking = rule(mode="Approve", guards={"approval": {"expireSeconds": 30}})
    pairs = [
        one
        for second in range(20, 60, 10)
        for one in (look("a", "Unhealthy", second, 5), look("b", "Healthy", second + 0.2, 0))
    ]
    found = [(moment, held) for moment, held in holds(asking, *ASKED, *pairs, until=59) if "Approval" in held]
    assert [held for moment, held in found if moment >= 45.1] == ["ApprovalExpired", "ApprovalExpired"]
    assert found[0] == (15.1, "AwaitingApproval")
    assert (45.1, "ApprovalExpired") in found


def test_a_yes_to_what_is_no_longer_wanted_is_forgotten() -> None:
    asking = rule(mode="Approve")
    well = [look("a", "Healthy", 30, 30), look("b", "Healthy", 30, 0)]
    again = [look("a", "Unhealthy", 60, 60), look("a", "Unhealthy", 70.1, 60), look("b", "Healthy", 70.1, 0)]
    assert moves(asking, *ASKED, approved(29), *well, *again, until=90) == []


# --- overflow ------------------------------------------------------------------------------------------------------

FULL_HOME, FULL_AWAY = {"a": 100, "b": 0}, {"a": 0, "b": 100}


def overflowing() -> dict[str, Any]:
    return rule(overflow={}, failback={"backoff": {"factor": 1}})


def test_overflow_begins_again_where_the_primary_failed_again_unheard() -> None:
    again = [look("a", "Unhealthy", 30, 25), look("b", "Healthy", 30, 0)]
    late = [look("a", "Unhealthy", 36, 25), look("b", "Healthy", 36, 0)]
    assert moves(overflowing(), *STANDS, BAD, *again) == []
    assert moves(overflowing(), *STANDS, BAD, *again, *late) == [(36, FULL_AWAY)]


def test_overflow_goes_on_where_the_primary_was_seen_bad_all_the_time() -> None:
    after = [look("a", "Unhealthy", 30, 5), look("b", "Healthy", 30, 0)]
    assert moves(overflowing(), *STANDS, BAD, *after) == [(30, FULL_AWAY)]


def test_overflow_gives_nothing_back_to_a_primary_that_failed_again_unheard() -> None:
    gone = [BAD, look("a", "Unhealthy", 15.1, 5), look("b", "Healthy", 15.1, 0), look("a", "Healthy", 50, 50)]
    again = [look("a", "Healthy", 76, 75), look("b", "Healthy", 76, 0)]
    late = [look("a", "Healthy", 96, 75), look("b", "Healthy", 96, 0)]
    assert moves(overflowing(), *STANDS, *gone, *again) == [(15.1, FULL_AWAY)]
    assert moves(overflowing(), *STANDS, *gone, *again, *late) == [(15.1, FULL_AWAY), (96, FULL_HOME)]


def test_overflow_does_not_begin_again_where_the_one_that_gets_more_was_not_seen() -> None:
    after = [look("a", "Unhealthy", 30, 5), look("b", "Healthy", 30, 25)]
    assert moves(overflowing(), *STANDS, BAD, *after) == [(30, FULL_AWAY)]


def test_overflow_begins_again_after_a_time_in_which_the_primary_was_unknown() -> None:
    silent = look("a", "Unhealthy", 5, 5, stale=8)
    again = [look("a", "Unhealthy", 30, 30), look("b", "Healthy", 30, 0)]
    late = [look("a", "Unhealthy", 41, 30), look("b", "Healthy", 41, 0)]
    assert moves(overflowing(), *STANDS, silent, *again) == []
    assert moves(overflowing(), *STANDS, silent, *again, *late) == [(41, FULL_AWAY)]


def test_overflow_begins_again_where_no_signal_has_seen_the_primary_bad_all_the_time() -> None:
    """The first signal says nothing after 8; the second one sees it well from 9 to 14, and then bad."""
    second = [
        look("a", status, moment, since, signal="other", source="other")
        for status, moment, since in (("Healthy", 0, 0), ("Healthy", 9, 9), ("Unhealthy", 16, 15))
    ]
    bad = [BAD, look("a", "Unhealthy", 8, 5), *second, look("b", "Healthy", 16, 0)]
    late = [look("a", "Unhealthy", 26, 15, signal="other", source="other"), look("b", "Healthy", 26, 0)]
    assert moves(overflowing(), *STANDS, *bad) == []
    assert moves(overflowing(), *STANDS, *bad, *late) == [(26, FULL_AWAY)]


# --- a trial -------------------------------------------------------------------------------------------------------

TRIED = {"a": 10, "b": 90}


def tried(**keys: Any) -> dict[str, Any]:
    trial = {"mode": "Trial", "trial": {"percent": 10, "seconds": 10}, "backoff": {"factor": 1}}
    return rule(failback=trial | keys)


LEFT = [BAD, look("a", "Unhealthy", 15.1, 5), look("b", "Healthy", 15.1, 0)]
LEFT_AT = (15.1, AWAY)


def test_a_trial_of_what_was_healthy_waits_for_a_look_from_when_it_is_due() -> None:
    good = look("a", "Healthy", 50, 50)
    assert moves(tried(), *STANDS, *LEFT, good, until=75) == [LEFT_AT]
    seen_again = [look("a", "Healthy", 71, 50), look("b", "Healthy", 71, 0)]
    assert moves(tried(), *STANDS, *LEFT, good, *seen_again, until=75) == [LEFT_AT, (71, TRIED)]
    assert moves(tried(), *STANDS, *LEFT, good, look("a", "Unhealthy", 71, 52), until=75) == [LEFT_AT]


def test_a_trial_of_what_needs_traffic_to_be_known_waits_for_no_look() -> None:
    unknown = look("a", "Unknown", 50, 50)
    assert moves(tried(), *STANDS, *LEFT, unknown, until=75) == [LEFT_AT, (70, TRIED)]


def test_a_trial_waits_for_the_whole_recovery_of_its_signals_where_they_failed_again_unheard() -> None:
    good = look("a", "Healthy", 50, 50)
    again = [look("a", "Healthy", 76, 75), look("b", "Healthy", 76, 0)]
    late = [look("a", "Healthy", 96, 75), look("b", "Healthy", 96, 0)]
    signals = tried(signals=["probe"])
    assert moves(signals, *STANDS, *LEFT, good, *again, until=90) == [LEFT_AT]
    assert moves(signals, *STANDS, *LEFT, good, *again, *late, until=99) == [LEFT_AT, (96, TRIED)]


@pytest.mark.parametrize(
    "failback", [{"signals": ["probe"]}, {"mode": "Trial"}, {"mode": "Trial", "signals": ["probe"]}]
)
def test_a_way_back_of_its_own_does_not_stop_what_is_to_be_done_when_all_are_down(failback: dict[str, Any]) -> None:
    down = [look("b", "Unhealthy", 40, 40), look("a", "Unhealthy", 50.1, 5), look("b", "Unhealthy", 50.2, 40)]
    found = moves(rule(failback=failback, onAllDown="Primary"), *STANDS, *LEFT, *down, until=60)
    assert found == [LEFT_AT, (50.2, HOME)]


def test_overflow_leaves_what_fails_while_another_change_is_waited_for_only_after_its_toleration() -> None:
    three = overflowing() | {"backends": backends("a", "b", "c")}
    stands = [route({"a": 0, "b": 100, "c": 0}), look("a", "Unhealthy", 0, -50), look("b", "Healthy", 0, 0)]
    change = [look("c", "Unhealthy", 0, 0), look("c", "Healthy", 20, 20), look("b", "Unhealthy", 25, 25)]
    early = [look("b", "Unhealthy", 31, 25), look("c", "Healthy", 31, 20)]
    late = [look("b", "Unhealthy", 36, 25), look("c", "Healthy", 36, 20)]
    assert moves(three, *stands, *change, *early) == []
    assert moves(three, *stands, *change, *early, *late) == [(36, {"a": 0, "b": 0, "c": 100})]


# --- what is on its way --------------------------------------------------------------------------------------------


def test_weight_that_is_on_its_way_to_be_taken_is_not_given_again_when_it_is_seen() -> None:
    """The first write is called off as the secondary is bad, but was on its way all the same; so is the second one."""
    three = rule() | {"backends": backends("a", "b", "c")}
    stands = [route({"a": 1, "b": 0, "c": 0}), *(look(one, "Healthy", 0, 0) for one in "abc"), BAD]
    moved = [look("a", "Unhealthy", 15.1, 5), look("b", "Healthy", 15.1, 0), look("c", "Healthy", 15.1, 0)]
    then = [look("b", "Unhealthy", 15.5, 15.5), look("c", "Healthy", 16.5, 0), look("a", "Unhealthy", 16.5, 5)]
    refused = outcome(f"web/{OBJECT}/1", "Refused", at=16.4, reason="CalledOff")
    written = route({"a": 0, "b": 1, "c": 1}, at=17)
    then = [then[0], refused, *then[1:], written]
    asked = moves(three, *stands, *moved, *then, look("c", "Healthy", 17.5, 0), until=18, outcomes=False)
    assert [weights for _, weights in asked] == [{"a": 0, "b": 1, "c": 1}, {"a": 0, "b": 0, "c": 1}]
