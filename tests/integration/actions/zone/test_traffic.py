"""Traffic leaves the zone: the cloud's load balancers by a label, our own rules by a word of ours."""

from __future__ import annotations

from typing import Any

from reactor.actions.zone.carrier import carry_out
from reactor.actions.zone.isolation_context import ZoneWorld
from reactor.clients.kubernetes_port import KubeApi
from reactor.demo.kube import EmulatedCluster, Emulator
from tests.integration.actions.zone.scene import Hurried, Reactor, node

TARGETS = ["service/prod/shop/checkout-a", "service/prod/shop/cart-a"]


def reactor(api: KubeApi, **settings: Any) -> Reactor:
    return Reactor({"prod": api}, Hurried(), settings)


async def test_our_traffic_rules_are_told_of_the_targets_that_the_rule_lists(
    east: EmulatedCluster, api: KubeApi
) -> None:
    east.create(node("a1"))
    us = reactor(api, targets=TARGETS)
    await us.failover(["ShiftTraffic"])
    assert [(one.target, one.status, one.signal) for one in us.said] == [
        (target, "Unhealthy", "zone-isolation") for target in TARGETS
    ]
    us.said.clear()
    await us.until_done(us.action("ShiftTraffic", undo=True))
    assert [(one.target, one.status) for one in us.said] == [(target, "Healthy") for target in TARGETS]
    assert all(one.stale_seconds is None for one in us.said)  # it holds until the zone is back, however long that takes


async def test_each_check_of_the_isolation_says_it_again_as_the_bus_may_have_lost_it(
    east: EmulatedCluster, api: KubeApi
) -> None:
    for name, zone in (("a1", "us-east-1a"), ("b1", "us-east-1b")):
        east.create(node(name, zone))
    us = reactor(api, targets=TARGETS)
    await us.failover()
    us.said.clear()
    await us.once(us.action("Verify", status="Done", generation=9))
    assert [(one.target, one.status) for one in us.said] == [(target, "Unhealthy") for target in TARGETS]


async def test_without_targets_nothing_is_said(east: EmulatedCluster, api: KubeApi) -> None:
    east.create(node("a1"))
    us = reactor(api)
    await us.failover(["ShiftTraffic"])
    assert us.said == []


async def test_requests_in_flight_are_waited_for_from_the_decision_on(
    emulator: Emulator, east: EmulatedCluster, api: KubeApi
) -> None:
    east.create(node("a1"))
    us = reactor(api, drainSeconds=60)
    action = us.action("ShiftTraffic")
    assert (await us.once(action)).detail.endswith("requests in flight have 60 s more")
    us.clock.forward(61)
    outcome = await us.once(action)
    assert (outcome.status, outcome.wrote) == ("Done", False)
    assert len(emulator.writes.effective("nodes", manager="alert-reactor")) == 1


async def test_a_process_that_publishes_nothing_does_not_claim_that_it_has(east: EmulatedCluster, api: KubeApi) -> None:
    east.create(node("a1"))
    us = reactor(api, targets=TARGETS)

    async def cluster(_: str) -> KubeApi:
        return api

    async def nowhere(_: str) -> Any:
        raise AssertionError

    outcome = await carry_out(us.action("ShiftTraffic"), ZoneWorld(cluster, nowhere), us.clock)
    assert (outcome.status, outcome.reason) == ("Failed", "NotConnected")
