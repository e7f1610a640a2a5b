"""A world for sources: a clock, a scheduler, real connections on loopback, and a reader of what they publish."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from bus.messages import Fact, Health, Observation, Route
from reactor.clients.clusters import Clusters
from reactor.clients.instant_queries import Queries
from reactor.demo.kube import EmulatedCluster, Emulator
from reactor.runtime.clock import Clock
from reactor.settings.server_settings import ClusterSettings as ClusterSettings
from reactor.sources.probes.addresses import probing_session
from reactor.sources.republisher import Republisher
from reactor.sources.source_context import SourceContext

WAIT_SECONDS = 60


class Heard:
    """Facts that sources reported, in order."""

    def __init__(self) -> None:
        self.observations: list[Observation] = []
        self.routes: list[Route] = []
        self.inventory: list[Fact] = []
        """Inventory besides routes: clusters, copies, zones."""
        self._more = asyncio.Condition()

    async def tell(self, fact: Fact) -> None:
        async with self._more:
            if isinstance(fact, Observation):
                self.observations.append(fact)
            elif isinstance(fact, Route):
                self.routes.append(fact)
            else:
                self.inventory.append(fact)
            self._more.notify_all()

    def last(self, target: str) -> Observation | None:
        return next((o for o in reversed(self.observations) if o.target == target), None)

    def statuses(self, target: str) -> list[Health]:
        """Each status once for as long as it lasted."""
        found: list[Health] = []
        for observation in self.observations:
            if observation.target == target and found[-1:] != [observation.status]:
                found.append(observation.status)
        return found

    async def heard(self, holds: Callable[[Fact], bool]) -> Fact:
        """Wait for an inventory fact like this."""
        await self.until(lambda: any(holds(fact) for fact in self.inventory))
        return next(fact for fact in reversed(self.inventory) if holds(fact))

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_SECONDS), self._more:
            await self._more.wait_for(holds)

    async def status(self, target: str, status: Health) -> Observation:
        """Wait until the target is said to be this."""

        def holds() -> bool:
            last = self.last(target)
            return last is not None and last.status is status

        await self.until(holds)
        last = self.last(target)
        assert last is not None
        return last


class Repeats:
    """Counts how often a source looks whether something is to be said again."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._more = asyncio.Condition()
        looks = Republisher._refresh

        async def counted(republisher: Republisher[Any], seen: Any) -> None:
            await looks(republisher, seen)
            async with self._more:
                self.count += 1
                self._more.notify_all()

        monkeypatch.setattr(Republisher, "_refresh", counted)

    async def more(self, count: int) -> None:
        """Wait for so many of them."""
        wanted = self.count + count
        async with asyncio.timeout(WAIT_SECONDS), self._more:
            await self._more.wait_for(lambda: self.count >= wanted)


@pytest.fixture
def repeats(monkeypatch: pytest.MonkeyPatch) -> Repeats:
    return Repeats(monkeypatch)


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
async def emulator() -> AsyncIterator[Emulator]:
    """Clusters on loopback."""
    async with Emulator(clock=Clock().now) as running:
        yield running


@pytest.fixture
async def east(emulator: Emulator) -> EmulatedCluster:
    return emulator.cluster("east", bookmark_seconds=0.2)


@pytest.fixture
async def clusters(emulator: Emulator, east: EmulatedCluster, tmp_path: Path) -> AsyncIterator[Clusters]:
    """The settings' clusters: east."""
    path = tmp_path / "kubeconfig"
    document = {
        "clusters": [{"name": "east", "cluster": {"server": emulator.url("east")}}],
        "users": [{"name": "us", "user": {}}],
        "contexts": [{"name": "east", "context": {"cluster": "east", "user": "us"}}],
        "current-context": "east",
    }
    path.write_text(yaml.safe_dump(document))
    known = Clusters({"east": ClusterSettings(kubeconfig=path)})
    yield known
    await known.close()


DESCRIBED = {"east": ClusterSettings(labels={"tier": "gold"}, region="eu", zone="eu-1a", provider="metal")}
"""Settings of the cluster with all of its properties."""


class NoPrometheus:
    """Used where no query is made."""

    async def query(self, promql: str, *, at: datetime | None = None) -> list[Any]:
        raise AssertionError(promql, at)


@pytest.fixture
def prometheus() -> Mapping[str, Queries]:
    return {"main": NoPrometheus()}


@pytest.fixture
async def world(heard: Heard, clusters: Clusters, prometheus: Mapping[str, Queries]) -> AsyncIterator[SourceContext]:
    async with probing_session() as session:
        made = SourceContext(
            clock=Clock(), tell=heard.tell, clusters=clusters, prometheus=prometheus, http=session,
            described=DESCRIBED, health_scripts=frozenset({"lua", "cel"}),
        )  # fmt: skip
        made.scheduler.start()
        yield made
        made.scheduler.shutdown(wait=False)


@pytest.fixture(autouse=True)
def no_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources start at once: tests have no other probes to make room for."""
    monkeypatch.setattr("reactor.sources.ticker.SPREAD_SECONDS_MAX", 0.0)


Running = Callable[[Awaitable[None]], Any]


@pytest.fixture
def running() -> Running:
    """Run a source for the length of a `with`."""

    @asynccontextmanager
    async def start(source: Awaitable[None]) -> AsyncIterator[asyncio.Task[None]]:
        task: asyncio.Task[None] = asyncio.ensure_future(source)
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    return start
