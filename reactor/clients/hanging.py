"""Giving up a request that hangs on a server which answers again.

A server that froze, or a proxy that lost a request, may never answer it, while a new one is answered at once. A request
that is merely slow must not be cut. So while one waits, small requests are sent beside it: where one of them got no
answer and a later one did, the server was away, is back, and what still waits is left.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from math import inf
from typing import Any, TypeVar

from reactor.clients.kubernetes_port import ApiUnavailable

ASK_SECONDS = 1.0
"""Seconds between two small requests, and before the first."""
ANSWER_SECONDS = 1.5
"""Seconds within which a small request counts as answered."""
WAIT_SECONDS = 10.0
"""Seconds after which no request is waited for any longer until its answer begins."""
ANSWERS_MAX = 3
"""Number of small requests whose answers end the wait for what a server that is well answers at once: a watch, a read
of one object, and the first page of what is not slow to list."""

T = TypeVar("T")


class Hung(ApiUnavailable):
    """The request was left without an answer, by a server that answers others."""


class SlowLists:
    """The LISTs that are slow. Their first pages are waited for, however many small requests are answered.

    The first page of any other LIST that is not answered was lost, as one that was sent a moment before the server was
    back: it is left, and the next one of the same LIST is waited for, as it may be slow by now. `which` is the LIST
    with its selector: another selector may be quick on the same collection. Later pages are not asked for here: one
    that is slow behind a quick first page would be left each time.
    """

    def __init__(self) -> None:
        self._slow: set[str] = set()

    async def first_page(
        self, which: str, call: Coroutine[Any, Any, T], ask: Callable[[], Awaitable[object]],
        close: Callable[[T], None], *, what: str,
    ) -> T:  # fmt: skip
        """Wait for a first page, as `unless_hung` does."""
        began, answers_max = _now(), inf if which in self._slow else ANSWERS_MAX
        try:
            answer = await unless_hung(call, ask, close, what=what, answers_max=answers_max)
        except Hung:
            self._slow.add(which)
            raise
        (self._slow.discard if _now() - began < ASK_SECONDS else self._slow.add)(which)
        return answer


async def unless_hung(
    call: Coroutine[Any, Any, T],
    ask: Callable[[], Awaitable[object]],
    close: Callable[[T], None],
    *,
    what: str,
    answers_max: float = inf,
) -> T:
    """Wait for the call. `ask` sends a small request to the same server, and raises ApiUnavailable without an answer.
    `close` ends an answer that comes too late. `answers_max`: how many small requests may be answered before it.

    Raises Hung, ApiUnavailable after WAIT_SECONDS, and what the call raises.
    """
    task = asyncio.create_task(call)
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            await _wait_or_ask(task, ask, what, answers_max)
    except TimeoutError as error:
        await _abandon(task, close)
        raise ApiUnavailable(f"{what} got no answer within {WAIT_SECONDS:g} s") from error
    except BaseException:  # a cancellation too: the call would go on, and its answer stay open
        await _abandon(task, close)
        raise
    return task.result()


async def _wait_or_ask(
    task: asyncio.Task[Any], ask: Callable[[], Awaitable[object]], what: str, answers_max: float
) -> None:
    """Return when the task has ended: also while a small request waits, which a slow server answers as late."""
    unanswered, answers = False, 0
    while not (await asyncio.wait({task}, timeout=ASK_SECONDS))[0]:
        asking = asyncio.create_task(_answers(ask))
        try:
            await asyncio.wait({task, asking}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            asking.cancel()
            await asyncio.wait({asking})
        if task.done():
            return
        answered = asking.result()
        if answered and unanswered:
            raise Hung(f"{what} hangs, on a server that answers again")
        answers += answered
        if answers >= answers_max:
            raise Hung(f"{what} hangs, on a server that answers other requests")
        unanswered = unanswered or not answered


async def _abandon(task: asyncio.Task[T], close: Callable[[T], None]) -> None:
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled() and task.exception() is None:
        close(task.result())


def _now() -> float:
    """Seconds on the event loop's clock: for measuring durations."""
    return asyncio.get_running_loop().time()


async def _answers(ask: Callable[[], Awaitable[object]]) -> bool:
    try:
        await ask()
    except ApiUnavailable:
        return False
    return True
