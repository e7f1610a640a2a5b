"""Place on plain clusters: copies the workload, with what it cannot start without, and sets its size in each cluster.

Done says that the objects are there. Whether their pods become healthy is watched by the core, through WorkloadWatch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from bus.messages import Outcome, Place
from reactor.actions.conditional_write import SETTLE_SECONDS
from reactor.actions.outcomes import Declined
from reactor.actions.workload.copy_sources import ClusterLookup, CopySources, Dependency, dependencies
from reactor.actions.workload.reports import Report, connected, enforced, outcome
from reactor.actions.workload.target import WriteTarget
from reactor.actions.workload.templates import Templates
from reactor.clients.kubernetes_port import ApiUnavailable, JsonObject
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError

AT_ONCE = 8
"""Most clusters of one placement that are written to at the same time."""


@dataclass(frozen=True, slots=True)
class Placer:
    """Carries out placements."""

    clusters: ClusterLookup
    clock: Clock
    templates: Templates | None = None
    """Remembered copies, for when every source is dead."""
    create_namespaces: bool = False
    """True if a namespace that is missing in a target is made there."""

    async def carry_out(self, action: Place) -> Outcome:
        """Let each cluster hold the workload in its size, at most one effective write for each object and decision.

        Never raises for what the world does. Failed: NotInSource, SourceUnreachable, Forbidden, NamespaceMissing,
        NamespaceTerminating, QuotaExceeded, AdmissionDenied, KindMissing, CopyTerminating, StaysBehind, Invalid,
        Conflict, ClusterUnreachable, UnknownCluster; the detail names what was written before. Refused: DryRun, Stale.
        One cluster that refuses keeps no other from getting its copy.
        """
        try:
            enforced(action)
            copy, needed = await self._gather(action)
        except ReactorError as error:
            return outcome(action, self.clock, [Report("", [], error)])
        slots = asyncio.Semaphore(AT_ONCE)

        async def placed(cluster: str, replicas: int) -> Report:
            async with slots:
                return await self._place(action, cluster, replicas, copy, needed)

        reports = await asyncio.gather(*(placed(*place) for place in sorted(action.clusters.items())))
        return outcome(action, self.clock, reports)

    async def _gather(self, action: Place) -> tuple[JsonObject, Sequence[Dependency]]:
        try:
            async with asyncio.timeout(SETTLE_SECONDS):
                copies = CopySources(action.sources, self.clusters, self.templates)
                copy = await copies.find(action.workload)
                needed = await dependencies(copies, action.workload, copy) if action.propagate_deps else []
                return copy, needed
        except TimeoutError as error:
            sources = ", ".join(action.sources)
            raise Declined("SourceUnreachable", f"not read within {SETTLE_SECONDS:g} s from {sources}") from error

    async def _place(
        self, action: Place, cluster: str, replicas: int, copy: JsonObject, needed: Sequence[Dependency]
    ) -> Report:
        written: list[str] = []
        standing: list[str] = []
        try:
            async with asyncio.timeout(SETTLE_SECONDS):
                api = await connected(self.clusters, cluster)
                target = WriteTarget(api, action, self.create_namespaces, written, standing)
                for one in needed:
                    await target.dependency(one)
                await target.workload(copy, replicas)
        except TimeoutError:
            late = ApiUnavailable(f"{cluster}: not placed within {SETTLE_SECONDS:g} s")
            return Report(cluster, written, late, standing)
        except ReactorError as error:
            return Report(cluster, written, error, standing)
        return Report(cluster, written, None, standing)
