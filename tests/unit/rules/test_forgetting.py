"""Forgetting of signals whose source is no more, and of members of a pattern that exist no longer."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bus.messages import Cluster, Health, Observation
from rules.catalog import new_group
from rules.core.group import Group
from rules.core.member import Member, Signal
from rules.engine.deadlines import deadline
from rules.engine.debounce import advance, heard
from rules.engine.decide import decide
from rules.engine.group_codec import dump_group, load_group
from rules.engine.signals import combined
from rules.kinds.quorum.model import QuorumRule
from rules.kinds.zone.model import ZoneIsolation
from rules.limits.limiter import LimiterRule, peer_health
from rules.rehearsal.simulation import at, second
from rules.rulefile.guards import Guards
from rules.rulefile.model import Rule
from rules.rulefile.sources import Quorum
from tests.examples import many
from tests.unit.rules.builders import the_rule

HOUR, DAY = 3600, 86_400
STALE = 90


def told(member: Member, name: str, when: float, status: str = "Healthy", *, by: Rule | None = None) -> Member:
    said = Signal(Health(status), at(when), at(when + STALE))
    return heard(member, name, said, by or the_rule())


def spoken(member: Member, name: str, begin: int, end: int, *, by: Rule | None = None) -> Member:
    for when in range(begin, end, 60):
        member = told(member, name, when, by=by)
    return member


def renamed(*, by: Rule | None = None, first: str = "Healthy") -> Member:
    """The old signal is heard last at second 0."""
    member = told(Member(Health.UNKNOWN, at(0)), "old", 0, first, by=by)
    return told(member, "new", 30, by=by)


# --- signals -------------------------------------------------------------------------------------------------------


def test_a_signal_that_is_silent_for_an_hour_while_another_speaks_counts_no_more() -> None:
    rule = the_rule()
    member = spoken(renamed(), "new", 60, STALE + HOUR)
    assert (member.status, set(member.signals)) == (Health.UNKNOWN, {"new", "old"})
    assert deadline(member, rule) == at(STALE + HOUR)
    member = advance(member, rule, at(STALE + HOUR))
    assert (member.status, member.since, set(member.signals)) == (Health.HEALTHY, at(STALE + HOUR), {"new"})


def test_a_signal_that_is_forgotten_counts_when_it_speaks_again() -> None:
    member = told(spoken(renamed(), "new", 60, 2 * HOUR), "old", 2 * HOUR, "Unhealthy")
    assert (member.status, set(member.signals)) == (Health.UNHEALTHY, {"new", "old"})


def test_a_signal_that_the_rule_names_is_never_forgotten() -> None:
    rule = the_rule(signals=["old", "new"])
    member = spoken(renamed(by=rule), "new", 60, 3 * DAY, by=rule)
    assert advance(member, rule, at(3 * DAY)).status is Health.UNKNOWN


def test_a_signal_that_proves_the_return_of_a_zone_is_never_forgotten() -> None:
    failback = ZoneIsolation.model_fields["failback"].get_default(call_default_factory=True)
    rule = ZoneIsolation.model_construct(
        **{**the_rule().model_dump(include={"toleration_seconds", "recovery_seconds", "treat_unknown_as"}),
           "name": "z", "signals": None, "failback": failback.model_copy(update={"signals": ("old", "third")})},
    )  # fmt: skip
    member = spoken(renamed(by=rule), "new", 60, 2 * HOUR, by=rule)
    assert advance(member, rule, at(2 * HOUR)).status is Health.UNKNOWN


def test_silence_is_no_recovery_of_a_target_that_is_considered_unhealthy() -> None:
    rule = the_rule()
    member = spoken(renamed(first="Unhealthy"), "new", 60, STALE + DAY)
    assert (member.settled, member.status) == (False, Health.UNKNOWN)
    assert advance(member, rule, at(STALE + DAY)).status is Health.HEALTHY


def test_where_all_are_silent_nothing_is_forgotten() -> None:
    member = advance(renamed(), the_rule(), at(3 * DAY))
    assert (member.status, set(member.signals)) == (Health.UNKNOWN, {"new", "old"})
    assert deadline(member, the_rule()) is None


def test_when_sources_come_back_the_first_to_speak_does_not_speak_for_all() -> None:
    member = spoken(renamed(), "new", 3 * HOUR, 4 * HOUR)
    assert (member.status, set(member.signals)) == (Health.UNKNOWN, {"new", "old"})
    assert advance(told(member, "new", 4 * HOUR), the_rule(), at(4 * HOUR)).status is Health.HEALTHY


def test_what_never_goes_stale_is_never_forgotten_and_makes_nothing_forgotten() -> None:
    rule = the_rule()
    for forever in ("old", "new"):
        member = Member(Health.UNKNOWN, at(0))
        for name, status in (("old", Health.UNKNOWN), ("new", Health.HEALTHY)):
            until = None if name == forever else at(STALE)
            member = heard(member, name, Signal(status, at(0), until), rule)
        member = advance(spoken(member, "new", 60, 2 * HOUR) if forever == "old" else member, rule, at(2 * HOUR))
        assert (set(member.signals), combined(member, rule, at(2 * HOUR))) == ({"new", "old"}, Health.UNKNOWN)


WORDS = st.lists(
    st.tuples(st.integers(0, 5000), st.sampled_from(["old", "new", "third"]), st.sampled_from(list(Health))),
    min_size=1, max_size=12,
)  # fmt: skip


@given(WORDS, st.lists(st.integers(0, 60_000), max_size=10))
@settings(max_examples=100)
def test_looking_more_often_changes_nothing_of_what_is_forgotten(words: Any, looks: list[int]) -> None:
    rule = the_rule(tolerationSeconds=20, recoverySeconds=50)

    def result(extra: list[int]) -> Member:
        member, now = Member(Health.UNKNOWN, at(0)), 0
        for pause, name, status in words:
            for look in sorted(look for look in extra if now < look < now + pause):
                member = advance(member, rule, at(look))
            now += pause
            member = heard(member, name, Signal(status, at(now), at(now + 2000)), rule)
        return advance(member, rule, at(now + 2 * DAY))

    assert result([]) == result(looks)


# --- members of patterns -------------------------------------------------------------------------------------------


def seen(target: str, when: float, status: str = "Healthy") -> Observation:
    return Observation(target=target, status=Health(status), signal="s", observed_at=at(when), stale_seconds=STALE)


DESK = LimiterRule(name="@all", guards=Guards(max_unhealthy=1), guarded=("w",), peers=("cluster/*",))
QUORUM = QuorumRule(
    name="@quorum.q",
    source=Quorum.model_validate(
        {"name": "q", "kind": "Quorum", "members": "cluster/*", "target": "zone/p/a", "unhealthyAt": 1}, strict=False
    ),
)


def lived(rule: LimiterRule | QuorumRule, names: str, begin: int, end: int, group: Group | None = None) -> Group:
    """These speak every minute; the group is looked at when it asks for it, and is stored each time."""
    group = group or new_group(rule, "*")
    for when in range(begin, end, 60):
        while group.next_deadline is not None and group.next_deadline < at(when):
            group = load_group(dump_group(decide(rule, group, (), group.next_deadline).group))
        group = decide(rule, group, [seen(f"cluster/{name}", when) for name in names], at(when)).group
    return group


def members(group: Group) -> str:
    return "".join(sorted(target.removeprefix("cluster/") for target in group.members))


def test_a_peer_that_is_gone_for_a_day_is_no_peer_any_more() -> None:
    group = lived(DESK, "abcde", 0, 60)
    group = lived(DESK, "ab", 60, DAY, group)
    assert (peer_health(DESK, group).total, peer_health(DESK, group).bad) == (5, 3)
    group = decide(DESK, group, [seen("cluster/a", DAY)], at(DAY)).group
    assert (peer_health(DESK, group).total, peer_health(DESK, group).bad) == (2, 0)


def test_the_group_asks_to_be_looked_at_when_a_peer_is_to_be_forgotten() -> None:
    group = new_group(DESK, "*")
    for target, stale in (("cluster/a", 2 * DAY), ("cluster/b", STALE)):
        one = seen(target, 0).model_copy(update={"stale_seconds": stale})
        group = decide(DESK, group, [one], at(0)).group
    group = decide(DESK, group, (), at(STALE)).group
    assert group.next_deadline is not None
    assert second(group.next_deadline) == DAY
    assert members(decide(DESK, group, (), at(DAY)).group) == "a"


def test_sources_that_are_all_away_empty_no_census() -> None:
    group = lived(DESK, "abcde", 0, 120)
    group = decide(DESK, group, (), at(5 * DAY)).group
    assert (peer_health(DESK, group).total, peer_health(DESK, group).bad) == (5, 5)
    # And when they are back they do not all speak in one moment.
    group = decide(DESK, group, [seen("cluster/a", 5 * DAY)], at(5 * DAY)).group
    assert (peer_health(DESK, group).total, peer_health(DESK, group).bad) == (5, 4)
    group = lived(DESK, "abcd", 5 * DAY + 60, 5 * DAY + 1200, group)
    assert (peer_health(DESK, group).total, peer_health(DESK, group).bad) == (4, 0)


def test_a_cluster_that_the_inventory_lists_is_bad_while_its_health_is_unknown() -> None:
    group = lived(DESK, "ab", 0, 60)
    group = decide(DESK, group, [Cluster(name="b", observed_at=at(60))], at(60)).group
    group = lived(DESK, "a", 60, DAY + HOUR, group)
    assert (peer_health(DESK, group).total, peer_health(DESK, group).bad) == (2, 1)


def test_a_quorum_forgets_members_that_are_gone() -> None:
    group = lived(QUORUM, "ab", 0, 60)
    group = lived(QUORUM, "a", 60, DAY, group)
    assert group.state.said is not None
    assert group.state.said.status is Health.UNKNOWN
    group = lived(QUORUM, "a", DAY, DAY + 120, group)
    assert members(group) == "a"
    assert group.state.said is not None
    assert group.state.said.status is Health.HEALTHY


@given(
    st.lists(
        st.tuples(st.integers(0, 200), st.sampled_from("abc"), st.sampled_from(list(Health))), min_size=1, max_size=15
    ),
    st.lists(st.integers(0, 3000), max_size=15),
)
@many(100)
def test_members_that_are_not_looked_at_have_not_changed(words: Any, looks: list[int]) -> None:
    """A quorum looks only at the member of the newest observation, until another member's deadline comes."""

    def said(extra: list[int]) -> list[Any]:
        group, now, out = new_group(QUORUM, "*"), 0, list[Any]()
        for pause, name, status in [*words, (500, "a", Health.HEALTHY)]:
            moments = sorted(look for look in extra if now < look < now + pause)
            while True:
                alarm = second(group.next_deadline) if group.next_deadline is not None else now + pause
                moment = min([alarm, *moments])
                if moment >= now + pause:
                    break
                moments = [one for one in moments if one > moment]
                group = decide(QUORUM, group, (), at(moment)).group
            now += pause
            decision = decide(QUORUM, group, [seen(f"cluster/{name}", now, status.value)], at(now))
            group = decision.group
            out.append(
                (now, group.state.said and group.state.said.status, {k: m.status for k, m in group.members.items()})
            )
        return out

    assert said([]) == said(looks)
