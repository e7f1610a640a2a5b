"""One, two and four reactors over one bus: facts decided on and actions carried out in a second, in the same run.

Everything shares one machine: nats-server, the emulated cluster and what measures run beside the reactors. So the
figures say what more reactors cost and bring there; a fleet on machines of its own has its own cores.
"""

from __future__ import annotations

import asyncio
import re
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from benchmarks.held import held, why_not
from benchmarks.measure import Result, cpu
from benchmarks.world import NAMESPACE, until
from bus import subjects
from bus.embedded import EmbeddedServer
from bus.envelope import encode
from bus.jetstream import JetStreamBus
from bus.messages import Health, Observation
from bus.port import Outgoing
from bus.topology import GROUPS
from reactor.demo.kube import Emulator, write_kubeconfig
from reactor.runtime.clock import Clock
from rules.engine.group_codec import load_group
from rules.summary import route_of

FLEETS = (1, 2, 4)
ROUTES = 200
FACTS = 6_000
WAVES = 5
TAKEN = re.compile(r'^reactor_facts_total\{kind="Observation"\} (\S+)$', re.MULTILINE)
LISTENS = re.compile(r"webhooks on (http://[\d.:]+)/v1/alerts/")
SETTINGS = """
name: {name}
ruleFiles: ["{folder}/rules.yaml"]
clusters: {{east: {{kubeconfig: "{folder}/kubeconfig", context: east}}}}
bus: {{url: "{bus}", observationsAtOnce: 10000000}}
receiver: {{listen: "127.0.0.1:0"}}
logLevel: warning
"""
RULE = """
- name: app{n}
  kind: TrafficFailover
  mode: Enforce
  route: {{cluster: east, kind: TrafficSplit, namespace: shop, name: app{n}}}
  backends:
  - {{service: app{n}, target: custom/app{n}}}
  - {{service: app{n}-west, target: custom/app{n}-west}}
  tolerationSeconds: 0
  recoverySeconds: 0
"""
"""Rule with its targets named: it gets nothing else, and has a partition of its own."""


async def scaling() -> Result:
    """Facts that change nothing, as fast as they are taken; then waves in which every route is moved."""
    figures: dict[str, Any] = {"routes": ROUTES, "facts": FACTS, "actions": ROUTES * WAVES}
    for reactors in FLEETS:
        figures[f"reactors_{reactors}"] = await _measured(reactors)
    alone = figures["reactors_1"]
    for reactors in FLEETS[1:]:
        these = figures[f"reactors_{reactors}"]
        figures[f"ratio_{reactors}_to_1"] = {name: round(these[name] / alone[name], 2) for name in alone}
    figures["held_to_a_third_of_a_core"] = why_not() or await _held()
    bars = {"ratio_to_1.cpu_us": "≤ 1.15", "share_max": "≤ 0.6", "held_to_a_third_of_a_core.ratio": "≥ 1.6"}
    return Result("scaling", "1, 2 and 4 reactors over one bus on one machine", figures, bars)


async def _held() -> dict[str, float]:
    """Facts a second where each reactor has a third of a core, and the machine more than they can use."""
    one, two = [(await _measured(reactors, cores=1 / 3))["facts_per_second"] for reactors in (1, 2)]
    return {"reactors_1": one, "reactors_2": two, "ratio": round(two / one, 2)}


async def _measured(reactors: int, *, cores: float | None = None) -> dict[str, float]:
    """`cores`: to how many each is held, and then only facts are told."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with AsyncExitStack() as stack:
            emulator = await stack.enter_async_context(Emulator(clock=Clock().now))
            _furnish(emulator)
            write_kubeconfig(folder / "kubeconfig", emulator)
            (folder / "rules.yaml").write_text(
                "apiVersion: reactor/v1\nrules:" + "".join(RULE.format(n=n) for n in range(ROUTES)), "utf-8"
            )
            server = await stack.enter_async_context(EmbeddedServer(folder / "nats"))
            starts = (reactor(folder, f"r{number}", server.url) for number in range(reactors))
            running = [await stack.enter_async_context(start) for start in starts]
            bus = await stack.enter_async_context(JetStreamBus.connect(server.url, name="bench"))
            session = await stack.enter_async_context(aiohttp.ClientSession())
            told = Load(bus, emulator, session, [one.url for one in running])
            await told.known()
            if cores is not None:
                for one in running:
                    stack.enter_context(held(one.pid, cores))
                return {"facts_per_second": await told.facts()}
            before, taken = sum(cpu(one.pid) for one in running), await told.taken()
            figures = {"facts_per_second": await told.facts()}
            used = sum(cpu(one.pid) for one in running) - before
            shares = [new - old for new, old in zip(await told.taken(), taken, strict=True)]
            figures |= {"cpu_us": round(used / FACTS * 1e6, 1), "share_max": round(max(shares) / sum(shares), 2)}
            return figures | {"actions_per_second": await told.actions()}


class Load:
    """Load on the fleet, and the time that it takes."""

    def __init__(
        self, bus: JetStreamBus, emulator: Emulator, session: aiohttp.ClientSession, urls: Sequence[str]
    ) -> None:
        self._bus, self._emulator, self._session, self._urls = bus, emulator, session, urls
        self._number = 0

    async def known(self) -> None:
        """Tell of everything until every group has its route and both of its backends."""
        async with asyncio.timeout(120):
            while True:
                await self._say([f"app{n}" for n in range(ROUTES)] + [f"app{n}-west" for n in range(ROUTES)])
                await asyncio.sleep(1.0)
                groups = [load_group(entry.value) for entry in await self._bus.store(GROUPS).entries("*.group.>")]
                if sum(route_of(group) is not None and len(group.members) == 2 for group in groups) == ROUTES:
                    return

    async def facts(self) -> float:
        """Facts decided on in a second, from the first one told to the last one taken."""
        before = sum(await self.taken())
        began = time.perf_counter()
        for start in range(0, FACTS, ROUTES):
            await self._say([f"app{n % ROUTES}" for n in range(start, start + ROUTES)])
        while sum(await self.taken()) - before < FACTS:
            await asyncio.sleep(0.02)
        return round(FACTS / (time.perf_counter() - began), 1)

    async def actions(self) -> float:
        """Actions carried out in a second: all routes are moved away, then home, and so on."""
        began = time.perf_counter()
        for wave in range(1, WAVES + 1):
            status = Health.UNHEALTHY if wave % 2 else Health.HEALTHY
            await self._say([f"app{n}" for n in range(ROUTES)], status)
            await until(lambda wanted=wave * ROUTES: self._moved() >= wanted)  # type: ignore[misc]
        return round(WAVES * ROUTES / (time.perf_counter() - began), 1)

    def _moved(self) -> int:
        return len(self._emulator.writes.effective("trafficsplits", manager="alert-reactor"))

    async def taken(self) -> list[float]:
        """Number of facts that each reactor has decided on."""
        texts = [await (await self._session.get(f"{url}/metrics")).text() for url in self._urls]
        return [sum(float(found) for found in TAKEN.findall(text)) for text in texts]

    async def _say(self, services: Sequence[str], status: Health = Health.HEALTHY) -> None:
        at, messages = Clock().now(), []
        for service in services:
            self._number += 1
            target, id_ = f"custom/{service}", f"bench/{self._number}"
            said = Observation(target=target, status=status, signal="bench", observed_at=at, stale_seconds=600)
            body = encode(said, id=id_, source="/bench", time=at)
            messages.append(Outgoing(subjects.observation("bench", target), body, id_))
        await self._bus.publish_all(messages)


def _furnish(emulator: Emulator) -> None:
    cluster = emulator.cluster("east")
    for number in range(ROUTES):
        backends = [{"service": f"app{number}", "weight": 1}, {"service": f"app{number}-west", "weight": 0}]
        cluster.create(
            {
                "apiVersion": "split.smi-spec.io/v1alpha2", "kind": "TrafficSplit",
                "metadata": {"name": f"app{number}", "namespace": NAMESPACE},
                "spec": {"service": f"app{number}", "backends": backends},
            }
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Running:
    """A reactor process, and where it listens."""

    url: str
    pid: int


@asynccontextmanager
async def reactor(folder: Path, name: str, bus: str) -> AsyncIterator[Running]:
    """A reactor process with `rules.yaml` and `kubeconfig` of the folder."""
    config, log = folder / f"{name}.yaml", folder / f"{name}.log"
    config.write_text(SETTINGS.format(name=name, folder=folder, bus=bus), "utf-8")
    command = [sys.executable, "-m", "reactor.cli.main", "run", "--config", str(config)]
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(*command, stderr=file)
    try:
        await until(lambda: LISTENS.search(log.read_text("utf-8")) is not None or process.returncode is not None)
        found = LISTENS.search(log.read_text("utf-8"))
        if found is None:
            raise RuntimeError(log.read_text("utf-8"))
        yield Running(found[1], process.pid)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()
