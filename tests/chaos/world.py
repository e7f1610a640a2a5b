"""One run's world: the emulator, the bus, the reactors, the script that is played, and what stood in the way when."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
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
from rules.group import Group, load
from tests.chaos import scene
from tests.chaos.fleet import Member
from tests.chaos.nodes import nodes as three_nodes
from tests.chaos.nursery import Nursery, nursery
from tests.chaos.script import Plan, turns
from tests.chaos.stranger import Stranger
from tests.contract.bus.servers import cluster as three_servers

READY_SECONDS = 60.0
SETTLE_SECONDS = 45.0
LOOK_SECONDS = 0.05
STOOD_STILL_SECONDS = 0.5
STOOD_STILL_RECOVERY = 3.0


@dataclass(slots=True)
class Act:
    """One seed's turn in a world: a script of its own, for routes of its own, with a fault of its own."""

    seed: int
    script: list[Plan]
    start: float = 0.0
    """When it began, on the event loop's clock."""
    notes: list[str] = field(default_factory=list)
    """What the fault wants to be known, such as a failpoint that was never reached."""
    happened: dict[tuple[str, float], float] = field(default_factory=dict)
    """When each turn of the script really happened, by route and planned moment: a busy machine is late."""
    stood_still: float = 0.0
    """Seconds for which this machine let the emulator and the truth stand still."""


@dataclass(slots=True)
class World:
    """What there is, and what a fault can be done to. Seeds share it one after the other."""

    folder: Path
    act: Act
    """The one that is played."""
    acts: Sequence[Act]
    seconds: float
    """How long the script of an act is."""
    emulator: Emulator
    cluster: Cluster
    servers: list[EmbeddedServer]
    bus: JetStreamBus
    stranger: Stranger
    nursery: Nursery
    environment: Mapping[str, str] = field(default_factory=dict)
    """Of every reactor."""
    members: list[Member] = field(default_factory=list)
    troubles: list[Span] = field(default_factory=list)
    wipes: list[float] = field(default_factory=list)
    cleanup: AsyncExitStack = field(default_factory=AsyncExitStack)
    """What a fault has to take down after the servers have ended."""
    _supervisors: list[asyncio.Task[None]] = field(default_factory=list)

    @property
    def server(self) -> EmbeddedServer:
        """The bus, where it is one server."""
        return self.servers[0]

    @property
    def now(self) -> float:
        """Seconds since the script of this act began."""
        return asyncio.get_running_loop().time() - self.act.start

    @property
    def script(self) -> list[Plan]:
        """What happens in this act."""
        return self.act.script

    def begin(self, act: Act) -> None:
        """From now on it is this act's turn."""
        self.act = act
        self.stranger.followed = scene.told_by_bus(act.script)
        act.start = asyncio.get_running_loop().time()

    def note(self, text: str) -> None:
        """Let it be known under the verdict."""
        self.act.notes.append(text)

    @asynccontextmanager
    async def trouble(self, *, recovery: float) -> AsyncIterator[None]:
        """Actions may be late while the block runs, and for `recovery` seconds after it."""
        loop = asyncio.get_running_loop()
        begin = loop.time()
        try:
            yield
        finally:
            self.troubles.append(Span(begin, loop.time() + recovery))

    def member(
        self, name: str, *, bus: list[str] | None = None, kubeconfig: Path | None = None, address: str = ""
    ) -> Member:
        """Make one more reactor; it is not started yet.

        `bus`, `kubeconfig`: ways in through a proxy. `address`: in a network namespace of its own.
        """
        config = scene.settings_file(
            self.folder / f"{name}.yaml", name=name, bus=bus or [server.url for server in self.servers],
            kubeconfig=kubeconfig or self.folder / "kubeconfig", rules=self.folder / "rules.yaml",
            replicas=len(self.servers),
        )  # fmt: skip
        member = Member(config, self.nursery, environment=self.environment, address=address)
        self.members.append(member)
        return member

    def supervise(self, member: Member) -> None:
        """From now on it is started again when it dies."""
        self._supervisors.append(asyncio.create_task(member.keep()))

    async def watch_ourselves(self) -> None:
        """For ever: where this machine lets us stand still, actions may be late, and so was the truth that was told."""
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(LOOK_SECONDS)
            if (late := loop.time() - before - LOOK_SECONDS) > STOOD_STILL_SECONDS:
                self.troubles.append(Span(before, loop.time() + STOOD_STILL_RECOVERY))
                self.act.stood_still += late

    async def until_seen(self) -> None:
        """Wait until every route of every act has its group, with its weights and both targets known to be healthy."""
        routes = sum(len(act.script) for act in self.acts)
        async with asyncio.timeout(READY_SECONDS):
            while True:
                groups = [load(entry.value) for entry in await self.bus.store(GROUPS).entries("*.group.>")]
                if sum(_is_complete(group) for group in groups) == routes:
                    return
                await asyncio.sleep(0.2)

    async def play(self) -> None:
        """Let the script happen."""
        for turn in turns(self.script):
            await asyncio.sleep(max(turn.at - self.now, 0))
            self.act.happened[turn.plan.name, turn.at] = asyncio.get_running_loop().time()
            if turn.plan.told_by_bus:
                self.stranger.turn(scene.target(turn.plan, turn.service), healthy=turn.healthy)
            else:
                self.cluster.set_endpoints(
                    scene.NAMESPACE, turn.service, ready=int(turn.healthy), not_ready=int(not turn.healthy)
                )
        await asyncio.sleep(max(self.seconds - self.now, 0))

    def run(self, act: Act) -> Run:
        """Give what happened to the routes of an act so far, for the checker."""
        writes = self.emulator.writes.effective("trafficsplits", manager="alert-reactor")
        routes = tuple(scene.history(plan, act.start, act.happened, writes, self.stranger.taken) for plan in act.script)
        return Run(routes, asyncio.get_running_loop().time(), tuple(self.troubles), tuple(self.wipes))

    async def until_settled(self, converged: Callable[[Run], bool]) -> None:
        """Wait until all of this act stands where it belongs, or it is certain that it never will."""
        loop = asyncio.get_running_loop()
        give_up = max([loop.time(), *(trouble.end for trouble in self.troubles)]) + SETTLE_SECONDS
        while loop.time() < give_up and not converged(self.run(self.act)):
            await asyncio.sleep(0.2)

    async def close(self) -> None:
        """End the reactors."""
        for task in self._supervisors:
            task.cancel()
        await asyncio.gather(*self._supervisors, return_exceptions=True)
        await asyncio.gather(*(member.kill() for member in self.members if member.starts))


def _is_complete(group: Group) -> bool:
    known = [member for member in group.members.values() if member.settled is not None]
    return len(known) == 2 and group.route is not None


@asynccontextmanager
async def world(
    folder: Path, acts: Sequence[Act], *, seconds: float, nodes: int, apart: bool, environment: Mapping[str, str]
) -> AsyncIterator[World]:
    """Build it without reactors, and take it down again. `apart`: several NATS servers have a namespace each."""
    script = [plan for act in acts for plan in act.script]
    async with AsyncExitStack() as stack:
        cleanup = await stack.enter_async_context(AsyncExitStack())
        born = await stack.enter_async_context(nursery())
        emulator = await stack.enter_async_context(Emulator(clock=Clock().now))
        cluster = scene.furnish(emulator, script)
        servers: list[EmbeddedServer]
        if nodes == 1:
            servers = [await stack.enter_async_context(EmbeddedServer(folder / "nats"))]
        else:
            cluster_of = three_nodes if apart else three_servers
            servers = list(await stack.enter_async_context(cluster_of(folder / "nats")))
        write_kubeconfig(folder / "kubeconfig", emulator)
        (folder / "rules.yaml").write_text(scene.rule_file(script), "utf-8")
        urls = [server.url for server in servers]
        bus = await stack.enter_async_context(JetStreamBus.connect(urls, name="observer"))
        stranger = Stranger(bus, Clock(), scene.told_by_bus(script))
        built = World(
            folder, acts[0], acts, seconds, emulator, cluster, servers, bus, stranger, born, environment,
            cleanup=cleanup,
        )  # fmt: skip
        try:
            yield built
        finally:
            await built.close()


async def together(*coroutines: Coroutine[Any, Any, None]) -> None:
    """Run all of them to their ends."""
    async with asyncio.TaskGroup() as group:
        for coroutine in coroutines:
            group.create_task(coroutine)
