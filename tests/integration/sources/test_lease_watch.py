"""Heartbeats, from a control plane that has its bad days."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bus.messages import Health
from reactor.demo.kube import CutWatch, EmulatedCluster, Fault, Hang, JsonObject, Reset, StatusFault
from reactor.demo.kube.faults import FaultEffect
from reactor.sources.kubernetes import lease_watch
from reactor.sources.kubernetes.heartbeats import Heartbeats
from reactor.sources.source_context import SourceContext
from rules.rulefile.sources import LeaseWatch
from tests.integration.roles.conftest import eventually
from tests.integration.sources.conftest import Heard, Running

MEMBER = "cluster/member1"
NAMESPACE = "karmada-cluster"


def source(**more: Any) -> LeaseWatch:
    quick: dict[str, Any] = {"monitor_seconds": 0.1, "grace_seconds": 1, "startup_grace_seconds": 1.5}
    return LeaseWatch(name="heartbeats", kind="LeaseWatch", cluster="east", **quick | more)


def lease(name: str = "member1", renewed: str = "2001-01-01T00:00:00.000000Z", **labels: str) -> JsonObject:
    return {
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": renewed},
    }  # fmt: skip


@asynccontextmanager
async def beating(east: EmulatedCluster, name: str = "member1") -> AsyncIterator[None]:
    """Renew a Lease ten times a second, with a clock that is 25 years late."""

    async def beat() -> None:
        number = 0
        while True:
            number += 1
            renewed = f"2001-01-01T00:00:00.{number:06}Z"
            east.patch("leases", name, {"spec": {"renewTime": renewed}}, NAMESPACE)
            await asyncio.sleep(0.1)

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_renewed_lease_is_healthy_and_a_silent_one_unknown(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.create(lease(team="pay"))
    async with running(lease_watch.run(source(), world)):
        async with beating(east):
            said = await heard.status(MEMBER, Health.HEALTHY)
            assert (said.labels["team"], said.signal) == ("pay", "heartbeats")
        said = await heard.status(MEMBER, Health.UNKNOWN)
        assert said.detail.startswith("no renewal of its Lease seen for")
        async with beating(east):
            await heard.status(MEMBER, Health.HEALTHY)
    assert heard.statuses(MEMBER) == [Health.HEALTHY, Health.UNKNOWN, Health.HEALTHY]


async def test_a_lease_that_is_merely_there_is_never_healthy(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    # A timestamp of the far future is no proof either: it is another machine's clock.
    east.create(lease(renewed="2199-01-01T00:00:00.000000Z"))
    async with running(lease_watch.run(source(), world)):
        east.patch("leases", "member1", {"metadata": {"labels": {"seen": "yes"}}}, NAMESPACE)
        await heard.status(MEMBER, Health.UNKNOWN)
    assert heard.statuses(MEMBER) == [Health.UNKNOWN]


async def test_each_lease_speaks_for_its_own_target(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    for name in ("member1", "member2"):
        east.create(lease(name))
    async with beating(east), running(lease_watch.run(source(target="custom/{cluster}/{name}"), world)):
        await heard.status("custom/east/member1", Health.HEALTHY)
        await heard.status("custom/east/member2", Health.UNKNOWN)
    assert heard.statuses("custom/east/member1") == [Health.HEALTHY]


@pytest.mark.parametrize("outage", [Reset(), Hang(), StatusFault(500)], ids=repr)
async def test_time_in_which_the_watch_is_lost_is_no_silence_of_theirs(
    world: SourceContext,
    heard: Heard,
    east: EmulatedCluster,
    running: Running,
    monkeypatch: pytest.MonkeyPatch,
    outage: FaultEffect,
) -> None:
    monkeypatch.setattr("reactor.clients.reflector.GRACE_SECONDS", 0.1)
    looked: list[float] = []
    look = Heartbeats.look

    def counted(beats: Heartbeats, now: float, *, listening: bool) -> None:
        looked.append(now)
        look(beats, now, listening=listening)

    monkeypatch.setattr(Heartbeats, "look", counted)
    east.create(lease())
    async with beating(east), running(lease_watch.run(source(), world)):
        await heard.status(MEMBER, Health.HEALTHY)
        lost = east.faults.add(Fault(outage, resource="leases", verb="read"))
        east.cut_watches()
        async with asyncio.timeout(60):
            while not lost.hits:
                await asyncio.sleep(0.01)
        looks = len(looked)
        async with asyncio.timeout(60):
            while len(looked) < looks + 20:  # twice the grace
                await asyncio.sleep(0.01)
    assert heard.statuses(MEMBER) == [Health.HEALTHY]


async def test_a_watch_that_comes_back_is_believed_again(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.create(lease())
    async with running(lease_watch.run(source(), world)):
        async with beating(east):
            await heard.status(MEMBER, Health.HEALTHY)
            lost = east.faults.add(Fault(StatusFault(500), resource="leases", verb="read", count=3))
            east.cut_watches()
            async with asyncio.timeout(60):
                while lost.hits < 3:
                    await asyncio.sleep(0.01)
        await heard.status(MEMBER, Health.UNKNOWN)


async def test_a_cut_watch_and_a_forgotten_history_are_caught_up_with(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.create(lease())
    async with beating(east), running(lease_watch.run(source(), world)):
        await heard.status(MEMBER, Health.HEALTHY)
        for _ in range(3):
            east.cut_watches(CutWatch())
            east.compact()
            await eventually(lambda: not east.watches)
            await eventually(lambda: bool(east.watches))
        east.create(lease("late"))
        async with beating(east, "late"):
            await heard.status("cluster/late", Health.HEALTHY)  # what came before it has been taken
    assert heard.statuses(MEMBER) == [Health.HEALTHY]


async def test_a_lease_that_is_gone_says_nothing_any_more(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.create(lease())
    made = lease_watch.LeaseWatcher(source(), world, await world.clusters.get("east"))
    async with running(made.run()):
        async with beating(east):
            await heard.status(MEMBER, Health.HEALTHY)
        east.delete("leases", "member1", NAMESPACE)
        async with asyncio.timeout(60):
            while made.publisher._standing.keys:
                await asyncio.sleep(0.01)


async def test_of_several_leases_of_one_target_the_silent_one_speaks(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    for name in ("one", "two"):
        east.create(lease(name))
    async with running(lease_watch.run(source(target="custom/agents"), world)), beating(east, "one"):
        async with beating(east, "two"):
            await heard.status("custom/agents", Health.HEALTHY)
        await heard.status("custom/agents", Health.UNKNOWN)
        east.delete("leases", "two", NAMESPACE)
        await heard.status("custom/agents", Health.HEALTHY)
    assert heard.statuses("custom/agents") == [Health.HEALTHY, Health.UNKNOWN, Health.HEALTHY]
