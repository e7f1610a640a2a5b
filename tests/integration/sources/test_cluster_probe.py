"""A cluster's API server, on its good and bad days."""

from __future__ import annotations

import asyncio
import resource
import time
from typing import Any

import pytest

from bus.messages import Cluster as ClusterFact
from bus.messages import Health
from reactor.demo.kube import EmulatedCluster, Fault, Hang, Html, Reset, StatusFault
from reactor.demo.kube.faults import FaultEffect
from reactor.sources.probes import cluster_probe
from reactor.sources.source_context import SourceContext
from rules.rulefile.sources import ClusterProbe
from tests.integration.sources.conftest import Heard, Running

EAST = "cluster/east"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_probe, "APART_SECONDS", 0.05)


def source(**more: Any) -> ClusterProbe:
    quick: dict[str, Any] = {"every_seconds": 0.1, "failure_seconds": 0.5, "success_seconds": 0.5}
    return ClusterProbe(name="api", kind="ClusterProbe", cluster="east", **quick | more)


@pytest.mark.parametrize("effect", [StatusFault(500), StatusFault(503), Html(), Hang(), Reset()], ids=repr)
async def test_a_server_that_fails_is_unhealthy_until_it_has_recovered(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, effect: FaultEffect
) -> None:
    async with running(cluster_probe.run(source(), world)):
        said = await heard.status(EAST, Health.HEALTHY)
        assert said.detail == "/readyz was answered 200"
        outage = east.faults.add(Fault(effect))
        said = await heard.status(EAST, Health.UNHEALTHY)
        assert said.detail.startswith("ClusterNotReachable")
        outage.remove()
        await heard.status(EAST, Health.HEALTHY)
    assert heard.statuses(EAST) == [Health.HEALTHY, Health.UNHEALTHY, Health.HEALTHY]


async def test_a_process_without_descriptors_knows_nothing_of_a_server(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    async with running(cluster_probe.run(source(), world)):
        await heard.status(EAST, Health.HEALTHY)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        east.faults.add(Fault(Reset()))  # what is open ends
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
        try:
            said = await heard.status(EAST, Health.UNKNOWN)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert said.detail.startswith("this process has no file descriptors left")
    assert Health.UNHEALTHY not in heard.statuses(EAST)


async def test_a_failed_try_is_no_failed_reading(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    async with running(cluster_probe.run(source(failure_seconds=0, refresh_seconds=1), world)):
        await heard.status(EAST, Health.HEALTHY)
        # One: whether more fit into the two seconds of a reading hangs on how busy the machine is (see the unit tests).
        hiccup = east.faults.add(Fault(StatusFault(500), count=1))
        async with asyncio.timeout(60):
            while not hiccup.hits:
                await asyncio.sleep(0.01)
        told = len(heard.observations)
        await heard.until(lambda: len(heard.observations) > told)
    assert heard.statuses(EAST) == [Health.HEALTHY]


async def test_an_outage_shorter_than_the_threshold_changes_nothing(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    async with running(cluster_probe.run(source(failure_seconds=30, refresh_seconds=1), world)):
        await heard.status(EAST, Health.HEALTHY)
        outage = east.faults.add(Fault(StatusFault(500)))
        async with asyncio.timeout(60):
            while outage.hits < 8:
                await asyncio.sleep(0.01)
        await heard.until(lambda: "so far" in heard.observations[-1].detail)
    assert heard.statuses(EAST) == [Health.HEALTHY]


async def test_after_a_start_a_bad_reading_is_said_only_when_it_has_lasted(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    outage = east.faults.add(Fault(StatusFault(503)))
    async with running(cluster_probe.run(source(failure_seconds=30), world)):
        async with asyncio.timeout(60):
            while outage.hits < 8:
                await asyncio.sleep(0.01)
        assert not [one for one in heard.observations if one.target == EAST]
        outage.remove()
        await heard.status(EAST, Health.HEALTHY)
    assert {one.status for one in heard.observations if one.target == EAST} == {Health.HEALTHY}
    told = len(heard.observations)
    east.faults.add(Fault(StatusFault(503)))
    began = time.monotonic()
    async with running(cluster_probe.run(source(failure_seconds=2), world)):
        await heard.status(EAST, Health.UNHEALTHY)
    assert time.monotonic() - began >= 2
    assert {one.status for one in heard.observations[told:] if one.target == EAST} == {Health.UNHEALTHY}


async def test_refused_credentials_are_unknown_and_not_unhealthy(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.faults.add(Fault(StatusFault(403)))
    async with running(cluster_probe.run(source(), world)):
        said = await heard.status(EAST, Health.UNKNOWN)
    assert "credentials" in said.detail


async def test_what_the_settings_say_of_the_cluster_is_its_inventory(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.faults.add(Fault(Reset()))
    async with running(cluster_probe.run(source(refresh_seconds=1), world)):
        fact = await heard.heard(lambda fact: isinstance(fact, ClusterFact))
        assert isinstance(fact, ClusterFact)
        assert (fact.name, fact.labels, fact.exists) == ("east", {"tier": "gold"}, True)
        assert (fact.region, fact.zone, fact.provider) == ("eu", "eu-1a", "metal")
        assert fact.available_replicas is None
        # It is published again while the server is away: it is in the settings.
        await heard.until(lambda: len(heard.inventory) >= 2)
