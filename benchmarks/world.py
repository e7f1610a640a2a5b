"""The whole service over an emulated cluster, for benchmarks that go from end to end."""

from __future__ import annotations

import asyncio
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bus.embedded import EmbeddedServer
from bus.jetstream import JetStreamBus
from bus.topology import GROUPS
from reactor.demo.kube import EmulatedCluster, Emulator, write_kubeconfig
from reactor.demo.kube.writelog import LoggedWrite, WriteLog
from reactor.runtime.clock import Clock
from rules.engine.group_codec import load_group
from rules.summary import route_of
from tests.ports import free_port

NAMESPACE = "shop"
RULES = """
apiVersion: reactor/v1
sources:
- {name: readiness, kind: EndpointsWatch, cluster: east}
rules:
- name: moved
  kind: TrafficFailover
  mode: Enforce
  route: {cluster: east, kind: TrafficSplit, selector: failover.linkerd.io/controlled-by=linkerd-failover}
"""


class Moves(WriteLog):
    """Counts the reactor's effective writes to routes as they are made: to look through all writes each millisecond
    takes the emulated server's turn, and counted as the reactor's."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.last_at = 0.0
        """Time of the last move, on the clock of `time.perf_counter`."""
        self._made = asyncio.Event()

    def append(self, write: LoggedWrite) -> None:
        super().append(write)
        if write.effective and write.resource == "trafficsplits" and write.manager == "alert-reactor":
            self.count += 1
            self.last_at = time.perf_counter()
            self._made.set()

    async def reach(self, count: int, seconds: float = 120.0) -> None:
        """Wait until there are so many."""
        async with asyncio.timeout(seconds):
            while self.count < count:
                self._made.clear()
                await self._made.wait()


class DefaultSync(EmbeddedServer):
    """nats-server without settings: what was acknowledged is on the disk within two minutes."""

    def configuration(self) -> str:
        """Ours, without what it says of the disk."""
        return super().configuration().replace("sync_interval: always, ", "")


@dataclass(frozen=True, slots=True)
class World:
    """One cluster with routes, and a reactor that looks after them in a process of its own."""

    cluster: EmulatedCluster
    url: str
    """URL of the cluster's API."""
    bus: JetStreamBus
    webhook: str
    """URL for posts, without the source."""
    config: Path
    """The reactor's settings file."""
    pid: int
    """The reactor's process; its embedded nats-server is its child."""
    moves: Moves
    """The reactor's writes to routes."""

    def break_service(self, number: int) -> None:
        """The primary of this route loses its last ready endpoint."""
        self.cluster.set_endpoints(NAMESPACE, f"app{number}", ready=0, not_ready=1)

    async def known(self, routes: int, members: int) -> None:
        """Wait until the reactor has seen every route and so many of its backends."""
        async with asyncio.timeout(120):
            while True:
                entries = await self.bus.store(GROUPS).entries("*.group.>")
                groups = [load_group(entry.value) for entry in entries]
                if len(groups) == routes and all(route_of(group) and len(group.members) >= members for group in groups):
                    return
                await asyncio.sleep(0.2)


async def until(holds: Callable[[], bool], seconds: float = 120.0) -> None:
    """Wait until something holds, looking every millisecond."""
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.001)


@asynccontextmanager
async def world(routes: int, rules: str = RULES, *, lax: bool = False) -> AsyncIterator[World]:
    """A cluster with this many routes of three backends each, and a reactor at work on them.

    `lax`: over a nats-server with the default sync_interval, in place of the embedded one, which syncs always.
    """
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sim = await stack.enter_async_context(Emulator(clock=Clock().now))
        sim.writes = moves = Moves()
        cluster = sim.cluster("east")
        for number in range(routes):
            _route(cluster, number)
        write_kubeconfig(folder / "kubeconfig", sim)
        (folder / "rules.yaml").write_text(rules, "utf-8")
        store = f'store: "{folder}/nats"'
        if lax:
            server = await stack.enter_async_context(DefaultSync(folder / "lax"))
            store = f'url: "{server.url}"'
        settings = SETTINGS.format(folder=folder, bus=store, port=(port := free_port()))
        (folder / "reactor.yaml").write_text(settings, "utf-8")
        pid = await stack.enter_async_context(_reactor(folder))
        url = server.url if lax else (folder / "nats" / "url").read_text("utf-8").strip()
        bus = await stack.enter_async_context(JetStreamBus.connect(url, name="bench"))
        webhook = f"http://127.0.0.1:{port}/v1/alerts"
        yield World(cluster, sim.url("east"), bus, webhook, folder / "reactor.yaml", pid, moves)


@asynccontextmanager
async def _reactor(folder: Path) -> AsyncIterator[int]:
    """A reactor process; gives its process id."""
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "reactor.cli.main", "run", "--config", str(folder / "reactor.yaml"), stderr=log
        )
    try:
        await until(lambda: b"webhooks on" in (folder / "log").read_bytes() or process.returncode is not None)
        if process.returncode is not None:
            raise RuntimeError((folder / "log").read_text("utf-8"))
        yield process.pid
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()


SETTINGS = """
ruleFiles: ["{folder}/rules.yaml"]
clusters: {{east: {{kubeconfig: "{folder}/kubeconfig", context: east}}}}
bus: {{{bus}}}
receiver: {{listen: "127.0.0.1:{port}"}}
health: {{listen: "127.0.0.1:0"}}
logLevel: warning
"""


def _route(cluster: EmulatedCluster, number: int) -> None:
    services = [f"app{number}", f"app{number}-west", f"app{number}-central"]
    for service in services:
        cluster.set_endpoints(NAMESPACE, service, ready=1)
    cluster.create(
        {
            "apiVersion": "split.smi-spec.io/v1alpha2",
            "kind": "TrafficSplit",
            "metadata": {
                "name": f"app{number}", "namespace": NAMESPACE,
                "labels": {"failover.linkerd.io/controlled-by": "linkerd-failover"},
            },
            "spec": {
                "service": f"app{number}",
                "backends": [{"service": service, "weight": int(i == 0)} for i, service in enumerate(services)],
            },
        }
    )  # fmt: skip
