"""No failover breaks a spread constraint that was kept: by cluster, region, zone, provider or label."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.messages import Health
from rules.kinds.workload.candidates import SchedulingRequest
from rules.kinds.workload.model import Policy
from rules.kinds.workload.placement import OnInsufficient, Placement
from rules.kinds.workload.scheduling import land
from rules.kinds.workload.spread import Insufficient
from rules.kinds.workload.state import ClusterState, Copy, Relocation, WorkloadState
from rules.rehearsal.simulation import at
from tests.examples import many
from tests.unit.rules.workload.builders import acts, cluster, clusters, holds, member, workload, workload_rule
from tests.unit.rules.workload.cases_division import SCHEDULING

FLEET = [f"{region}{number}" for region in "abc" for number in (1, 2, 3)]
FIELDS = ("region", "zone", "provider", "tier")
"""The last one is a label."""


def constraint(field: str, least: int, most: int) -> dict[str, Any]:
    key = "spreadByLabel" if field == "tier" else "spreadByField"
    return {key: field, "minGroups": least, "maxGroups": most}


def rule(*constraints: dict[str, Any], scheduling: str = "duplicated") -> dict[str, Any]:
    keys = {"spreadConstraints": list(constraints), "replicaScheduling": SCHEDULING[scheduling]}
    return workload_rule(placement={"clusterTolerations": [
        {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 100}]} | keys)  # fmt: skip


def of_group(field: str, group: str) -> dict[str, Any]:
    return {"labels": {"tier": group}} if field == "tier" else {field: group}


def fleet(field: str, groups: dict[str, str]) -> list[Any]:
    return [member(name, **of_group(field, group)) for name, group in groups.items()]


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("scheduling", ["duplicated", "static", "dynamic", "aggregated"])
def test_two_copies_of_one_group_never_end_in_two_groups(field: str, scheduling: str) -> None:
    spread = constraint(field, 1, 1), {"spreadByField": "cluster", "minGroups": 2, "maxGroups": 2}
    groups = {"a1": "a", "a2": "a", "b1": "b", "b2": "b"}
    events = [
        workload({"a1": 2, "a2": 2}, replicas=2 if scheduling == "duplicated" else 4), *clusters("Healthy", *groups),
        *fleet(field, groups), cluster("a1", "Unhealthy", at=10),
    ]  # fmt: skip
    given_rule = rule(*spread, scheduling=scheduling)
    assert acts(given_rule, *events) == []
    assert (110.0, "NoLandingPlace") in holds(given_rule, *events)
    third = [*events, member("a3", **of_group(field, "a"))]
    placed = acts(given_rule, *third, cluster("a3", "Healthy", at=0))[0]
    assert placed[:2] == (110.0, "Place")
    assert set(placed[2]) == {"a2", "a3"}


def test_static_weights_keep_to_the_number_of_clusters_from_before() -> None:
    given_rule = rule({"spreadByField": "cluster", "minGroups": 2, "maxGroups": 2}, scheduling="static")
    names = ("m1", "m2", "m3", "m4")
    events = [workload({"m1": 2, "m2": 2}, replicas=4), *clusters("Healthy", *names), *(member(one) for one in names)]
    assert acts(given_rule, *events, cluster("m1", "Unhealthy", at=10))[0][2] == {"m2": 2, "m3": 2}


def test_aggregated_replicas_are_not_drawn_together_below_the_fewest_clusters() -> None:
    given_rule = rule({"spreadByField": "cluster", "minGroups": 2, "maxGroups": 3}, scheduling="aggregated")
    names = ("m1", "m2", "m3")
    events = [
        workload({"m1": 2, "m2": 2}, replicas=4), *clusters("Healthy", *names),
        *(member(one, available_replicas=50) for one in names), cluster("m1", "Unhealthy", at=10),
    ]  # fmt: skip
    assert set(acts(given_rule, *events)[0][2]) == {"m2", "m3"}


@pytest.mark.parametrize("scheduling", ["dynamic", "aggregated"])
def test_a_copy_that_stays_on_a_bad_cluster_counts_where_replicas_are_divided(scheduling: str) -> None:
    names = ["m1", "m2", "m3", "m4"]
    events = [workload({"m1": 3, "m2": 2, "m3": 1}, replicas=6), *clusters("Healthy", *names)]
    events += [cluster("m1", "Unhealthy", at=10), cluster("m3", "Unhealthy", at=60)]
    given_rule = rule(constraint("cluster", 3, 3), scheduling=scheduling)
    second, verb, plan = acts(given_rule, *events, until=120)[0]
    assert (second, verb, {*plan}, sum(plan.values())) == (110.0, "Place", {"m2", "m3", "m4"}, 6)
    assert plan["m3"] == 1


def test_a_deleted_cluster_is_still_known_by_its_region() -> None:
    spread = constraint("region", 2, 2), {"spreadByField": "cluster", "minGroups": 2, "maxGroups": 2}
    groups = {"a1": "a", "a2": "a", "b1": "b", "b2": "b"}
    events = [
        workload({"a1": 2, "b1": 2}), *clusters("Healthy", *groups), *fleet("region", groups),
        cluster("a1", "Unhealthy", at=10), member("a1", exists=False, at=20),
    ]  # fmt: skip
    assert acts(rule(*spread), *events)[0][2] == {"a2": 2, "b1": 2}


def test_a_copy_leaves_though_more_stay_for_a_while_than_a_constraint_allows() -> None:
    """A copy that came back a moment ago goes again later: it must not keep a bad one in its place."""
    body = {"spreadConstraints": [{"spreadByField": "cluster", "minGroups": 3, "maxGroups": 3}]}
    policy = Policy(placement=Placement.model_validate(body, strict=False, by_alias=True))
    names = ("m1", "m2", "m3", "m4", "m5")
    state = WorkloadState(
        exists=True, copies={name: Copy(2) for name in names}, wanted_copies=3, wanted_on=("m1", "m2", "m3"),
        moves={"m4": Relocation("Cluster", "ClusterUnhealthy", "")},
    )  # fmt: skip
    fleet_ = {name: ClusterState(listed=True, status=Health.HEALTHY) for name in names}
    question = SchedulingRequest(policy, state, fleet_, ["m4"], OnInsufficient.KEEP, at(0))
    assert land(question) == dict.fromkeys(("m1", "m2", "m3", "m5"), 2)


# --- any fleet ---------------------------------------------------------------------------------------------------


def drawn_clusters(data: Any) -> dict[str, ClusterState]:
    few = st.sampled_from(["x", "y", "z", ""])
    return {
        name: ClusterState(
            listed=True, known=True, region=data.draw(few), zone=data.draw(few), provider=data.draw(few),
            labels={"tier": value} if (value := data.draw(few)) else {},
            status=data.draw(st.sampled_from([Health.HEALTHY, Health.HEALTHY, Health.HEALTHY, Health.UNHEALTHY])),
            available=data.draw(st.sampled_from([None, 0, 2, 9, 50])),
        )
        for name in FLEET[: data.draw(st.integers(2, len(FLEET)))]
    }  # fmt: skip


def drawn_constraints(data: Any) -> list[dict[str, Any]]:
    out = []
    for field in data.draw(st.lists(st.sampled_from(["cluster", *FIELDS]), unique=True, max_size=3)):
        least = data.draw(st.integers(0, 3))
        out.append(constraint(field, least, data.draw(st.sampled_from([0, *range(max(least, 1), 4)]))))
    return out


def group_of(field: str, name: str, state: ClusterState) -> str:
    if field == "cluster":
        return name
    return state.labels.get("tier", "") if field == "tier" else str(getattr(state, field))


def is_met(one: dict[str, Any], names: set[str], fleet_: dict[str, ClusterState]) -> bool:
    """Judged by an onlooker: how many groups hold a copy."""
    field = one.get("spreadByLabel") or one["spreadByField"]
    groups = {group_of(field, name, fleet_[name]) for name in names}
    return bool(max(one["minGroups"], 1) <= len(groups) <= (one["maxGroups"] or 99))


@given(st.data())
@many(300)
def test_no_fleet_and_no_constraint_is_landed_in_a_way_that_breaks_it(data: Any) -> None:
    fleet_ = drawn_clusters(data)
    spread = drawn_constraints(data)
    kind = data.draw(st.sampled_from(sorted(SCHEDULING)))
    body = {"replicaScheduling": SCHEDULING[kind], "spreadConstraints": spread}
    policy = Policy(placement=Placement.model_validate(body, strict=False, by_alias=True))
    holding = data.draw(st.lists(st.sampled_from(sorted(fleet_)), unique=True, min_size=1, max_size=4))
    leaving = holding[: data.draw(st.integers(1, len(holding)))]
    each = data.draw(st.integers(0, 3))
    copies = {name: Copy(each) for name in holding}
    state = WorkloadState(
        replicas=each if kind == "duplicated" else each * len(holding), exists=True, copies=copies,
        moves={name: Relocation("Cluster", "ClusterUnhealthy", "") for name in leaving},
    )  # fmt: skip
    insufficient = data.draw(st.sampled_from(list(OnInsufficient)))
    try:
        plan = land(SchedulingRequest(policy, state, fleet_, leaving, insufficient, at(0)))
    except Insufficient:
        return
    assert set(holding) - set(leaving) <= plan.keys()
    for one in spread:
        if all(group_of(one.get("spreadByLabel") or one["spreadByField"], name, fleet_[name]) for name in holding):
            assert not is_met(one, set(holding), fleet_) or is_met(one, set(plan), fleet_), (one, plan)
