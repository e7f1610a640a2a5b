"""Finds the objects to copy: the first source that answers and has it, else what was remembered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from bus.messages import WorkloadRef
from reactor.actions.outcomes import Declined
from reactor.actions.workload.copy import portable, scaled, travels
from reactor.actions.workload.deps import DependencyObject, needs
from reactor.actions.workload.paths import path_of
from reactor.actions.workload.templates import NotKept, Templates
from reactor.clients.kubernetes_port import ApiUnavailable, Forbidden, JsonObject, KubeApi, NotFound
from reactor.runtime.errors import ReactorError, Retryable, SettingsError

ClusterLookup = Callable[[str], Awaitable[KubeApi]]
SOURCE_SECONDS = 2.5
"""Seconds for one source to answer: a dead one must leave time for the next, and for the writes."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class CopySources:
    """The sources of one placement, best first. A source that did not answer once is not asked again."""

    sources: Sequence[str]
    clusters: ClusterLookup
    templates: Templates | None = None
    _silent: dict[str, str] = field(default_factory=dict)
    """Source to why it did not answer."""

    async def find(self, ref: WorkloadRef) -> JsonObject:
        """Give the object as another cluster can take it.

        Raises Declined: NotInSource (no source has it), SourceUnreachable (those that did not answer may have it, and
        no copy is remembered), Forbidden (it is there, and may not be read), StaysBehind (it means nothing elsewhere).
        """
        forbidden = ""
        for name in self.sources:
            if name in self._silent:
                continue
            try:
                found = await self._read(name, ref)
            except (NotFound, Declined):  # Declined: the source does not serve the kind
                continue
            except Forbidden as error:
                forbidden = forbidden or str(error)
                continue
            except (ApiUnavailable, SettingsError, TimeoutError) as error:
                self._silent[name] = str(error) or f"no answer within {SOURCE_SECONDS:g} s"
                continue
            return await self._take_copy(ref, found)
        if (remembered := await self._recall(ref)) is not None:
            return remembered
        raise self._nowhere(ref, forbidden)

    async def _read(self, name: str, ref: WorkloadRef) -> JsonObject:
        async with asyncio.timeout(SOURCE_SECONDS):
            api = await self.clusters(name)
            return await api.get(await path_of(api, ref))

    async def _take_copy(self, ref: WorkloadRef, found: JsonObject) -> JsonObject:
        if not travels(found):
            raise Declined("StaysBehind", f"{ref.object} is of type {found.get('type')}: it means nothing elsewhere")
        copy = portable(found)
        await remember(self.templates, ref, copy)
        return copy

    async def _recall(self, ref: WorkloadRef) -> JsonObject | None:
        if self.templates is None:
            return None
        try:
            return await self.templates.get(ref)
        except Retryable as error:
            _log.warning("%s", error, extra={"object": ref.object})
            return None

    def _nowhere(self, ref: WorkloadRef, forbidden: str) -> Declined:
        if forbidden:
            return Declined("Forbidden", forbidden)
        asked = ", ".join(self.sources) or "none"
        if self._silent:
            why = "; ".join(f"{name}: {words}" for name, words in self._silent.items())
            return Declined("SourceUnreachable", f"{ref.object}: {why}; and no copy of it is remembered")
        return Declined("NotInSource", f"{ref.object} is in none of its source clusters (asked: {asked})")


@dataclass(frozen=True, slots=True)
class Dependency:
    """One object that the workload needs, or why it cannot be had."""

    need: DependencyObject
    ref: WorkloadRef
    copy: JsonObject | ReactorError


async def dependencies(copies: CopySources, workload: WorkloadRef, copy: JsonObject) -> list[Dependency]:
    """Give all that the workload's pods name, and what that names in turn."""
    found: dict[WorkloadRef, Dependency] = {}
    todo = [*needs(copy)]
    while todo:
        need = todo.pop(0)
        ref = WorkloadRef(namespace=workload.namespace, kind=need.kind, name=need.name, api_version="v1")
        if ref in found:
            continue
        try:
            one: JsonObject | ReactorError = await copies.find(ref)
        except Declined as error:
            one = error
        found[ref] = Dependency(need, ref, one)
        todo += needs(one) if isinstance(one, dict) and need.kind == "ServiceAccount" else ()
    return [*found.values()]


async def remember(templates: Templates | None, ref: WorkloadRef, copy: JsonObject) -> bool:
    """Keep the copy for the day when its cluster is dead. Whether anything changed; that it failed is only logged.

    Its size is not kept: each cluster has another one, and a placement says it anyhow.
    """
    if templates is None or ref.kind == "Secret":
        return False
    try:
        return await templates.put(ref, scaled(copy, 0))
    except (NotKept, Retryable) as error:
        _log.warning("%s", error, extra={"object": ref.object})
        return False
