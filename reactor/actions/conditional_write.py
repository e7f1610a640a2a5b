"""The one way to change an object: read, plan, one conditional write, verify; again where another writer was quicker.

Where a watch of this process holds the object, its copy is what is planned on first: the write tests its version. What
would end without a write is read.

A write without an answer may or may not have happened. It is never guessed at: the object is read again, and either is
as asked by now, or the next write is conditional on what was just read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Awaitable, Callable
from dataclasses import dataclass
from functools import partial

import stamina

from bus.messages import RouteRef
from reactor.actions.guarded import connection_of
from reactor.actions.outcomes import NotAsAsked, OutOfTime, Waited
from reactor.actions.served_versions import forget, path_of
from reactor.clients.changes import version_of
from reactor.clients.copies import copy_of
from reactor.clients.kubernetes_port import ApiUnavailable, JsonObject, KubeApi, NotFound
from reactor.runtime.errors import ReactorError, Retryable
from rules.rulefile.route_kinds import RouteFormat

ATTEMPTS_MAX = 5
WAIT_SECONDS_MAX = 1.0
SETTLE_SECONDS = 12.0
"""Seconds for one change. With the event after it less than the 15 s after which an action without an outcome is
published again."""

Read = Callable[[], Awaitable[tuple[str, JsonObject]]]
"""Gives the object and its path."""
ReadWatched = Callable[[], Awaitable[tuple[str, JsonObject] | None]]
"""The same as a watch of this process holds it; None: none does."""
Plan = Callable[[JsonObject], "list[JsonObject] | None"]
"""Gives the JSON Patch that makes an object as asked; None: it is already. Raises Declined."""


@dataclass(frozen=True, slots=True)
class Written:
    """One write that took effect: the object before and after."""

    before: JsonObject
    after: JsonObject


@dataclass(frozen=True, slots=True)
class ConditionalChange:
    """Change of an object, as pure functions of it."""

    plan: Plan
    as_asked: Callable[[JsonObject], bool]
    """True if an answer shows the object as asked."""
    written_by_us: Callable[[JsonObject], bool]
    """True if, after a write without an answer, it was that write which made the object so."""


async def conditional_write(
    api: KubeApi, route: RouteRef, kind: RouteFormat, change: ConditionalChange
) -> Written | None:
    """Make the route as planned. None: it already was, and nothing was written. Raises as settle_object does."""
    return await conditional_write_object(
        api, route.object, partial(_read, api, route, kind), change, held=partial(_held, api, route, kind)
    )


async def conditional_write_object(
    api: KubeApi, name: str, read: Read, change: ConditionalChange, *, held: ReadWatched | None = None
) -> Written | None:
    """Make the object as planned. None: it already was, and nothing was written. `name` is for people.

    Raises Declined, NotAsAsked and what the API raises; ApiUnavailable also after SETTLE_SECONDS.
    """
    try:
        async with asyncio.timeout(SETTLE_SECONDS):
            return await _settle(api, name, read, change, await held() if held is not None else None)
    except TimeoutError as error:
        raise ApiUnavailable(f"{name}: not settled within {SETTLE_SECONDS:g} s") from error


async def _settle(
    api: KubeApi, name: str, read: Read, change: ConditionalChange, held: tuple[str, JsonObject] | None
) -> Written | None:
    unanswered: JsonObject | None = None
    async for attempt in attempts():
        with attempt:
            operations = _on_copy(change.plan, held)
            if operations is not None and held is not None:
                (path, obj), held = held, None
            else:
                path, obj = await read()
                operations = change.plan(obj)
            if operations is None:
                return Written(unanswered, obj) if unanswered and change.written_by_us(obj) else None
            try:
                answer = await api.json_patch(path, operations)
            except ApiUnavailable:
                unanswered = obj
                raise
            if not change.as_asked(answer):
                # Not tried again at once: whatever changed our write would change the next one as well.
                raise NotAsAsked(f"{name}: the write was accepted, but the answer shows something else")
            return Written(obj, answer)
    raise AssertionError("stamina ends with an answer or an error")


def _on_copy(plan: Plan, held: tuple[str, JsonObject] | None) -> list[JsonObject] | None:
    """Give the patch that a copy asks for; None: there is none, or it would end without a write."""
    try:
        return plan(held[1]) if held is not None else None
    except ReactorError:
        return None


def attempts() -> AsyncIterable[stamina.Attempt]:
    """Give the tries of one write: again where another writer was quicker or the server is busy, not for long."""
    return stamina.retry_context(
        on=_backoff, attempts=ATTEMPTS_MAX, timeout=SETTLE_SECONDS,
        wait_initial=0.05, wait_max=WAIT_SECONDS_MAX, wait_jitter=0.1,
    )  # fmt: skip


def _backoff(error: Exception) -> bool | float:
    """Tell stamina whether to try again, and when: the server's own word counts where it is a short wait."""
    if not isinstance(error, Retryable) or isinstance(error, NotAsAsked | OutOfTime | Waited):
        return False
    if error.after is None:
        return True
    return error.after if error.after <= WAIT_SECONDS_MAX else False


async def _held(api: KubeApi, route: RouteRef, kind: RouteFormat) -> tuple[str, JsonObject] | None:
    """Give what a watch of ours knows of the route, and its path."""
    try:
        path = await path_of(api, route, kind)
    except ReactorError:
        return None  # the read that follows tells of it
    copy = copy_of(connection_of(api), path)
    return (path, copy) if copy is not None and version_of(copy) else None  # without a version no write could test it


async def _read(api: KubeApi, route: RouteRef, kind: RouteFormat) -> tuple[str, JsonObject]:
    """Give the object and its path; a 404 counts only in a version that the cluster serves now."""
    path = await path_of(api, route, kind)
    try:
        return path, await api.get(path)
    except NotFound:
        forget(api, kind)
        again = await path_of(api, route, kind)
        if again == path:
            raise
    return again, await api.get(again)
