"""Evict on plain clusters, and its way back: a mark on the old copy, or with purge mode Directly its removal.

Gracefully and Never remove nothing: the mark tells people and other tools that this copy is on its way out. The core
purges it when the new copies are Healthy; with Never a person does.
"""

from __future__ import annotations

from collections.abc import Callable

from bus.messages import CancelEviction, Evict, Outcome
from reactor.actions.conditional_write import ConditionalChange, conditional_write_object
from reactor.actions.patches import patch
from reactor.actions.workload import purge
from reactor.actions.workload.copy_sources import ClusterLookup
from reactor.actions.workload.marks import (
    EVICTING_ANNOTATIONS,
    follows,
    is_marked,
    mark_of,
    refuse_if_stale,
    stamps,
)
from reactor.actions.workload.paths import path_of
from reactor.actions.workload.reports import Report, connected, enforced, outcome
from reactor.clients.kubernetes_port import JsonObject, ObjectNotFound
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError
from rules.kinds.workload.facts import COPY_GONE


async def carry_out(action: Evict, clusters: ClusterLookup, clock: Clock) -> Outcome:
    """Mark the copy, or remove it where the purge mode is Directly; Done where it is already so, or is not there.

    Never raises for what the world does; reasons are those of `purge.carry_out`.
    """
    if action.purge_mode == "Directly":
        return await purge.carry_out(action, clusters, clock)
    return await _write_marks(
        action, clusters, clock, lambda obj: None if is_marked(obj) else patch(obj, [], write=mark_of(action))
    )


async def cancel(action: CancelEviction, clusters: ClusterLookup, clock: Clock) -> Outcome:
    """Take the mark off; Done where there is none."""

    def unmarked(obj: JsonObject) -> list[JsonObject] | None:
        return patch(obj, [], write=stamps(action), remove=EVICTING_ANNOTATIONS) if is_marked(obj) else None

    return await _write_marks(action, clusters, clock, unmarked)


async def _write_marks(
    action: Evict | CancelEviction, clusters: ClusterLookup, clock: Clock,
    plan: Callable[[JsonObject], list[JsonObject] | None],
) -> Outcome:  # fmt: skip
    def planned(obj: JsonObject) -> list[JsonObject] | None:
        refuse_if_stale(obj, action)
        return plan(obj)

    change = ConditionalChange(
        planned, as_asked=lambda obj: plan(obj) is None, written_by_us=lambda obj: follows(obj, action)
    )
    written: list[str] = []
    try:
        enforced(action)
        api = await connected(clusters, action.from_)
        path = await path_of(api, action.workload)

        async def read() -> tuple[str, JsonObject]:
            return path, await api.get(path)

        if await conditional_write_object(api, action.workload.object, read, change):
            written.append(f"annotations of {action.workload.kind}/{action.workload.name}")
    except ObjectNotFound:
        # Nothing leaves, and nothing is left to stay. The rule may not know it, as no watch has seen it go.
        return outcome(action, clock, [Report(action.from_)]).model_copy(update={"reason": COPY_GONE})
    except ReactorError as error:
        return outcome(action, clock, [Report(action.from_, [], error)])
    return outcome(action, clock, [Report(action.from_, written)])
