"""One run's world: the emulator, the bus, the reactors, the script that is played, and what hindered it when."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from bus.embedded import EmbeddedServer
from bus.jetstream import JetStreamBus
from bus.topology import GROUPS, Stream
from reactor.audit.spans import Span
from reactor.demo.kube import WORLD, EmulatedCluster, Emulator, write_kubeconfig
from reactor.runtime.clock import Clock
from tests.chaos import scene, workloads
from tests.chaos.alerting import SEEN_AFTER, alerting
from tests.chaos.fleet import Member, NotUp
from tests.chaos.nodes import nodes as three_nodes
from tests.chaos.nursery import Nursery, nursery
from tests.chaos.script import Plan, Source, turns
from tests.chaos.stranger import Stranger
from tests.chaos.truth import Truth, truth
from tests.contract.bus.servers import cluster as three_servers
from tests.judge.object_history import Run
from tests.judge.workload_history import WorkloadHistory
from tests.judge.zone_history import ZoneHistory
from tests.ports import free_port

MANAGER = "alert-reactor"
"""Author of a reactor's writes in the API server's own log."""
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
    strike: Span | None = None
    """From when to when the fault is to be there, in seconds of the script; None: as the fault likes."""
    seconds: float = 0.0
    """Length of the script in seconds."""
    start: float = 0.0
    """Start, on the event loop's clock."""
    notes: list[str] = field(default_factory=list)
    """Remarks of the fault, such as a failpoint that was never reached."""
    happened: dict[tuple[str, float], float] = field(default_factory=dict)
    """Real time of each turn of the script, by route and planned time: a busy machine is late."""
    stood_still: float = 0.0
    """Seconds for which this machine suspended the emulator and the truth."""


@dataclass(slots=True)
class World:
    """Servers, reactors and truth on which faults act. Seeds share it one after the other."""

    folder: Path
    act: Act
    """The one that is played."""
    acts: Sequence[Act]
    emulator: Emulator
    cluster: EmulatedCluster
    servers: list[EmbeddedServer]
    bus: JetStreamBus
    truth: Truth
    nursery: Nursery
    earlier: Nursery | None = None
    """Nursery of the earlier release, for a fault that has one."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Of every reactor."""
    ports: Mapping[str, int] = field(default_factory=dict)
    """Ports of reactors that take posts and have to be known."""
    members: list[Member] = field(default_factory=list)
    troubles: list[Span] = field(default_factory=list)
    blind: list[tuple[Span, frozenset[Source]]] = field(default_factory=list)
    """Times in which no look was made at what these sources see."""
    unheard: list[tuple[Span, frozenset[Source]]] = field(default_factory=list)
    """Times in which these sources could report nothing to a reactor."""
    dark: bool = True
    """True if a source that is asked to look at such a time cannot."""
    blind_grace: float = 10.0
    wipes: list[float] = field(default_factory=list)
    cleanup: AsyncExitStack = field(default_factory=AsyncExitStack)
    """Cleanup of a fault that has to come after the servers have ended."""
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
    def seconds(self) -> float:
        """Length of this act's script."""
        return self.act.seconds

    @property
    def stranger(self) -> Stranger:
        """Program that publishes observations on the bus."""
        return self.truth.stranger

    @property
    def script(self) -> list[Plan]:
        """Script of this act."""
        return self.act.script

    def begin(self, act: Act) -> None:
        """Begin this act."""
        self.act = act
        self.stranger.followed = scene.told_by_bus(act.script)
        act.start = asyncio.get_running_loop().time()

    def note(self, text: str) -> None:
        """Let it be known under the verdict."""
        self.act.notes.append(text)

    @asynccontextmanager
    async def trouble(self, *, recovery: float, blind: frozenset[Source] = frozenset()) -> AsyncIterator[None]:
        """Actions may be late while the block runs, and for `recovery` seconds after it.

        `blind`: the sources that cannot look meanwhile: their windows restart.
        """
        loop = asyncio.get_running_loop()
        begin = loop.time()
        try:
            yield
        finally:
            self.troubles.append(Span(begin, loop.time() + recovery))
            if blind:
                self.blind.append((Span(begin, loop.time()), blind))

    def member(
        self, name: str, *, bus: list[str] | None = None, kubeconfig: Path | None = None, address: str = ""
    ) -> Member:
        """Make one more reactor; it is not started yet.

        `bus`, `kubeconfig`: ways in through a proxy. `address`: in a network namespace of its own.
        """
        config = scene.settings_file(
            self.folder / f"{name}.yaml", name=name, bus=bus or [server.url for server in self.servers],
            kubeconfig=kubeconfig or self.folder / "kubeconfig", rules=self.folder / "rules.yaml",
            replicas=len(self.servers), clusters=sorted(self.emulator.clusters), port=self.ports.get(name, 0),
            more=self.truth.alerting.settings() if self.truth.alerting else None,
        )  # fmt: skip
        born = self.earlier or self.nursery
        member = Member(config, born, environment=self.environment, address=address)
        self.members.append(member)
        return member

    def rules(self, *, longer: float = 0.0) -> str:
        """Give the rule file; `longer`: seconds that are added to each toleration."""
        return scene.rule_file([plan for act in self.acts for plan in act.script], self.truth.doors.url, longer=longer)

    def supervise(self, member: Member) -> None:
        """Restart it when it dies."""
        self._supervisors.append(asyncio.create_task(member.keep()))

    async def watch_ourselves(self) -> None:
        """Note, without end, when this machine does not run us: actions may be late then, and so was the truth that was
        reported."""
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(LOOK_SECONDS)
            if (late := loop.time() - before - LOOK_SECONDS) > STOOD_STILL_SECONDS:
                self.troubles.append(Span(before, loop.time() + STOOD_STILL_RECOVERY))
                self.act.stood_still += late

    async def until_seen(self) -> None:
        """Wait until every route of every act has its group, with its weights and both targets known to be healthy."""
        waiting = {plan.name for act in self.acts for plan in act.script}
        try:
            async with asyncio.timeout(READY_SECONDS):
                while waiting:
                    stored = [_read(entry.value) for entry in await self.bus.store(GROUPS).entries("*.group.>")]
                    waiting -= {group["rule"] for group in stored if _is_complete(group)}
                    await asyncio.sleep(0.2)
        except TimeoutError:
            raise NotUp(f"after {READY_SECONDS:g} s the reactors do not know {sorted(waiting)}") from None

    async def play(self) -> None:
        """Let the script happen."""
        for turn in turns(self.script):
            if (left := turn.at - self.now) > 0:  # what comes in the same moment comes without a pause
                await asyncio.sleep(left)
            self.act.happened[turn.service, turn.at] = asyncio.get_running_loop().time()
            self.truth.turn(turn.plan, turn.service, healthy=turn.healthy)
        await asyncio.sleep(max(self.seconds - self.now, 0))

    def run(self, act: Act) -> Run:
        """Give what happened to the routes of an act so far, for the checker."""
        writes = self.emulator.writes.effective(manager=MANAGER)
        routes = tuple(
            scene.history(
                plan, act.start, act.happened, writes,
                _of(plan, self.blind), _of(plan, self.unheard), self.stranger.cut_off, self.blind_grace, dark=self.dark,
            )
            for plan in act.script
            if plan.is_route
        )  # fmt: skip
        end = asyncio.get_running_loop().time()
        return Run(
            routes, end, tuple(self.troubles), tuple(self.wipes), workloads=tuple(self._workloads(act)),
            zones=tuple(self._zones(act)),
        )  # fmt: skip

    def _workloads(self, act: Act) -> Iterator[WorkloadHistory]:
        # A DELETE names no author: all that the world itself has not written is a reactor's.
        writes = [write for write in self.emulator.writes.effective() if write.manager != WORLD]
        for plan in act.script:
            if plan.source == "copies" and self.truth.kubelets is not None:
                written = tuple(workloads.written(plan, writes))
                yield WorkloadHistory(
                    plan.name, plan.toleration, workloads.CLUSTERS[0], self.truth.kubelets.outages(plan, written),
                    written, plan.blocks, blind=tuple(_of(plan, self.blind)), dark=self.dark,
                    blind_grace=self.blind_grace,
                )  # fmt: skip

    def _zones(self, act: Act) -> Iterator[ZoneHistory]:
        for plan in act.script:
            if plan.source == "zone" and self.truth.zones is not None:
                yield self.truth.zones.history(
                    plan, partial(scene.really, start=act.start, happened=act.happened),
                    blind=tuple(_of(plan, self.blind)), unheard=tuple(_of(plan, self.unheard)), dark=self.dark,
                    blind_grace=self.blind_grace,
                )  # fmt: skip

    async def until_settled(self, converged: Callable[[Run], bool]) -> None:
        """Wait until all effects of this act are where they belong, or it is certain that it never will."""
        loop = asyncio.get_running_loop()
        give_up = max([loop.time(), *(trouble.end for trouble in self.troubles)]) + SETTLE_SECONDS + self.blind_grace
        while loop.time() < give_up and not converged(self.run(self.act)):
            await asyncio.sleep(0.2)

    async def export(self, stream: Stream) -> None:
        """Keep what a stream holds beside the logs, one message a line."""
        with (self.folder / f"{stream.name.lower()}.jsonl").open("wb") as file:
            async with self.bus.read(stream, stream.subjects[0], after=0) as reading:
                while not reading.current:
                    file.writelines(one.body + b"\n" for one in await reading.next(timedelta(seconds=1)))

    async def close(self) -> None:
        """End the reactors."""
        for task in self._supervisors:
            task.cancel()
        await asyncio.gather(*self._supervisors, return_exceptions=True)
        await asyncio.gather(*(member.kill() for member in self.members if member.starts))


def _of(plan: Plan, spans: Sequence[tuple[Span, frozenset[Source]]]) -> list[Span]:
    """Those that concern what sees this plan's object."""
    return [span for span, sources in spans if plan.source in sources]


def _read(stored: bytes) -> dict[str, Any]:
    """Read a stored group as whatever code stored it."""
    group: dict[str, Any] = json.loads(stored if stored.startswith(b"{") else zlib.decompress(stored))
    return group


def _is_complete(group: Mapping[str, Any]) -> bool:
    """True if the health of each member is known."""
    members = group["members"].values()
    return bool(members) and all(member["settled"] is not None for member in members)


@asynccontextmanager
async def world(
    folder: Path,
    acts: Sequence[Act],
    *,
    nodes: int,
    apart: bool,
    environment: Mapping[str, str],
    earlier: Path | None = None,
) -> AsyncIterator[World]:
    """Build it without reactors, and take it down again. `apart`: several NATS servers have a namespace each.

    `earlier`: the code of the release with which its reactors begin; None: all run the present code.
    """
    script = [plan for act in acts for plan in act.script]
    async with AsyncExitStack() as stack:
        cleanup = await stack.enter_async_context(AsyncExitStack())
        born = await stack.enter_async_context(nursery())
        before = await stack.enter_async_context(nursery(earlier)) if earlier else None
        emulator = await stack.enter_async_context(Emulator(clock=Clock().now))
        cluster = scene.furnish(emulator, script)
        servers: list[EmbeddedServer]
        if nodes == 1:
            servers = [await stack.enter_async_context(EmbeddedServer(folder / "nats"))]
        else:
            cluster_of = three_nodes if apart else three_servers
            servers = list(await stack.enter_async_context(cluster_of(folder / "nats")))
        urls = [server.url for server in servers]
        bus = await stack.enter_async_context(JetStreamBus.connect(urls, name="observer"))
        ports = {f"reactor-{number}": free_port() for number in range(2)}
        alerts = None
        if any(plan.source in SEEN_AFTER for plan in script):
            alerts = await stack.enter_async_context(alerting(folder, script, list(ports.values())))
        told = await stack.enter_async_context(truth(emulator, cluster, bus, script, alerts))
        write_kubeconfig(folder / "kubeconfig", emulator)
        emulator.writes.clear()
        built = World(
            folder, acts[0], acts, emulator, cluster, servers, bus, told, born, before, environment, ports=ports,
            cleanup=cleanup,
        )  # fmt: skip
        (folder / "rules.yaml").write_text(built.rules(), "utf-8")
        try:
            yield built
        finally:
            await built.close()


async def together(*coroutines: Coroutine[Any, Any, None]) -> None:
    """Run all of them to their ends."""
    async with asyncio.TaskGroup() as group:
        for coroutine in coroutines:
            group.create_task(coroutine)
