"""The reactor that looks after the zones' cluster: its rule, its sources, and what it says of an isolation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from reactor.demo.kube import write_kubeconfig
from rules.kinds.zone.state import Isolation, ZoneState
from tests.e2e.exporter import Exporter, exporting
from tests.e2e.servers import Prometheus
from tests.e2e.service import Service
from tests.e2e.waiting import until_told
from tests.e2e.zone_objects import ZONES
from tests.e2e.zone_world import SICK, TICK, ZoneWorld, inhabited

RULE = "prod-zones"
TOLERATION, RECOVERY, BAKE = 5.0, 5.0, 2.0
"""Seconds; in production 300, 1800 and 300."""
STEPS = ("Fence", "ShiftTraffic", "Evacuate", "CutNetwork", "Verify")
WORDS = ("--comment", "INC-7", "--by", "ann", "--yes")
SOURCES = [
    {"name": "nodes", "kind": "NodeWatch", "cluster": "prod", "refreshSeconds": 2},
    {
        "name": "slo", "kind": "PrometheusQuery", "prometheus": "main", "query": "zone_slo_good", "everySeconds": 0.5,
        "unhealthyWhen": {"below": 1}, "target": "zone/prod/{zone}",
    },
]  # fmt: skip


def document(**keys: Any) -> str:
    """The rule file, with these keys of the rule changed."""
    rule = {
        "name": RULE, "kind": "ZoneIsolation", "mode": "Enforce", "cluster": "prod",
        "zones": [{"name": name, "id": id_} for name, id_ in ZONES.items()],
        "tolerationSeconds": TOLERATION, "recoverySeconds": RECOVERY, "cooldownSeconds": 0, "drainSeconds": 1,
        "failback": {"batches": {"bakeSeconds": BAKE}},
    } | keys  # fmt: skip
    return yaml.safe_dump({"apiVersion": "reactor/v1", "sources": SOURCES, "rules": [rule]}, sort_keys=False)


@dataclass
class Zoned:
    """The cluster, the metrics of its zones, and the reactor."""

    world: ZoneWorld
    slo: Exporter
    service: Service
    seen: list[Isolation] = field(default_factory=list)
    """Records as they were found, each once."""

    def fail(self) -> float:
        """Let the sick zone be sick to both witnesses; gives when, on the event loop's clock."""
        self.slo.up[SICK] = False
        self.world.fail()
        return self.world.prod.monotonic()

    def mend(self) -> float:
        """Let it be well again; gives when."""
        self.slo.up[SICK] = True
        self.world.mend()
        return self.world.prod.monotonic()

    async def state(self) -> ZoneState:
        """Stored state of the zones."""
        groups = await self.service.groups()
        return next((group.state for group in groups if group.rule == RULE), ZoneState())

    async def until(self, holds: Callable[[ZoneState], object], what: str, *, within: float = 90) -> ZoneState:
        """Wait until what is stored is so, and give it."""

        async def so() -> ZoneState | None:
            state = await self.state()
            if state.isolation is not None and state.isolation not in self.seen[-1:]:
                self.seen.append(state.isolation)
            return state if holds(state) else None

        try:
            return await until_told(so, what, within=within)
        except AssertionError as error:
            raise AssertionError(f"{error}; the last record: {self.seen[-1:]}") from None

    async def ready(self) -> None:
        """Wait until it knows the cluster's zones, and what runs in them."""
        await self.until(
            lambda state: state.seen and set(state.seen.zones) == set(ZONES) and not state.seen.single_zone_services,
            "the zones are known",
        )

    async def isolated(self) -> ZoneState:
        return await self.until(is_at("Failover", "Done"), "the zone is isolated")

    async def over(self) -> ZoneState:
        return await self.until(lambda state: state.isolation is None, "no zone is isolated any more")

    async def lives_until(self, holds: Callable[[ZoneState], object], *, within: float = 300) -> int:
        """Start the service again whenever it has died, until what is stored is so; gives how often."""
        lives = 0
        async with asyncio.timeout(within):
            while not ((state := await self.state()).seen and holds(state)):
                if not self.service.running:
                    lives += 1
                    await self._start()
                await asyncio.sleep(TICK)
        return lives

    async def _start(self) -> None:
        try:
            await self.service.start()
        except AssertionError:
            if self.service.running:
                raise  # else it came to its failpoint before it could say that it is ready

    async def zones(self) -> Mapping[str, Mapping[str, Any]]:
        """Rows of `reactor zone list`, by zone."""
        code, text = await self.service.answered("zone", "list", "-o", "json")
        assert code == 0, text
        return {row["zone"].partition("/")[2]: row for row in json.loads(text)}

    async def records(self) -> list[dict[str, Any]]:
        """The audit."""
        text = await self.service.printed("audit", "export")
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def is_at(phase: str, status: str) -> Callable[[ZoneState], bool]:
    """Condition that an isolation has this phase and status."""
    return lambda state: state.isolation is not None and (state.isolation.phase, state.isolation.status) == (
        phase, status,
    )  # fmt: skip


@asynccontextmanager
async def zoned(
    folder: Path, *, bus: Mapping[str, Any] | None = None, web: Mapping[str, Any] | None = None, **keys: Any
) -> AsyncIterator[Zoned]:
    """Everything, up and known to each other. `keys`: of the rule."""
    async with inhabited() as world, exporting(*ZONES, metric="zone_slo_good", label="zone") as slo:
        kubeconfig = write_kubeconfig(folder / "kubeconfig", world.emulator)
        prometheus = Prometheus(folder / "prometheus", scrapes=[slo.address])
        settings: dict[str, Any] = {
            "clusters": {"prod": {"kubeconfig": str(kubeconfig), "context": "prod"}},
            "prometheus": {"main": {"url": prometheus.url}},
        } | {key: dict(one) for key, one in {"bus": bus, "web": web}.items() if one}  # fmt: skip
        service = Service(folder / "reactor", rules=document(**keys), settings=settings)
        async with prometheus, service:
            zoned = Zoned(world, slo, service)
            await zoned.ready()
            yield zoned
