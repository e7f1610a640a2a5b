"""Fence: nothing new is scheduled into the zone; and how nodes are let go again, a few at a time.

The same functions take nodes out of the load balancers (ShiftTraffic): what differs is the Hold. Nodes that join later
are fenced because every call lists the zone again: Fence is asked again as soon as there are more nodes than it has
seen, and Verify makes the same round.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from math import ceil

from bus.messages import iso
from reactor.actions.annotations import notes_of
from reactor.actions.zone import holds, zone_nodes
from reactor.actions.zone.holds import NodeHold
from reactor.actions.zone.isolation_context import InProgress, IsolationContext, StepResult
from reactor.actions.zone.zone_marks import RELEASED
from reactor.clients.kubernetes_port import JsonObject, KubeApi


async def fence(api: KubeApi, isolation: IsolationContext) -> StepResult:
    """Taint and cordon every node of the zone. Raises Declined (ZoneNotFound, ZoneMismatch, ChangeRefused)."""
    return await take(api, isolation, holds.fence_by(isolation.origin))


async def unfence(api: KubeApi, isolation: IsolationContext) -> StepResult:
    """Let the zone's nodes go: one, a wait, a share of all, a wait, the rest. Raises InProgress in between.

    What was let go is counted on the nodes themselves, so that a crash neither starts over nor skips a wait.
    """
    zone = await zone_nodes.in_zone(api, isolation)
    held = [node for node in zone if holds.unfence(node) is not None]
    if held:
        await _let_some_go(api, isolation, held=held, free=[node for node in zone if node not in held])
        zone = await zone_nodes.in_zone(api, isolation)
    noted = [node for node in zone if RELEASED in notes_of(node)]
    await zone_nodes.each(
        noted, lambda node: zone_nodes.change(api, node, lambda obj: zone_nodes.drop_note(obj, RELEASED) or None)
    )
    return StepResult(bool(noted), f"none of {len(zone)} nodes of {isolation.zone} is fenced by us")


async def take(api: KubeApi, isolation: IsolationContext, hold: NodeHold) -> StepResult:
    """Put the hold on every node of the zone."""
    zone = await zone_nodes.in_zone(api, isolation)
    if not zone and isolation.action.step == "Fence" and not isolation.standing:
        # Only at the beginning: a zone that was drained may lose its nodes to an autoscaler.
        raise await zone_nodes.unknown_zone(api, isolation)
    if problem := zone_nodes.mixed_up(zone, isolation):
        raise problem
    open_ = [node for node in zone if hold.take(node, isolation.mark) is not None]
    wrote = await zone_nodes.each(
        open_, lambda node: zone_nodes.change(api, node, lambda obj: hold.take(obj, isolation.mark))
    )
    return StepResult(any(wrote), f"{len(zone)} of {len(zone)} nodes of {isolation.zone} are {hold.word}")


async def give(api: KubeApi, isolation: IsolationContext, hold: NodeHold) -> StepResult:
    """Take back what we did, from all nodes of the zone at once."""
    zone = await zone_nodes.in_zone(api, isolation)
    held = [node for node in zone if hold.give(node) is not None]
    await zone_nodes.each(held, lambda node: zone_nodes.change(api, node, hold.give))
    return StepResult(bool(held), f"none of {len(zone)} nodes of {isolation.zone} is {hold.word} by us")


async def _let_some_go(
    api: KubeApi, isolation: IsolationContext, *, held: Sequence[JsonObject], free: Sequence[JsonObject]
) -> None:
    """Let the next batch go. Raises InProgress unless that was the last one."""
    total = len(held) + len(free)
    ends = batch_ends(isolation, total)
    if len(free) in ends:
        _wait(isolation, free, total)
    end = next(end for end in ends if end > len(free))
    stamp = iso(isolation.clock.now())

    def let_go(obj: JsonObject) -> list[JsonObject] | None:
        operations = holds.unfence(obj)
        return None if operations is None else [*operations, *zone_nodes.put_note(obj, RELEASED, stamp)]

    await zone_nodes.each(held[: end - len(free)], lambda node: zone_nodes.change(api, node, let_go))
    if end < total:
        raise InProgress(f"{end} of {total} nodes of {isolation.zone} are back, {total - end} are fenced")


def batch_ends(isolation: IsolationContext, total: int) -> Sequence[int]:
    """Give how many nodes are back after each batch: the first, a share of all besides, all."""
    batches = isolation.settings.batches
    first = min(batches.first, total)
    return first, min(total, first + ceil(total * batches.percent / 100)), total


def _wait(isolation: IsolationContext, free: Sequence[JsonObject], total: int) -> None:
    """Raise InProgress until the nodes that are back have been healthy for long enough."""
    released = [node for node in free if RELEASED in notes_of(node)]
    back = f"{len(free)} of {total} nodes of {isolation.zone} are back"
    bad = [zone_nodes.name_of(node) for node in released if not zone_nodes.is_ready(node)]
    if bad and not isolation.settings.unproven:
        raise InProgress(f"{back}; not Ready: {', '.join(bad)}, so the others stay fenced")
    bake = timedelta(seconds=isolation.settings.batches.bake_seconds)
    until = max((datetime.fromisoformat(notes_of(node)[RELEASED]) + bake for node in released), default=None)
    left = (until - isolation.clock.now()).total_seconds() if until is not None else 0.0
    if left > 0:
        raise InProgress(f"{back}; they are watched for {left:.0f} s more")
