"""Zones beside the routes: each is the first of two zones of a cluster of its own, isolated in one step and undone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime

from bus.messages import MarkedNodes, Outcome, ZoneInventory, Zones, ZoneStep
from reactor.actions.execution import ExecutionContext
from reactor.actions.outcomes import done, failed
from reactor.actions.zone.isolation_context import Maintained
from reactor.clients.kubernetes_port import ApiUnavailable
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError
from tests.judge.object_history import Write
from tests.simulation.fleet.link import Link
from tests.simulation.fleet.loop import VirtualLoop
from tests.simulation.fleet.scenario import Plan

ZONE, REST = "a", "b"
NODES = 3
"""Of each zone."""


def zone_target(cluster: str) -> str:
    """Target of a cluster's first zone; the other one is known by its nodes."""
    return f"zone/{cluster}/{ZONE}"


def zone_rule(plan: Plan, mode: Sequence[str]) -> list[str]:
    """Give a zone's rule, as a person would write it. `mode`: its lines about who lets it act."""
    return [
        f"- name: {plan.name}", "  kind: ZoneIsolation", *mode, f"  cluster: {plan.name}",
        f"  zones: [{{name: {ZONE}}}, {{name: {REST}}}]", "  steps: [Fence]", "  cooldownSeconds: 0",
        f"  tolerationSeconds: {plan.toleration}", f"  recoverySeconds: {plan.recovery}",
    ]  # fmt: skip


def inventory(cluster: str, at: datetime, *, healthy: bool, marked: MarkedNodes | None) -> Zones:
    """Give the zones of a cluster as they are listed. `healthy`: whether the first one is. `marked`: what its nodes
    say of its isolation."""
    first = ZoneInventory(nodes=NODES, healthy_nodes=NODES if healthy else 0, marked=marked)
    rest = ZoneInventory(nodes=NODES, healthy_nodes=NODES)
    return Zones(cluster=cluster, zones={ZONE: first, REST: rest}, demand_nodes=NODES, observed_at=at)


class IsolatedZones:
    """The zones that are isolated. `wrote` is called after each step that changed something."""

    def __init__(
        self, loop: VirtualLoop, names: list[str], is_down: Callable[[], bool], wrote: Callable[[str, Write], None]
    ) -> None:
        """`names`: of the clusters. `is_down`: whether their API servers answer no request."""
        self._loop, self._is_down, self._wrote = loop, is_down, wrote
        self.clusters = names
        self._isolated: dict[str, MarkedNodes] = {}

    def marked(self, cluster: str) -> MarkedNodes | None:
        """Give what the nodes of the cluster's first zone say of its isolation; None: it is in none."""
        return self._isolated.get(cluster)

    async def is_isolated(self, cluster: str) -> bool:
        """Raises ApiUnavailable."""
        if self._is_down():
            raise ApiUnavailable("connection refused")
        return cluster in self._isolated

    async def take(self, action: ZoneStep, sent: float) -> None:
        """Do, or undo, the step. `sent`: when it left its client. Raises ApiUnavailable."""
        name = action.cluster
        if await self.is_isolated(name) is not action.undo:
            return
        if action.undo:
            del self._isolated[name]
        else:
            self._isolated[name] = MarkedNodes(rule=action.rule, nodes=NODES, by=action.settings.get("by", ""))
        weights = {name: int(action.undo), REST: int(not action.undo)}
        under_way = self._loop.time() - sent
        self._wrote(name, Write(self._loop.time(), weights, action.generation, action.epoch, under_way))


async def carry_step(
    zones: IsolatedZones, action: ZoneStep, api: Link, clock: Clock, context: ExecutionContext
) -> Outcome:
    """Take a step as the carrier does: a look, and a write where it is needed. Verify finds all as it should be."""
    try:
        isolated = await api.call(f"GET {action.cluster}", lambda: zones.is_isolated(action.cluster))
        if action.step != "Fence":
            raise Maintained("isolated")
        if isolated is action.undo:
            sent = asyncio.get_running_loop().time()
            await context.write(action.id, lambda: api.call(f"STEP {action.id}", lambda: zones.take(action, sent)))
    except ReactorError as error:
        return failed(action.id, clock, error)
    return done(action.id, clock, wrote=isolated is action.undo)
