"""One run's world: the emulator, the bus, the reactors, the script that is played, and what stood in the way when."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bus.embedded import EmbeddedServer
from bus.jetstream import JetStreamBus
from bus.topology import GROUPS
from reactor.audit.history import Run, Span
from reactor.clock import Clock
from reactor.demo.kube import Cluster, Emulator, write_kubeconfig
from rules.group import load
from tests.chaos import scene
from tests.chaos.fleet import Member
from tests.chaos.script import Plan, turns
from tests.chaos.stranger import Stranger
from tests.contract.bus.servers import cluster as three_servers

READY_SECONDS = 60.0
SETTLE_SECONDS = 45.0
LINGER_SECONDS = 2.5
"""How long is waited, once all stand where they belong, for somebody who moves them once more."""


@dataclass(slots=True)
class World:
    """What there is, and what a fault can be done to."""

    folder: Path
    script: list[Plan]
    seconds: float
    emulator: Emulator
    cluster: Cluster
    servers: list[EmbeddedServer]
    bus: JetStreamBus
    stranger: Stranger
    members: list[Member] = field(default_factory=list)
    troubles: list[Span] = field(default_factory=list)
    wipes: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What the fault wants to be known, such as a failpoint that was never reached."""
    start: float = 0.0
    cleanup: AsyncExitStack = field(default_factory=AsyncExitStack)
    """What a fault has to take down after the servers have ended."""
    _supervisors: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def server(self) -> EmbeddedServer:
        """The bus, where it is one server."""
        return self.servers[0]

    @property
    def now(self) -> float:
        """Seconds since the script began."""
        return asyncio.get_running_loop().time() - self.start

    @asynccontextmanager
    async def trouble(self, *, recovery: float) -> AsyncIterator[None]:
        """Actions may be late while the block runs, and for `recovery` seconds after it."""
        loop = asyncio.get_running_loop()
        begin = loop.time()
        try:
            yield
        finally:
            self.troubles.append(Span(begin, loop.time() + recovery))

    def member(self, name: str, *, bus: list[str] | None = None, kubeconfig: Path | None = None) -> Member:
        """Make one more reactor; it is not started yet. `bus`, `kubeconfig`: ways in through a proxy."""
        config = scene.settings_file(
            self.folder / f"{name}.yaml", name=name, bus=bus or [server.url for server in self.servers],
            kubeconfig=kubeconfig or self.folder / "kubeconfig", rules=self.folder / "rules.yaml",
            replicas=len(self.servers),
        )  # fmt: skip
        member = Member(config)
        self.members.append(member)
        return member

    def supervise(self, member: Member) -> None:
        """From now on it is started again when it dies."""
        self._supervisors.append(asyncio.create_task(member.keep()))

    async def until_seen(self) -> None:
        """Wait until every route has its group, with both targets and its weights."""
        async with asyncio.timeout(READY_SECONDS):
            while True:
                groups = [load(entry.value) for entry in await self.bus.store(GROUPS).entries("*.group.>")]
                if sum(len(group.members) == 2 and group.route is not None for group in groups) == len(self.script):
                    return
                await asyncio.sleep(0.2)

    async def play(self) -> None:
        """Let the script happen."""
        for turn in turns(self.script):
            await asyncio.sleep(max(turn.at - self.now, 0))
            if turn.plan.told_by_bus:
                self.stranger.turn(scene.target(turn.plan, turn.service), healthy=turn.healthy)
            else:
                self.cluster.set_endpoints(
                    scene.NAMESPACE, turn.service, ready=int(turn.healthy), not_ready=int(not turn.healthy)
                )
        await asyncio.sleep(max(self.seconds - self.now, 0))

    def run(self) -> Run:
        """Give what happened so far, for the checker."""
        writes = self.emulator.writes.effective("trafficsplits", manager="alert-reactor")
        routes = tuple(scene.history(plan, self.start, writes) for plan in self.script)
        return Run(routes, asyncio.get_running_loop().time(), tuple(self.troubles), tuple(self.wipes))

    async def until_settled(self, converged: Callable[[Run], bool]) -> None:
        """Wait until all stands where it belongs, or it is certain that it never will; then a little longer."""
        loop = asyncio.get_running_loop()
        give_up = max([loop.time(), *(trouble.end for trouble in self.troubles)]) + SETTLE_SECONDS
        while loop.time() < give_up and not converged(self.run()):
            await asyncio.sleep(0.2)
        await asyncio.sleep(LINGER_SECONDS)

    async def close(self) -> None:
        """End the reactors."""
        for task in self._supervisors:
            task.cancel()
        await asyncio.gather(*self._supervisors, return_exceptions=True)
        await asyncio.gather(*(member.kill() for member in self.members if member.starts))


@asynccontextmanager
async def world(folder: Path, script: list[Plan], *, seconds: float, nodes: int) -> AsyncIterator[World]:
    """Build it without reactors, and take it down again."""
    async with AsyncExitStack() as stack:
        cleanup = await stack.enter_async_context(AsyncExitStack())
        emulator = await stack.enter_async_context(Emulator(clock=Clock().now))
        cluster = scene.furnish(emulator, script)
        servers: list[EmbeddedServer]
        if nodes == 1:
            servers = [await stack.enter_async_context(EmbeddedServer(folder / "nats"))]
        else:
            servers = list(await stack.enter_async_context(three_servers(folder / "nats")))
        write_kubeconfig(folder / "kubeconfig", emulator)
        (folder / "rules.yaml").write_text(scene.rule_file(script), "utf-8")
        urls = [server.url for server in servers]
        bus = await stack.enter_async_context(JetStreamBus.connect(urls, name="observer"))
        targets = [scene.target(plan, name) for plan in script if plan.told_by_bus for name in (plan.name, plan.second)]
        stranger = Stranger(bus, Clock(), targets)
        built = World(folder, script, seconds, emulator, cluster, servers, bus, stranger, cleanup=cleanup)
        try:
            yield built
        finally:
            await built.close()


async def together(*coroutines: Coroutine[Any, Any, None]) -> None:
    """Run all of them to their ends."""
    async with asyncio.TaskGroup() as group:
        for coroutine in coroutines:
            group.create_task(coroutine)
