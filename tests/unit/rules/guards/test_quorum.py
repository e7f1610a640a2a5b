"""The Quorum source: a target's health from that of its members."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from bus.messages import Fact, Health, Observation
from rules.catalog import new_group
from rules.engine.decide import decide
from rules.engine.group_codec import dump_group, load_group
from rules.kinds.quorum.kind import asked, says
from rules.kinds.quorum.model import QuorumRule
from rules.rehearsal.simulation import at
from rules.rulefile.sources import Quorum
from tests.unit.rules.builders import notification, rule_set
from tests.unit.rules.guards.world import World


def source(**keys: Any) -> Quorum:
    return Quorum.model_validate(
        {
            "name": "zone-a", "kind": "Quorum", "members": "node/prod/a-*", "target": "zone/prod/a",
            "unhealthyAt": "55%", "rounding": "Down",
        } | keys, strict=False,
    )  # fmt: skip


def node(name: str, status: str, *, when: float = 0, stale: float | None = None, **more: Any) -> Observation:
    target = f"node/prod/{name}"
    return Observation(target=target, status=Health(status), observed_at=at(when), stale_seconds=stale, **more)


class Speaker:
    """One source, and what it says."""

    def __init__(self, **keys: Any) -> None:
        self.rule = QuorumRule(name="@quorum.zone-a", source=source(**keys))
        self.group = new_group(self.rule, "*")

    def hear(self, now: float, *facts: Fact) -> str | None:
        decision = decide(self.rule, load_group(dump_group(self.group)), facts, at(now))
        self.group = decision.group
        said = [fact for fact in decision.emits if isinstance(fact, Observation)]
        assert len(said) <= 1
        for fact in said:
            assert (fact.target, fact.signal, fact.stale_seconds) == ("zone/prod/a", "zone-a", 90)
            assert fact.observed_at == at(now)
        return said[0].status.value if said else None


@pytest.mark.parametrize(
    ("keys", "bad", "unknown", "total", "status"),
    [
        ({}, 0, 0, 4, "Healthy"),
        ({}, 2, 0, 4, "Unhealthy"),  # 55% of 4 is 2.2, rounded Down 2
        ({"rounding": "Up"}, 2, 0, 4, "Healthy"),
        ({"rounding": "Up"}, 3, 0, 4, "Unhealthy"),
        ({}, 0, 0, 1, "Healthy"),  # 0.55 rounded Down is 0, and nothing is bad with none
        ({}, 1, 0, 1, "Unhealthy"),
        ({}, 1, 1, 4, "Unknown"),
        ({}, 1, 0, 4, "Healthy"),
        ({}, 2, 2, 4, "Unhealthy"),  # whichever members are Unknown, enough are bad
        ({}, 0, 4, 4, "Unknown"),
        ({"unhealthyAt": 3, "rounding": None}, 2, 0, 10, "Healthy"),
        ({"unhealthyAt": 3, "rounding": None}, 3, 0, 10, "Unhealthy"),
        ({"minMembers": 3}, 2, 0, 2, "Unknown"),
        ({"minMembers": 3}, 3, 0, 3, "Unhealthy"),
    ],
)
def test_enough_bad_members_make_the_target_bad(
    keys: dict[str, Any], bad: int, unknown: int, total: int, status: str
) -> None:
    health = ["Unhealthy"] * bad + ["Unknown"] * unknown + ["Healthy"] * (total - bad - unknown)
    assert Speaker(**keys).hear(0, *(node(f"a-{number}", one) for number, one in enumerate(health))) == status


def test_nothing_is_said_before_a_member_has_an_observation() -> None:
    speaker = Speaker()
    assert speaker.hear(0) is None
    assert speaker.hear(1, node("b-1", "Unhealthy", when=1)) is None  # of another zone


def test_a_change_is_said_at_once_and_an_unchanged_state_every_refresh_seconds() -> None:
    speaker = Speaker()
    assert speaker.hear(0, node("a-1", "Healthy"), node("a-2", "Healthy")) == "Healthy"
    assert speaker.group.next_deadline == at(30)
    assert speaker.hear(10, node("a-1", "Healthy", when=10)) is None
    assert speaker.hear(30) == "Healthy"
    assert speaker.hear(40, node("a-1", "Unhealthy", when=40)) == "Unhealthy"
    assert speaker.hear(50, node("a-1", "Unhealthy", when=40)) is None
    assert speaker.hear(69.9) is None
    assert speaker.hear(70) == "Unhealthy"


def test_members_that_fall_silent_make_the_target_unknown_at_their_moment() -> None:
    speaker = Speaker()
    speaker.hear(0, node("a-1", "Healthy", stale=20), node("a-2", "Healthy", stale=20))
    assert speaker.group.next_deadline == at(20)
    assert speaker.hear(20) == "Unknown"


def test_the_detail_has_numbers_and_names() -> None:
    speaker = Speaker()
    speaker.hear(0, *(node(f"a-{number}", "Unhealthy") for number in range(4)), node("a-9", "Unknown"))
    assert speaker.group.state.said is not None
    assert speaker.group.state.said.detail == (
        "4 of 5 members Unhealthy, 1 Unknown (Unhealthy at 2): node/prod/a-0, node/prod/a-1, node/prod/a-2, …"
    )


def test_a_rule_hears_what_the_source_says() -> None:
    rules = rule_set(notification(match="zone/**", tolerationSeconds=10)).rules
    world = World(rules, quorums=[source()])
    events = [(0.0, node("a-1", "Healthy")), (0.0, node("a-2", "Healthy")), (5.0, node("a-2", "Unhealthy", when=5))]
    world.play(*events, until=60)
    member = world.group("oncall").members["zone/prod/a"]
    assert (member.status, member.since, member.settled) == (Health.UNHEALTHY, at(5), False)


def watched(name: str, status: str, when: float, since: float, **more: Any) -> Observation:
    """Observation by a source that can be asked."""
    return node(name, status, when=when, stale=900, signal="nodes", source="nodes", since=at(since), **more)


def judgement(speaker: Speaker, now: float, *facts: Fact) -> Observation | None:
    decision = decide(speaker.rule, speaker.group, facts, at(now))
    speaker.group = decision.group
    return next((fact for fact in decision.emits if isinstance(fact, Observation)), None)


def test_a_judgement_says_since_when_it_is_so_and_until_when_its_members_prove_it() -> None:
    speaker = Speaker()
    judgement(speaker, 0, *(watched(f"a-{number}", "Healthy", 0, 0) for number in range(4)))
    bad = [watched("a-0", "Unhealthy", 9, 5), watched("a-1", "Unhealthy", 8, 7)]
    said = judgement(speaker, 10, *bad)
    assert said is not None
    assert (said.status, said.source, said.since, said.valid_seconds) == (Health.UNHEALTHY, "zone-a", at(7), -2)


def test_a_judgement_goes_on_where_other_members_take_over_without_a_break() -> None:
    speaker = Speaker(unhealthyAt=2, rounding=None)
    judgement(speaker, 5, *(watched(name, "Unhealthy", 5, 0) for name in ("a-0", "a-1")))
    judgement(speaker, 20, *(watched(name, "Unhealthy", 20, 0) for name in ("a-0", "a-1")))
    said = judgement(speaker, 40, watched("a-2", "Unhealthy", 15, 10), watched("a-1", "Healthy", 40, 40))
    assert said is not None
    assert said.since == at(0)


def test_members_that_were_not_looked_at_for_a_while_restart_the_judgement() -> None:
    speaker = Speaker(unhealthyAt=2, rounding=None)
    judgement(speaker, 5, *(watched(name, "Unhealthy", 5, 0) for name in ("a-0", "a-1")))
    said = judgement(speaker, 50, *(watched(name, "Unhealthy", 50, 48) for name in ("a-0", "a-1")))
    assert said is not None
    assert said.since == at(48)


def test_a_quorum_that_is_asked_asks_its_members_and_says_its_judgement_again_by_their_looks() -> None:
    speaker = Speaker()
    judgement(speaker, 0, *(watched(name, "Healthy", 0, 0) for name in ("a-0", "a-1")))
    speaker.group, missing = asked(speaker.rule, speaker.group, at(10))
    assert missing == [("nodes", "node/prod/a-0", "nodes"), ("nodes", "node/prod/a-1", "nodes")]
    assert judgement(speaker, 10) is None
    assert judgement(speaker, 11, watched("a-0", "Healthy", 11, 0)) is None
    said = judgement(speaker, 12, watched("a-1", "Healthy", 12, 0))
    assert said is not None
    assert (said.status, said.since, said.observed_at, said.valid_seconds) == (Health.HEALTHY, at(0), at(12), -1)
    assert judgement(speaker, 13, watched("a-1", "Healthy", 13, 0)) is None


def test_a_quorum_that_is_asked_again_and_again_by_a_clock_that_is_ahead_answers_each_time() -> None:
    """The clock of the asking process is a second ahead of the members' source: the newest request is never answered
    yet."""
    speaker = Speaker()
    judgement(speaker, 0, *(watched(name, "Healthy", 0, 0) for name in ("a-0", "a-1")))
    proven = []
    for second in range(10, 15):
        speaker.group, _ = asked(speaker.rule, speaker.group, at(second + 1))
        looks = [watched(name, "Healthy", second, 0) for name in ("a-0", "a-1")]
        if said := judgement(speaker, second, *looks):
            assert said.valid_seconds is not None
            proven.append(second + said.valid_seconds)
    assert proven == [11, 12, 13, 14]  # what was asked for in the second before
    assert judgement(speaker, 15, *(watched(name, "Healthy", 15, 0) for name in ("a-0", "a-1"))) is not None
    assert judgement(speaker, 16, *(watched(name, "Healthy", 16, 0) for name in ("a-0", "a-1"))) is None


def test_a_quorum_that_is_asked_twice_in_one_instant_answers_twice() -> None:
    """A partition's time stays where it is while older facts are read."""
    speaker = Speaker()
    first = judgement(speaker, 20, *(watched(name, "Healthy", 5, 0) for name in ("a-0", "a-1")))
    speaker.group, _ = asked(speaker.rule, speaker.group, at(10))
    second = judgement(speaker, 20, *(watched(name, "Healthy", 10, 0) for name in ("a-0", "a-1")))
    speaker.group, _ = asked(speaker.rule, speaker.group, at(15))
    third = judgement(speaker, 20, *(watched(name, "Healthy", 15, 0) for name in ("a-0", "a-1")))
    assert first is not None
    assert second is not None
    assert third is not None
    assert first.observed_at < second.observed_at < third.observed_at  # one that is as old as the last is no news
    proven = [said.observed_at + timedelta(seconds=said.valid_seconds or 0) for said in (first, second, third)]
    assert proven == [at(5), at(10), at(15)]


def test_members_whose_words_come_later_make_the_judgement_begin_earlier_at_once() -> None:
    """The first to come after an outage of the bus had turned bad in it; the others have been bad all the time."""
    speaker = Speaker(unhealthyAt=2, rounding=None)
    said = judgement(speaker, 20, watched("a-0", "Unhealthy", 20, 5), watched("a-1", "Unhealthy", 20, 19))
    assert said is not None
    assert said.since == at(19)
    said = judgement(speaker, 21, watched("a-2", "Unhealthy", 21, 5))
    assert said is not None
    assert (said.since, said.observed_at) == (at(5), at(21))
    assert judgement(speaker, 22, watched("a-2", "Unhealthy", 22, 5)) is None


def test_a_judgement_that_a_new_owner_tells_again_is_as_old_as_it_is() -> None:
    """Dated with its clock, it would make the next judgement an older one."""
    speaker = Speaker()
    said = judgement(speaker, 20, watched("a-0", "Healthy", 20, 0))
    assert says(speaker.rule, new_group(speaker.rule, "*"), speaker.group, (), at(25)) == (said,)


def test_members_that_are_deleted_leave_at_once() -> None:
    """Five nodes that are renewed every hour."""
    speaker = Speaker()
    judgement(speaker, 0, *(watched(f"a-{number}", "Healthy", 0, 0) for number in range(5)))
    gone = [watched(f"a-{number}", "Unknown", 10, 10, gone=True) for number in range(5)]
    fresh = [watched(f"a-{number}", "Healthy", 10, 10) for number in range(5, 10)]
    judgement(speaker, 10, *gone, *fresh)
    assert sorted(speaker.group.members) == [f"node/prod/a-{number}" for number in range(5, 10)]
    assert speaker.group.state.said is not None
    assert speaker.group.state.said.status is Health.HEALTHY


def test_a_member_of_which_another_source_still_speaks_is_not_gone() -> None:
    speaker = Speaker()
    judgement(speaker, 0, watched("a-0", "Healthy", 0, 0), node("a-0", "Unhealthy", signal="lease"))
    judgement(speaker, 10, watched("a-0", "Unknown", 10, 10, gone=True))
    assert sorted(speaker.group.members) == ["node/prod/a-0"]


def test_how_many_members_are_healthy_is_said_and_a_change_of_five_points_at_once() -> None:
    speaker = Speaker()
    names = [f"a-{number}" for number in range(10)]
    assert speaker.hear(0, *(node(name, "Healthy") for name in names)) == "Healthy"
    assert speaker.hear(5, node("a-0", "Unhealthy", when=5)) == "Healthy"
    assert speaker.group.state.said is not None
    assert speaker.group.state.said.healthy_percent == 90
    assert speaker.hear(6, node("a-0", "Unhealthy", when=6)) is None


FIRST = (("a-1", "Unhealthy", 2), ("a-2", "Healthy", 0), ("a-3", "Unhealthy", 2))


def test_a_judgement_is_not_proven_by_members_whose_failures_did_not_meet() -> None:
    """The first one is not heard after 10, the second one fails at 20: two were not seen bad together in between."""
    speaker = Speaker(unhealthyAt=2, rounding=None, refreshSeconds=1)
    judgement(speaker, 10, *(watched(name, status, 10, since) for name, status, since in FIRST))
    said = judgement(speaker, 20, watched("a-2", "Unhealthy", 20, 20), watched("a-3", "Unhealthy", 20, 2))
    assert said is not None
    assert (said.status, said.since, said.valid_seconds) == (Health.UNHEALTHY, at(20), 0)


def test_a_judgement_goes_on_where_one_member_fails_before_another_one_recovers() -> None:
    speaker = Speaker(unhealthyAt=2, rounding=None, refreshSeconds=1)
    judgement(speaker, 10, *(watched(name, status, 10, since) for name, status, since in FIRST))
    later = (("a-1", 16, 2), ("a-2", 20, 15), ("a-3", 19, 2))
    said = judgement(speaker, 20, *(watched(name, "Unhealthy", when, since) for name, when, since in later))
    assert said is not None
    assert (said.since, said.valid_seconds) == (at(2), -1)
