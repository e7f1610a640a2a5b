"""Copies that are spread by region and zone: a failover keeps the constraint or finds no place, and never takes the
last healthy copy away. Karmada's scheduler looks at regions alone, and at these only where nothing is divided by static
weights.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import NamedTuple

import pytest

from bus.messages import Health
from reactor.actions.karmada.answer import answered, scheduler_refusal
from reactor.clients.kubernetes_port import JsonObject
from reactor.runtime.clock import Clock
from rules.kinds.workload.candidates import SchedulingRequest
from rules.kinds.workload.model import Policy
from rules.kinds.workload.placement import OnInsufficient
from rules.kinds.workload.scheduling import land
from rules.kinds.workload.spread import Insufficient
from rules.kinds.workload.state import ClusterState, Copy, WorkloadState
from tests.contract.karmada.cases import AGGREGATED, DYNAMIC, cancel, duplicated, place, purge, weighted
from tests.contract.karmada.conftest import Carrier
from tests.karmada.planes import MEMBERS, Plane

SITES = {"m1": "east", "m2": "east", "m3": "west"}


class Case(NamedTuple):
    """A workload before and after it leaves a cluster; no clusters afterwards: there is no place."""

    sites: tuple[int, int]
    """At least and at most so many regions or zones."""
    clusters: tuple[int, int]
    how: JsonObject
    before: dict[str, int]
    leaves: str
    after: set[str]
    back: bool = False
    """The scheduler puts the copy back after the purge: the cluster is well, and its region has more room."""

    def placement(self, field: str) -> JsonObject:
        listed = ((field, self.sites), ("cluster", self.clusters))
        spread = [{"spreadByField": one, "minGroups": least, "maxGroups": most} for one, (least, most) in listed]
        return self.how | {"spreadConstraints": spread}


FULL, STATIC = duplicated(), weighted(m1=1, m2=1, m3=1)
CASES = {
    "full: to the other cluster of its region": Case((1, 1), (1, 1), FULL, {"m1": 2}, "m1", {"m2"}),
    "full: one in each": Case((2, 2), (2, 2), FULL, {"m1": 2, "m3": 2}, "m1", {"m2", "m3"}),
    "full: the only cluster of its region": Case((2, 2), (2, 2), FULL, {"m1": 2, "m3": 2}, "m3", set()),
    "full: both in one, and a third only elsewhere": Case((1, 1), (2, 2), FULL, {"m1": 2, "m2": 2}, "m1", set()),
    "full: both in one, and two may be": Case((1, 2), (2, 2), FULL, {"m1": 2, "m2": 2}, "m1", {"m2", "m3"}, True),
    "divided by room: one in each": Case((2, 2), (2, 2), DYNAMIC, {"m1": 2, "m3": 2}, "m1", {"m2", "m3"}),
    "divided by room: the only cluster of its region": Case((2, 2), (2, 2), DYNAMIC, {"m1": 2, "m3": 2}, "m3", set()),
    "divided by room: both in one": Case((1, 1), (2, 2), DYNAMIC, {"m1": 2, "m2": 2}, "m2", set()),
    "drawn together: within its region": Case((1, 1), (1, 1), AGGREGATED, {"m1": 3}, "m1", {"m2"}),
    "by weights: one of three": Case((2, 2), (2, 3), STATIC, {"m1": 1, "m2": 1, "m3": 1}, "m1", {"m2", "m3"}),
    "by weights: the only one of its region": Case(
        (2, 2), (2, 3), STATIC, {"m1": 1, "m2": 1, "m3": 1}, "m3", set()
    ),
}  # fmt: skip


def moment() -> float:
    return Clock().now().timestamp()


async def spread_out(plane: Plane, field: str = "region", **sites: str) -> None:
    """Let the members be at these sites."""
    for member in MEMBERS:
        await plane.located(member, **{field: (sites or SITES)[member]})


def planned(placement: JsonObject, before: dict[str, int], leaves: str) -> dict[str, int]:
    """Ask the rule where it places the workload. Raises Insufficient (NoLandingPlace)."""
    each = max(before.values()) if placement["replicaScheduling"]["replicaSchedulingType"] == "Duplicated" else None
    copies = {name: Copy(count) for name, count in before.items()}
    well = ClusterState(listed=True, status=Health.HEALTHY, available=200)
    known = {name: replace(well, region=SITES[name], zone=SITES[name]) for name in MEMBERS}
    state = WorkloadState(
        exists=True, copies=copies, replicas=each if each is not None else sum(before.values()),
        wanted_copies=len(before), wanted_replicas=sum(before.values()),
    )  # fmt: skip
    policy = Policy.model_validate_json(json.dumps({"placement": placement, "failover": {"cluster": {}}}))
    return land(SchedulingRequest(policy, state, known, {leaves}, OnInsufficient.KEEP, Clock().now()))


@pytest.mark.parametrize("field", ["region", "zone"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_a_failover_keeps_the_constraint_or_finds_no_place(
    plane: Plane, carrier: Carrier, case: Case, field: str
) -> None:
    placement = case.placement(field)
    await spread_out(plane, field)
    replicas = max(case.before.values()) if case.how is FULL else sum(case.before.values())
    await plane.deploy("web", placement, case.before, replicas)
    since = moment()
    if not case.after:
        with pytest.raises(Insufficient):
            planned(placement, case.before, case.leaves)
        assert await plane.answered("web") == case.before
        plane.never_out("web", since)
        return
    plan = planned(placement, case.before, case.leaves)
    assert {*plan} == case.after
    outcome = await carrier.do(place("web", plan, case.leaves))
    assert (outcome.status, outcome.reason) == ("Done", None)
    await plane.healthy("web", *{*case.before, *case.after})
    assert (await carrier.do(purge("web", case.leaves, generation=2))).status == "Done"
    now = await plane.answered("web")
    assert now == (case.before if case.back and field == "region" else plan)
    assert not await plane.tasks("web")
    assert case.sites[0] <= len({SITES[name] for name in now}) <= case.sites[1]
    plane.never_out("web", since)


ONE_REGION = Case((1, 1), (1, 1), FULL, {"m2": 2}, "m2", {"m3"}).placement("region")


async def test_a_larger_region_takes_a_copy_away_from_the_smaller_one_that_has_it(plane: Plane) -> None:
    """The ground: room for the whole workload counts before where it is, at any change of the binding."""
    await spread_out(plane)
    await plane.deploy("web", ONE_REGION, {"m2": 2}, 2)
    for member in ("m1", "m2"):
        await plane.taints(member, "reactor/brownout")
    await plane.change("web", {"clusters": None})
    assert await plane.answered("web") == {"m3": 2}
    for member in ("m1", "m2"):
        await plane.taints(member)
    await plane.change("web", {"replicas": 3})
    assert await plane.answered("web") == {"m1": 3}


async def left_for_the_smaller_region(plane: Plane, carrier: Carrier) -> float:
    """Let the copy be on m3, and the task for m2 make no progress, when the larger region is healthy again."""
    await spread_out(plane)
    await plane.deploy("web", ONE_REGION, {"m2": 2}, 2)
    since = moment()
    for member in ("m1", "m2"):
        await plane.taints(member, "reactor/brownout")
    assert (await carrier.do(place("web", {"m3": 2}, "m2"))).reason is None
    await plane.healthy("web", "m2", "m3")
    for member in ("m1", "m2"):
        await plane.taints(member)
    return since


async def test_a_purge_that_would_move_the_last_healthy_copy_to_a_larger_region_is_not_made(
    plane: Plane, carrier: Carrier
) -> None:
    since = await left_for_the_smaller_region(plane, carrier)
    outcome = await carrier.do(purge("web", "m2", generation=2))
    assert (outcome.status, outcome.reason, outcome.wrote) == ("Failed", "SchedulerWouldMove", False)
    assert "m1" in outcome.detail
    assert (await plane.answered("web"), await plane.tasks("web")) == ({"m3": 2}, ["m2"])
    plane.never_out("web", since)


async def test_a_cancelled_eviction_goes_back_to_the_larger_region_where_its_copy_is_healthy(
    plane: Plane, carrier: Carrier
) -> None:
    since = await left_for_the_smaller_region(plane, carrier)
    outcome = await carrier.do(cancel("web", "m2", generation=2))
    assert (outcome.status, outcome.reason) == ("Done", None)
    assert (await plane.answered("web"), await plane.tasks("web")) == ({"m2": 2}, [])
    plane.never_out("web", since)


async def test_an_eviction_is_not_cancelled_where_the_scheduler_would_move_the_last_healthy_copy(
    plane: Plane, carrier: Carrier
) -> None:
    since = await left_for_the_smaller_region(plane, carrier)
    plane.sick("m2", "web")
    await plane.healthy("web", "m3")
    outcome = await carrier.do(cancel("web", "m2", generation=2))
    assert (outcome.status, outcome.reason) == ("Failed", "SchedulerWouldMove")
    assert (await plane.answered("web"), await plane.tasks("web")) == ({"m3": 2}, ["m2"])
    plane.never_out("web", since)


@pytest.mark.parametrize(
    ("most", "says"), [((1, 0), "MinGroups"), ((0, 1), "no clusters available")], ids=["regions", "clusters"]
)
async def test_a_constraint_without_a_most_finds_no_place(plane: Plane, most: tuple[int, int], says: str) -> None:
    """Karmada's documents call it optional."""
    await spread_out(plane)
    await plane.deploy("web", duplicated(1), {"m1": 2}, 2)
    clusters = {"spreadByField": "cluster", "minGroups": 1} | ({"maxGroups": most[0]} if most[0] else {})
    region = {"spreadByField": "region", "minGroups": 1} | ({"maxGroups": most[1]} if most[1] else {})
    spread = [clusters, region] if most[0] else [clusters]
    await plane.change("web", {"placement": {"spreadConstraints": spread}})

    async def told() -> bool:
        return says in scheduler_refusal(await plane.binding("web"))

    await plane.until(told, f"the scheduler says {says}", "web")
    assert not answered(await plane.binding("web"))
    assert await plane.where("web") == {"m1": 2}


async def test_clusters_of_regions_without_a_most_are_one_of_each_region(plane: Plane) -> None:
    await spread_out(plane)
    await plane.deploy("web", duplicated(1), {"m1": 2}, 2)
    spread = [
        {"spreadByField": "region", "minGroups": 2, "maxGroups": 2}, {"spreadByField": "cluster", "minGroups": 2},
    ]  # fmt: skip
    await plane.change("web", {"placement": {"spreadConstraints": spread}})
    now = await plane.answered("web")
    assert {SITES[name] for name in now} == {"east", "west"}
    assert len(now) == 2
