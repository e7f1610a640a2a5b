"""A zone counts as isolated when it is, and when the others are in service."""

from __future__ import annotations

from typing import Any

import pytest

from bus.messages import Outcome
from reactor.actions.zone.carrier import carry_out
from reactor.actions.zone.isolation_context import ZoneWorld
from reactor.clients.instant_queries import QueryFailed, QueryRefused, Sample
from reactor.clients.kubernetes_port import KubeApi
from reactor.demo.kube import EmulatedCluster
from tests.integration.actions.zone.aws import Vpc
from tests.integration.actions.zone.scene import Hurried, Reactor, node, pod


def reactor(api: KubeApi, **settings: Any) -> Reactor:
    return Reactor({"prod": api}, Hurried(), settings)


async def test_other_zones_that_are_not_well_are_named(east: EmulatedCluster, api: KubeApi) -> None:
    east.create(node("a1"))
    for number in range(4):
        east.create(node(f"b{number}", "us-east-1b", ready=number > 1))
    us = reactor(api)
    outcome = await us.once(us.action("Verify"))
    assert (outcome.status, outcome.reason) == ("Failed", "NotAsAsked")
    assert outcome.detail == "2 of 4 nodes of the other zones are Ready, fewer than 75%; not Ready: b0, b1"
    east.set_condition("nodes", "b0", kind="Ready", status="True")
    assert (await us.once(us.action("Verify"))).status == "Done"


async def test_a_zone_with_no_other_beside_it_is_not_verified(east: EmulatedCluster, api: KubeApi) -> None:
    east.create(node("a1"))
    us = reactor(api)
    assert (await us.once(us.action("Verify"))).reason == "NotAsAsked"


async def test_a_pod_that_cannot_leave_keeps_it_from_being_verified(east: EmulatedCluster, api: KubeApi) -> None:
    for name, zone in (("a1", "us-east-1a"), ("b1", "us-east-1b")):
        east.create(node(name, zone))
    east.create(pod("stays", "a1", finalizers=["test/slow"]))
    us = reactor(api)
    outcome = await us.once(us.action("Verify"))
    assert (outcome.reason, outcome.detail.split(";")[0]) == (
        "InProgress", "1 pods are left in us-east-1a, 1 of them on their way out"
    )  # fmt: skip


async def test_a_subnet_that_another_writer_opened_is_cut_again(east: EmulatedCluster, api: KubeApi, vpc: Vpc) -> None:
    for name, zone in (("a1", "us-east-1a"), ("b1", "us-east-1b")):
        east.create(node(name, zone))
    network = {"provider": "AwsNetworkAcl", "region": "us-east-1", "vpcId": vpc.id}
    us = Reactor({"prod": api}, Hurried(), {"network": network}, ec2=vpc.boto)
    await us.failover()
    vpc.put(vpc.subnets[1], vpc.own[0])
    await us.until_done(us.action("Verify", status="Done"))
    assert vpc.picture()[0] == ["deny", "deny", "deny", "own-1"]


async def asked(us: Reactor, api: KubeApi, answer: list[float] | Exception) -> Outcome:
    async def cluster(_: str) -> KubeApi:
        return api

    async def nowhere(_: str) -> Any:
        raise AssertionError

    async def query(prometheus: str, promql: str) -> list[Sample]:
        assert (prometheus, promql) == ("main", "up == 1")
        if isinstance(answer, Exception):
            raise answer
        return [Sample({}, value, 0.0) for value in answer]

    return await carry_out(us.action("Verify"), ZoneWorld(cluster, nowhere, query), us.clock)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ([1.0, 2.0], None),
        ([], "NotAsAsked"),
        ([1.0, 0.0], "NotAsAsked"),
        ([float("nan")], "NotAsAsked"),
        (QueryFailed("no answer"), "ApiUnavailable"),
        (QueryRefused("401"), "QueryRefused"),
    ],
)
async def test_a_query_has_the_last_word(
    east: EmulatedCluster, api: KubeApi, answer: list[float] | Exception, reason: str | None
) -> None:
    for name, zone in (("a1", "us-east-1a"), ("b1", "us-east-1b")):
        east.create(node(name, zone))
    us = reactor(api, prometheus="main", query="up == 1")
    outcome = await asked(us, api, answer)
    assert (outcome.status, outcome.reason) == ("Failed" if reason else "Done", reason)
