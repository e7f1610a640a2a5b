"""Carrying out what was confirmed on the screen: the commands of `reactor approve`, `reject`, `pause`, `resume`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from bus.errors import BusError
from bus.messages import AnyCommand, Approve, Pause, Reject, Resume
from reactor.cli.approve import approval_seen, rejection_seen
from reactor.cli.screen.dialog import TypedCommand, Verb
from reactor.runtime.visible import visible
from reactor.views.commanding import give
from reactor.views.pausing import pause_seen, resumption_seen
from reactor.views.pending import about, request_of

if TYPE_CHECKING:
    from reactor.cli.screen.watched import Watched

REJECTED_SECONDS = 3_600.0
"""Seconds for which `reactor reject` without --for rejects."""
EFFECT_SECONDS = 10.0
LOOK_SECONDS = 0.2
SeenDetail = Callable[[], str | None]


async def carry_out(wanted: TypedCommand, watched: Watched, by: str, say: Callable[[str], None]) -> None:
    """Give the command, and say what became of it."""
    clock = watched.clock
    command = made(wanted, by, at := clock.now())
    try:
        await give(watched.bus, command, at, "watch")
    except BusError as error:
        say(visible(f"{wanted.verb}: not given: {error}"))
        return
    seen, until = _seen(wanted, watched, command, at), clock.monotonic() + EFFECT_SECONDS
    while clock.monotonic() < until:
        if (word := seen()) is not None:
            say(visible(f"{wanted.verb}: {word}"))
            return
        await asyncio.sleep(LOOK_SECONDS)
    say(f"{wanted.verb}: stored on the bus, but no reactor has processed it yet")


def made(wanted: TypedCommand, by: str, at: datetime) -> AnyCommand:
    """Give the command. An answer names the request that was on the screen when the key was pressed."""
    words: dict[str, Any] = {"by": by, "reason": wanted.comment, "observed_at": at}
    if wanted.verb is Verb.PAUSE:
        return Pause(rule=wanted.rule, **words)
    if wanted.verb is Verb.RESUME:
        return Resume(rule=wanted.rule, **words)
    if wanted.item is None:
        msg = f"{wanted.verb} without an item"
        raise ValueError(msg)
    group = wanted.item.group
    words |= {"rule": wanted.rule, "object": about(group), "request": request_of(group)}
    return Approve(**words) if wanted.verb is Verb.APPROVE else Reject(**words, for_seconds=REJECTED_SECONDS)


def _seen(wanted: TypedCommand, watched: Watched, command: AnyCommand, at: datetime) -> SeenDetail:
    def groups() -> Any:
        return watched.groups

    if isinstance(command, Pause):
        return lambda: pause_seen(groups(), command)
    if isinstance(command, Resume):
        return lambda: resumption_seen(groups(), at, wanted.rule)
    look = approval_seen if wanted.verb is Verb.APPROVE else rejection_seen
    asked = wanted.item.group if wanted.item is not None else None
    return partial(lambda: look(groups(), asked, at) if asked is not None else None)
