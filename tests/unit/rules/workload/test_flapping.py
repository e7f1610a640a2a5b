"""Flapping is bounded: the copies are as many as they were, plus those that are in a grace period."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rules.engine.group_codec import dump_group, load_group
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.kinds.workload.state import WorkloadState
from rules.rehearsal.simulation import Simulator
from rules.rehearsal.simulation import at as at_
from tests.unit.rules.builders import Event, outcome, rule_set
from tests.unit.rules.workload.builders import (
    OBJECT,
    acts,
    cluster,
    clusters,
    copy,
    divided,
    in_time,
    member,
    placement,
    workload,
    workload_rule,
)

NAMES = [f"m{number}" for number in range(1, 9)]
DUPLICATED = {"replicaSchedulingType": "Duplicated"}


def rule(scheduling: dict[str, Any], grace: int = 600, **keys: Any) -> dict[str, Any]:
    behaviour = {"gracePeriodSeconds": grace}
    return workload_rule(
        placement=placement(*NAMES, tolerate=20, replicaScheduling=scheduling), recoverySeconds=5,
        failover={"cluster": behaviour}, **keys,
    )  # fmt: skip


def outages(name: str, count: int, *, every: float = 100, lasts: float = 40) -> list[Event]:
    return [
        cluster(name, status, at=100 + every * number + later)
        for number in range(count)
        for status, later in (("Unhealthy", 0), ("Healthy", lasts))
    ]


def states(given_rule: dict[str, Any], events: Sequence[Event], until: int = 3000) -> Iterator[WorkloadState]:
    """The workload's state after each second in which anything happens, stored and read again."""
    group_store = GroupStore(Routing.of(rule_set(given_rule)))
    player = Simulator(group_store, outcomes=True)
    events = in_time(events)
    for second in sorted({*(when for when, _ in events), *map(float, range(0, until, 10))}):
        list(player.until(at_(second)))
        list(player.take([fact for when, fact in events if when == second], at_(second)))
        found = group_store.groups.get(("nginx", OBJECT))
        if found is not None:
            state = load_group(dump_group(found)).state
            assert state == found.state
            yield found.state


def fleet(copies: dict[str, int], **more: Any) -> list[Event]:
    return [workload(copies, **more), *clusters("Healthy", *NAMES), *(member(name) for name in NAMES)]


def test_six_outages_of_one_cluster_do_not_fill_the_fleet() -> None:
    events = [*fleet({"m1": 2}), *outages("m1", 6)]
    for state in states(rule(DUPLICATED), events):
        assert set(state.copies) <= {"m1", "m2"}
        assert len(state.copies.keys() - state.moves.keys()) <= 1


def test_the_copy_that_was_placed_in_vain_goes_when_the_old_one_is_seen_healthy() -> None:
    events = [*fleet({"m1": 2}), *outages("m1", 1), copy("m1", "Healthy", at=200)]
    assert acts(rule(DUPLICATED), *events) == [
        (120.0, "Place", {"m2": 2}), (120.0, "Evict", "m1"), (145.0, "CancelEviction", "m1"), (145.0, "Evict", "m2"),
        (200.0, "Purge", "m2"),
    ]  # fmt: skip


def test_it_stays_where_the_old_one_is_not_healthy_and_takes_its_place_when_that_fails_again() -> None:
    events = [
        *fleet({"m1": 2}),
        *outages("m1", 2, every=300),
        copy("m1", "Unhealthy", at=200),
        copy("m2", "Healthy", at=430),
    ]
    came = acts(rule(DUPLICATED), *events, until=439)
    assert came[3:] == [
        (145.0, "Evict", "m2"),
        (420.0, "CancelEviction", "m2"),
        (420.0, "Evict", "m1"),
        (430.0, "Purge", "m1"),
    ]


@pytest.mark.parametrize("replicas", [None, 6])
def test_divided_replicas_do_not_grow_with_each_outage(replicas: int | None) -> None:
    events = [*fleet({"m1": 3, "m2": 3}, replicas=replicas), *outages("m1", 6)]
    for state in states(rule(divided(m1=1, m2=1)), events):
        assert sum(copy.replicas or 0 for copy in state.copies.values()) <= 9
        assert set(state.copies) <= {"m1", "m2"}


@pytest.mark.parametrize("cluster_mode", ["Directly", "Never"])
def test_a_copy_placed_in_vain_for_a_bad_one_goes_however_failed_clusters_are_left(cluster_mode: str) -> None:
    """It used to stay for good, without a grace period, where only application failover is Gracefully."""
    application = {"decisionConditions": {"tolerationSeconds": 20}, "gracePeriodSeconds": 300}
    given_rule = rule(DUPLICATED) | {"failover": {"cluster": {"purgeMode": cluster_mode}, "application": application}}
    events = [*fleet({"m1": 2}), copy("m1", "Unhealthy", at=10), copy("m1", "Healthy", at=50)]
    assert acts(given_rule, *events) == [
        (30.0, "Place", {"m2": 2}), (30.0, "Evict", "m1"), (55.0, "CancelEviction", "m1"), (55.0, "Evict", "m2"),
        (55.0, "Purge", "m2"),
    ]  # fmt: skip


def test_replicas_that_are_divided_over_more_clusters_than_before_are_not_taken_for_too_many() -> None:
    """Two copies of three replicas; what one leaves goes to three clusters. Two of them were evicted at once."""
    given_rule = rule({**divided(), "weightPreference": {"dynamicWeight": "AvailableReplicas"}})
    events = [*fleet({"m1": 3, "m2": 3}, replicas=6), cluster("m1", "Unhealthy", at=10)]
    events += [copy(name, "Healthy", at=100) for name in NAMES[1:]]
    came = acts(given_rule, *events)
    assert [one[1:] for one in came if one[1] != "Place"] == [("Evict", "m1"), ("Purge", "m1")]
    assert sum(came[0][2].values()) == 6


ZONES = {"m1": "b", "m2": "a", "m3": "c", "m4": "a", "m5": "b"}


def zoned(names: list[str], *constraints: tuple[str, int, int]) -> tuple[dict[str, Any], list[Event]]:
    """A rule that divides replicas, with constraints (field, least, most), and its clusters, in zones."""
    given_rule = rule(divided(**dict.fromkeys(names, 1)))
    given_rule["placement"] |= {
        "clusterAffinity": {"clusterNames": names},
        "spreadConstraints": [
            {"spreadByField": field, "minGroups": least, "maxGroups": most} for field, least, most in constraints
        ],
    }
    return given_rule, [*clusters("Healthy", *names), *(member(name, zone=ZONES[name]) for name in names)]


def test_of_divided_copies_one_goes_without_which_the_constraint_is_kept() -> None:
    """m4 has only grown, and is the last by name; without m1, which is new, there are two zones again."""
    given_rule, known = zoned(["m1", "m2", "m3", "m4"], ("zone", 2, 2), ("cluster", 3, 3))
    events = [workload({"m2": 4, "m3": 3, "m4": 2}, replicas=9), *known, *outages("m3", 1)]
    came = acts(given_rule, *events, until=200)
    assert ("CancelEviction", "m3") in [one[1:] for one in came]
    assert [one[2] for one in came if one[1] == "Evict"] == ["m3", "m1"]


def test_what_comes_back_does_not_make_room_for_copies_that_break_a_constraint() -> None:
    """While m2 is back beside m1 and m5 there are two zones, of one: a third must not follow from that."""
    given_rule, known = zoned(["m1", "m2", "m3", "m5"], ("zone", 1, 1), ("cluster", 1, 2))
    events = [workload({"m2": 2}, replicas=2), *known, *outages("m2", 2, every=150), cluster("m5", "Unhealthy", at=200)]
    for state in states(given_rule, events, until=600):
        stay = state.copies.keys() - state.moves.keys()
        assert len({ZONES[name] for name in stay}) <= 1, (state.copies, state.moves)


def test_divided_copies_on_fewer_clusters_than_before_are_not_joined_by_one_that_breaks_a_constraint() -> None:
    given_rule, known = zoned(["m1", "m2", "m4"], ("zone", 1, 1), ("cluster", 1, 3))
    events = [workload({"m2": 2, "m4": 2}, replicas=4), *known, *outages("m4", 1, lasts=400), *outages("m2", 1)]
    for state in states(given_rule, events, until=600):
        stay = state.copies.keys() - state.moves.keys()
        assert len({ZONES[name] for name in stay}) <= 1, (state.copies, state.moves)


def test_what_is_placed_for_a_cluster_that_recovers_meanwhile_is_too_many_as_well() -> None:
    """The outcome of the Place comes after the recovery."""
    given_rule = rule(DUPLICATED)
    group_store = GroupStore(Routing.of(rule_set(given_rule)))
    player = Simulator(group_store, outcomes=False)
    for when, fact in in_time([*fleet({"m1": 2}), cluster("m1", "Unhealthy", at=10), cluster("m1", "Healthy", at=40)]):
        list(player.until(at_(when)))
        list(player.take([fact], at_(when)))
    list(player.until(at_(50)))
    list(player.take([outcome(f"nginx/{OBJECT}/1", "Done", at=51)[1]], at_(51)))
    state = group_store.groups["nginx", OBJECT].state
    assert state is not None
    assert (state.wanted_copies, list(state.moves)) == (1, ["m2"])


FLAPS = st.lists(
    st.tuples(st.sampled_from(NAMES[:5]), st.sampled_from(["Healthy", "Unhealthy", "Unknown"]), st.integers(1, 1500)),
    max_size=40,
)  # fmt: skip
COPIES = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(["Healthy", "Unhealthy"]), st.integers(1, 1500)), max_size=20
)


@given(st.sampled_from([1, 2, 3]), st.sampled_from([DUPLICATED, divided()]), FLAPS, COPIES, st.booleans())
@settings(max_examples=150)
@pytest.mark.long
def test_no_history_leaves_more_copies_than_there_were(
    count: int, scheduling: Any, flaps: Any, told: Any, limited: bool
) -> None:
    """By any failure history: as many as there were, each of the others in a grace period; never fewer."""
    spread = {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": count, "maxGroups": count}]}
    given_rule = rule(scheduling)
    if limited:
        given_rule["placement"] |= spread
    events = [*fleet(dict.fromkeys(NAMES[:count], 2), replicas=2 if scheduling is DUPLICATED else 2 * count)]
    events += [cluster(name, status, at=second) for name, status, second in flaps]
    events += [copy(name, status, at=second) for name, status, second in told]
    for state in states(given_rule, events, until=1600):
        staying = state.copies.keys() - state.moves.keys()
        replacing = [name for name, move in state.moves.items() if not move.placed]
        assert state.copies
        whole = 2 if scheduling is DUPLICATED else 2 * count
        assert max(copy.replicas or 0 for copy in state.copies.values()) <= whole, "each at most the whole number"
        if scheduling is DUPLICATED or limited:
            assert len(staying) <= count, (state.copies, state.moves)
            assert len(staying) + len(replacing) >= count or any(move.surplus for move in state.moves.values())


def test_what_is_too_many_is_needed_again_only_where_it_is_well_and_keeps_the_constraints() -> None:
    given_rule = rule(DUPLICATED)
    given_rule["placement"]["spreadConstraints"] = [
        {"spreadByField": field, "minGroups": 2, "maxGroups": 2} for field in ("region", "cluster")
    ]
    events = [workload({"m1": 2, "m2": 2}, replicas=2), *clusters("Healthy", *NAMES)]
    events += [member(name, region="abc"[index % 3]) for index, name in enumerate(NAMES)]
    events += [cluster(name, "Unhealthy", at=1) for name in ("m1", "m2", "m5")]
    events += [cluster(name, "Healthy", at=22) for name in ("m1", "m2")]  # m3 and m4 are too many
    events += [cluster("m3", "Unhealthy", at=22), cluster("m2", "Unhealthy", at=28)]
    said = [one for one in acts(given_rule, *events, until=200) if one[0] > 30]
    assert said == [(48, "Place", {"m1": 2, "m8": 2}), (48, "Evict", "m2")], "not m3, nor m4 beside m1"


def test_what_is_too_many_is_not_needed_for_a_copy_whose_cluster_has_just_come_back() -> None:
    both = {"minGroups": 2, "maxGroups": 2}
    given_rule = rule(DUPLICATED) | {
        "placement": placement("m1", "m2", "m3", tolerate=20, spread=both, replicaScheduling=DUPLICATED)
    }
    events = [workload({"m1": 2, "m2": 2}, replicas=2), *clusters("Healthy", "m1", "m2", "m3")]
    events += [cluster("m1", "Unhealthy", at=10), cluster("m1", "Healthy", at=40)]  # m3 is too many
    events += [cluster(name, "Unhealthy", at=50) for name in ("m2", "m3")]  # m2 has no place to go
    events += [cluster("m2", "Healthy", at=100), cluster("m3", "Healthy", at=102)]
    assert [one for one in acts(given_rule, *events, until=200) if one[0] > 45] == []


@given(st.sampled_from(["region", "zone", "provider"]), st.sampled_from([(1, 1), (2, 2), (1, 2)]), FLAPS, COPIES)
@example(
    "region",
    (2, 2),
    [
        ("m1", "Unhealthy", 25),
        ("m2", "Unhealthy", 1),
        ("m3", "Healthy", 43),
        ("m3", "Unhealthy", 22),
        ("m5", "Unhealthy", 1),
    ],
    [("m3", "Healthy", 22)],
)  # the copy that goes when another comes back is not the only one of its region
@example(
    "region", (1, 1), [("m1", "Healthy", 22), ("m1", "Unhealthy", 1), ("m4", "Unhealthy", 1)], []
)  # both have left their region, and one of them would come back to it alone
@example(
    "region",
    (2, 2),
    [
        ("m1", "Healthy", 22),
        ("m1", "Unhealthy", 1),
        ("m2", "Healthy", 22),
        ("m2", "Unhealthy", 1),
        ("m2", "Unhealthy", 28),
        ("m3", "Unhealthy", 22),
        ("m5", "Unhealthy", 1),
    ],
    [],
)
@example(
    "region",
    (2, 2),
    [
        ("m1", "Healthy", 507),
        ("m1", "Unhealthy", 1),
        ("m2", "Healthy", 22),
        ("m2", "Unhealthy", 1),
        ("m2", "Unhealthy", 492),
        ("m3", "Unhealthy", 492),
        ("m5", "Unhealthy", 1),
    ],
    [],
)  # more have to leave than are missing
@settings(max_examples=150)
@pytest.mark.long
def test_no_history_breaks_a_spread_constraint_that_was_kept(
    field: str, bounds: tuple[int, int], flaps: Any, told: Any
) -> None:
    """At most: the copies that are to stay, with as many of those for which nothing is placed yet as are missing."""
    groups = {name: "abc"[index % 3] for index, name in enumerate(NAMES)}
    given_rule = rule(DUPLICATED)
    given_rule["placement"]["spreadConstraints"] = [
        {"spreadByField": field, "minGroups": bounds[0], "maxGroups": bounds[1]},
        {"spreadByField": "cluster", "minGroups": 2, "maxGroups": 2},
    ]
    first = ("m1", "m4") if bounds[1] == 1 else ("m1", "m2")
    events = [workload(dict.fromkeys(first, 2), replicas=2), *clusters("Healthy", *NAMES)]
    where: dict[str, dict[str, Any]] = {name: {field: group} for name, group in groups.items()}
    events += [member(name, **fields) for name, fields in where.items()]
    events += [cluster(name, status, at=second) for name, status, second in flaps]
    events += [copy(name, status, at=second) for name, status, second in told]
    for state in states(given_rule, events, until=1600):
        away = {name for name, move in state.moves.items() if move.placed}
        stands = {groups[name] for name in state.copies.keys() - away}
        stay = state.copies.keys() - state.moves.keys()
        pending = [name for name, move in state.moves.items() if not move.placed and not move.surplus]
        missing = min(max((state.wanted_copies or len(stay)) - len(stay), 0), len(pending))
        held = [{groups[name] for name in (*stay, *chosen)} for chosen in combinations(pending, missing)]
        assert min(map(len, held)) <= bounds[1], (state.copies, state.moves)
        if not any(move.surplus for move in state.moves.values()):
            assert len(stands) >= bounds[0], (state.copies, state.moves)
