"""Cases about division, spread and reassignment, applied to our functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from bus.messages import Health
from rules.kinds.workload.candidates import SchedulingRequest
from rules.kinds.workload.division import NotEnoughRoom, backwards, by_room, by_tiers, webster
from rules.kinds.workload.model import Policy
from rules.kinds.workload.placement import OnInsufficient, Placement
from rules.kinds.workload.scheduling import land
from rules.kinds.workload.spread import Bounds, GroupOption, Insufficient, Option, best_groups, by_cluster, by_group
from rules.kinds.workload.state import ClusterState, Copy, Relocation, WorkloadState
from rules.rehearsal.simulation import at

Case = dict[str, Any]
SCHEDULING: Mapping[str, Any] = {
    "duplicated": {"replicaSchedulingType": "Duplicated"},
    "static": {"replicaDivisionPreference": "Weighted"},
    "dynamic": {
        "replicaDivisionPreference": "Weighted", "weightPreference": {"dynamicWeight": "AvailableReplicas"},
    },
    "aggregated": {"replicaDivisionPreference": "Aggregated"},
}  # fmt: skip


def policy(kind: str, rules: list[Any] | None = None, spread: Any = None) -> Policy:
    scheduling = dict(SCHEDULING[kind])
    if rules is not None:
        weights = [
            {"targetCluster": {"clusterNames": rule["clusters"]}, "weight": rule["weight"]} for rule in rules
        ]  # fmt: skip
        scheduling["weightPreference"] = {"staticWeightList": weights}
    constraints = [{"minGroups": spread["min"], "maxGroups": spread["max"]}] if spread else []
    body = {"placement": {"replicaScheduling": scheduling, "spreadConstraints": constraints}}
    return Policy(placement=Placement.model_validate(body["placement"], strict=False, by_alias=True))


def landed(
    given: Policy, room: Mapping[str, int | None], bound: Mapping[str, int], leaving: list[str], replicas: int,
    on_insufficient: OnInsufficient = OnInsufficient.PARTIAL, bad: frozenset[str] = frozenset(),
) -> dict[str, int] | str:  # fmt: skip
    """Ask for a landing place: clusters with free room, copies that stay, and names of those that leave."""
    clusters = {
        name: ClusterState(
            listed=True, available=free, status=Health.UNHEALTHY if name in bad else Health.HEALTHY, known=True
        )
        for name, free in room.items()
    }  # fmt: skip
    copies = {name: Copy(count) for name, count in {**bound, **dict.fromkeys(leaving, 0)}.items()}
    state = WorkloadState(
        replicas=replicas, exists=True, copies=copies,
        moves={name: Relocation("Cluster", "ClusterUnhealthy", "") for name in leaving},
    )  # fmt: skip
    try:
        return land(SchedulingRequest(given, state, clusters, leaving, on_insufficient, at(0)))
    except Insufficient as error:
        return error.reason


def divide_webster(case: Case) -> None:
    descending = backwards(case["uid"]) if "uid" in case else case["tie"] == "desc"
    got = webster(case["seats"], case["weights"], case["initial"], descending=descending)
    assert (got or None) == case["expect"]


def divide_legacy(case: Case) -> None:
    assert webster(case["replicas"], case["weights"]) == case["expect_webster"]


def assign_static_weight(case: Case) -> None:
    room = dict.fromkeys(case["candidates"])
    got = landed(policy("static", case["rules"]), room, {}, ["lost"], case["replicas"])
    assert got == {name: count for name, count in case["expect"].items() if count}


def assign_dynamic(case: Case) -> None:
    held, room = case["previous"], case["allocatable"]
    first = [name for name, count in held.items() if count]
    if case["mode"] == "fresh":
        room = {name: free + held.get(name, 0) for name, free in room.items()}
        held = {}
    try:
        got: Any = by_room(
            case["replicas"], room, held, aggregated=case["strategy"] == "aggregated",
            first=first if case["mode"] == "fresh" else (),
        )  # fmt: skip
    except NotEnoughRoom:
        got = "unschedulable"
    assert got == case["expect"]


def assign_duplicated(case: Case) -> None:
    names = case["candidates"]
    leaving = [f"lost-{name}" for name in names]
    got = landed(policy("duplicated"), dict.fromkeys(names), {}, leaving, case["replicas"])
    assert got == case["expect"]


def assign_overflow_tiers(case: Case) -> None:
    tiers = [{one["name"]: one["allocatable"] for one in tier} for tier in case["tiers"]]
    try:
        got: Any = by_tiers(case["replicas"], tiers, case["previous"])
    except NotEnoughRoom:
        got = "unschedulable"
    assert got == case["expect"]


def options(clusters: list[Case]) -> list[Option]:
    return [Option(one["name"], one["score"], one["available"]) for one in clusters]


def select_by_cluster_spread(case: Case) -> None:
    if case["strategy"] == "static":
        room = {one["name"]: one["available"] for one in case["clusters"]}
        got: Any = landed(policy("static", spread=case), room, {}, ["lost"], max(case["replicas"], len(room)))
        assert set(got) == set(case["expect"])
        return
    needs = case["replicas"] if case["strategy"] == "divided" else None
    try:
        got = [one.name for one in by_cluster(options(case["clusters"]), bounds(case), needs)]
    except Insufficient as error:
        got = error.reason
    assert got == case["expect"]


def bounds(case: Case) -> Bounds:
    return Bounds(case["min"], case["max"] or None)


def select_region_groups(case: Case) -> None:
    groups = [GroupOption(one["name"], one["value"], one["weight"]) for one in case["groups"]]
    assert best_groups(groups, bounds(case), case["target"]) == case["expect"]


def select_by_region(case: Case) -> None:
    groups = {name: options(region["clusters"]) for name, region in case["regions"].items()}
    scores = {name: region["score"] for name, region in case["regions"].items()}
    try:
        got: Any = [one.name for one in by_group(groups, scores, bounds(case["region"]), bounds(case["cluster"]))]
    except Insufficient as error:
        got = error.reason
    assert got == case["expect"]


def reassign_duplicated_seed_rule(case: Case) -> None:
    bound, ready = case["bound"], set(case["ready"])
    leaving = [name for name in bound if name not in ready]
    kept = {name: 2 for name in bound if name in ready}
    matching = dict.fromkeys([*case["matching"], *kept])
    bad = frozenset(matching.keys() - ready)
    got = landed(policy("duplicated"), matching, kept, leaving, 2, OnInsufficient.KEEP, bad) if leaving else kept
    names = "no_change" if isinstance(got, str) else sorted(got)
    accepted = case.get("expect_any") or [case["expect"]]
    assert names in [one if isinstance(one, str) else sorted(one) for one in accepted]


def reassign_today(case: Case) -> None:
    room = {one["name"]: one["allocatable"] for one in case["candidates"]}
    given = policy(case["type"], case.get("rules"), case["spread"])
    got = landed(given, room, case["bound"], case["evicting"], case["replicas"])
    assert got == case["expect"]


CHECKS: dict[str, Callable[[Case], None]] = {
    "divide_webster": divide_webster,
    "divide_floor_then_heaviest_legacy": divide_legacy,
    "assign_static_weight": assign_static_weight,
    "assign_dynamic": assign_dynamic,
    "assign_duplicated": assign_duplicated,
    "assign_overflow_tiers": assign_overflow_tiers,
    "select_by_cluster_spread": select_by_cluster_spread,
    "select_region_groups": select_region_groups,
    "select_by_region": select_by_region,
    "reassign_duplicated_seed_rule": reassign_duplicated_seed_rule,
    "reassign_today": reassign_today,
}
