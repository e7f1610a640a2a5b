"""Waits for Karmada's scheduler to place a binding: it may take clusters out, put others in, or find none.

It notes the generation that it has placed (`status.schedulerObservedGeneration`) where that went well. Where it did
not, it only sets the condition Scheduled to False, which may have been so before. Source: Karmada
pkg/scheduler/scheduler.go (patchBindingStatusCondition).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

from bus.messages.placements import placed
from reactor.actions.karmada.tasks import placement_of
from reactor.actions.outcomes import Declined
from reactor.clients.kubernetes_port import JsonObject
from reactor.runtime.clock import Clock

SILENT_SECONDS = 30.0
"""A scheduler that has not answered for so long is called silent. It goes on being waited for."""
ANSWER_SECONDS = 3.0
"""Seconds that one call waits for the scheduler: then others have their turn, and the action is asked for again."""
LOOK_SECONDS = (0.05, 0.5)
"""The first pause between two looks, and the longest."""
IN_PROGRESS = "InProgress"

ReadBinding = Callable[[], Awaitable[JsonObject]]


def answered(binding: JsonObject) -> bool:
    """True if the scheduler has placed the current generation of the binding."""
    observed = (binding.get("status") or {}).get("schedulerObservedGeneration") or 0
    return bool(observed >= binding["metadata"].get("generation", 0))


def scheduler_refusal(binding: JsonObject) -> str:
    """Give why the scheduler could not place it; empty: it says nothing."""
    conditions = (binding.get("status") or {}).get("conditions") or []
    found: JsonObject = next((one for one in conditions if one.get("type") == "Scheduled"), {})
    if found.get("status") != "False":
        return ""
    return ": ".join(text for text in (found.get("reason"), found.get("message")) if text) or "no reason given"


async def answer(read: ReadBinding, before: JsonObject, clock: Clock) -> JsonObject:
    """Wait until the scheduler has answered and give the binding. `before`: the binding before our write.

    Raises Declined (SchedulerRefused, InProgress, SchedulerSilent), and as `read` does.
    """
    ends, pause = clock.monotonic() + ANSWER_SECONDS, LOOK_SECONDS[0]
    found: JsonObject = await read()
    while not answered(found):
        why, is_over = scheduler_refusal(found), clock.monotonic() >= ends
        # The same words as before our write may be about the spec before it.
        if why and (is_over or why != scheduler_refusal(before)):
            raise Declined("SchedulerRefused", f"Karmada's scheduler: {why}; it is on {words(found)}")
        if is_over:
            raise _silent(found, clock.now())
        await asyncio.sleep(pause)
        pause = min(pause * 2, LOOK_SECONDS[1])
        found = await read()
    return found


def _silent(binding: JsonObject, now: datetime) -> Declined:
    since = _changed_at(binding) or now
    seconds = max((now - since).total_seconds(), 0)
    generation = binding["metadata"].get("generation", 0)
    text = f"Karmada's scheduler has not answered generation {generation} of the binding for {seconds:.0f} s"
    if ((binding.get("spec") or {}).get("suspension") or {}).get("scheduling"):
        text = f"{text}: its scheduling is suspended"
    return Declined(
        "SchedulerSilent" if seconds >= SILENT_SECONDS else IN_PROGRESS, f"{text}; what was asked is written"
    )


def _changed_at(binding: JsonObject) -> datetime | None:
    """Give when the spec was last written, to the second; None: not known."""
    entries = binding["metadata"].get("managedFields") or []
    times = [one["time"] for one in entries if one.get("time") and not one.get("subresource")]
    return datetime.fromisoformat(max(times)) if times else None


def words(binding: JsonObject) -> str:
    """Give where a binding wants its copies: `m1=2, m2=1`."""
    return placed({one["name"]: one.get("replicas") or 0 for one in placement_of(binding).clusters})
