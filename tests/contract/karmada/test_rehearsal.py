"""A rehearsal shows the state that the carrier leaves when it carries the same actions out."""

from __future__ import annotations

import pytest

from bus.messages import Hold, Place, Workload
from reactor.clients.kubernetes_port import JsonObject
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.rehearsal.simulation import Simulator, at
from tests.contract.karmada.cases import AGGREGATED, duplicated
from tests.contract.karmada.conftest import Carrier
from tests.contract.karmada.test_moves import moment
from tests.karmada.planes import NAMESPACE, Plane
from tests.unit.rules.builders import Event, rule_set, seen
from tests.unit.rules.workload.builders import cluster, clusters, placement, workload_rule

MEMBERS = ("m1", "m2", "m3")


def outage(name: str, copies: dict[str, int]) -> list[Event]:
    """m2 is bad for longer than its toleration, and back before the new copy is Healthy."""
    told = Workload(
        namespace=NAMESPACE, kind="Deployment", name=name, replicas=max(copies.values()), clusters=copies,
        observed_at=at(0),
    )  # fmt: skip
    health = [seen(f"workload/m2/{NAMESPACE}/Deployment/{name}", "Healthy", at=when) for when in (0, 99)]
    dips = [cluster("m2", "Unhealthy", at=10), cluster("m2", "Healthy", at=100)]
    events: list[Event] = [(0, told), *clusters("Healthy", *MEMBERS), *health, *dips]
    return sorted(events, key=lambda event: event[0])


@pytest.mark.parametrize(
    ("policy", "copies"),
    [(duplicated(1), {"m2": 2}), (duplicated(2), {"m1": 2, "m2": 2}), (AGGREGATED, {"m2": 3})],
    ids=["room for one", "room for two", "divided"],
)
async def test_a_cancelled_eviction_leaves_what_the_rehearsal_showed(
    plane: Plane, carrier: Carrier, policy: JsonObject, copies: dict[str, int]
) -> None:
    await plane.deploy("shown", policy, copies, max(copies.values()))
    for name in {*MEMBERS} - copies.keys():
        plane.sick(name, "shown")
    since = moment()
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": NAMESPACE, "name": "shown"}
    body = placement(*MEMBERS, tolerate=50) | policy
    rule = workload_rule(carrier="Karmada", placement=body, resourceSelectors=[selector], recoverySeconds=0)
    store = GroupStore(Routing.of(rule_set(rule)))
    player, came = Simulator(store, outcomes=True), []
    for when, fact in outage("shown", copies):
        for one in (*player.until(at(when)), *player.take([fact], at(when))):
            assert not isinstance(one.what, Hold), one.what
            outcome = await carrier.do(one.what)
            assert outcome.status == "Done", outcome
            came.append(type(one.what).__name__)
            if isinstance(one.what, Place):
                assert set(await plane.answered("shown")) == set(one.what.clusters)
    assert came == ["Place", "Evict", "CancelEviction"]
    state = store.groups["nginx", f"{NAMESPACE}/Deployment/shown"].state
    assert await plane.answered("shown") == {name: copy.replicas for name, copy in state.copies.items()} == copies
    assert await plane.tasks("shown") == []
    plane.never_out("shown", since)
