"""Answers executors that ask whether an action is still wanted, on evidence from after the question.

What was right when it was decided may be wrong by now: the action waited in a queue, in a process that was stopped, or
behind a slow API. So the sources are asked to look again, and the answer is what their looks make of the group.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pydantic import ValidationError

from bus.messages import RefreshRequest, WantedReply, WantedRequest
from reactor.decide.refreshing import Refresher
from reactor.execute.cancellation import FRESH
from reactor.runtime.clock import Clock
from reactor.sources.refresh import AHEAD_SECONDS_MAX
from rules.engine.evidence import Confirmation
from rules.engine.groups import GroupStore
from rules.engine.subscriptions import RuleObject

log = logging.getLogger(__name__)

ANSWER_WITHIN = timedelta(seconds=4)
"""Time within which an executor gets its answer on evidence that is no older than FRESH, and within FRESH more, on
evidence twice as old. Without an answer it waits a little, and the action is asked for again."""
SLOW_AFTER = timedelta(seconds=30)
"""Time for which questions about one object stay without an answer until evidence counts that is as old as OLD. Most
outages are over by then."""
OLD = timedelta(seconds=10)
"""Oldest evidence that counts where no look is answered in less time: so long is a request waited for. Else a server
that takes three seconds for each answer would prevent all actions."""
AHEAD_MAX = timedelta(seconds=AHEAD_SECONDS_MAX)
LOOK = 0.25
"""Seconds after which the sources are asked again. A decision for the action's group is looked at as it is made."""


@dataclass(eq=False, slots=True)
class _Waiter:
    """One question without an answer so far."""

    groups: frozenset[RuleObject]
    """Those that its answer rests on."""
    decided: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when one of them was decided for."""


@dataclass(frozen=True, slots=True)
class _Unanswered:
    """Questions about one object that got no answer, one after the other."""

    first_at: datetime
    last_at: datetime


class Questions:
    """The questions about one partition's actions."""

    def __init__(
        self, group_store: Callable[[], GroupStore], refresher: Refresher, clock: Clock, wake: Callable[[], None]
    ) -> None:  # fmt: skip
        """`group_store`: gives the partition's groups as they are now. `wake`: has the partition decide at once."""
        self._group_store = group_store
        self._wake = wake
        self._refresher = refresher
        self._clock = clock
        self._waiting: set[_Waiter] = set()
        self._unanswered: dict[RuleObject, _Unanswered] = {}

    def decided(self, groups: Collection[RuleObject]) -> None:
        """The partition has decided for these groups: what questions about them lack may be there.

        The others are not looked at: hundreds may wait, and most decisions are about one group.
        """
        for waiter in self._waiting:
            if not waiter.groups.isdisjoint(groups):
                waiter.decided.set()

    @contextmanager
    def _waiter(self, asked: WantedRequest) -> Iterator[_Waiter]:
        waiter = _Waiter(self._group_store().confirmed_by(asked.rule, asked.object))
        self._waiting.add(waiter)
        try:
            yield waiter
        finally:
            self._waiting.discard(waiter)

    async def refresh(self, judge: tuple[str, str], body: bytes) -> None:
        """Have this group judge by what the sources of its members see now. They are asked first."""
        try:
            wanted = RefreshRequest.model_validate_json(body)
        except ValidationError as error:
            log.warning("a refresh request cannot be read: %s", error.errors(include_url=False)[0]["msg"])
            return
        now = self._clock.now()
        not_before = min(wanted.not_before, now + AHEAD_MAX)
        await self._clock.sleep(max((not_before - now).total_seconds(), 0))
        lacks = self._group_store().ask(judge, not_before, self._clock.now())
        self._wake()  # where no look is missing no fact comes
        await self._refresher.ask(lacks)

    async def answer(self, body: bytes) -> bytes | None:
        """Give a WantedReply; None: there is no evidence from after the question."""
        try:
            asked = WantedRequest.model_validate_json(body)
        except ValidationError as error:
            log.warning("a question about an action cannot be read: %s", error.errors(include_url=False)[0]["msg"])
            return None
        answer = await self._proven(asked)
        if answer is None:
            return None
        reply = WantedReply(wanted=bool(answer.wanted), detail=answer.detail, at=self._clock.now())
        return reply.model_dump_json(by_alias=True).encode()

    async def _proven(self, asked: WantedRequest) -> Confirmation | None:
        """Give a yes or a no on evidence from after the question; None: there was none in time."""
        asked_at = self._clock.now()
        is_slow = self._is_slow(asked, asked_at)
        with self._waiter(asked) as waiter:
            while True:
                waiter.decided.clear()
                now = self._clock.now()
                answer = self._confirmed(asked, asked_at, now, is_slow=is_slow)
                if answer.wanted is not None:
                    self._unanswered.pop((asked.rule, asked.object), None)
                    return answer
                if now >= asked_at + ANSWER_WITHIN + FRESH:
                    self._stay_unanswered(asked, asked_at)
                    return None
                await self._refresher.ask(answer.lacks)
                try:
                    async with asyncio.timeout(LOOK):
                        await waiter.decided.wait()
                except TimeoutError:
                    continue

    def _confirmed(self, asked: WantedRequest, asked_at: datetime, now: datetime, *, is_slow: bool) -> Confirmation:
        """Give the answer on what is known now. What was seen first is no reason for a yes when it is old by now: on a
        busy machine each look takes its time, and one of the later ones is as young as it has to be."""
        in_time = now < asked_at + ANSWER_WITHIN
        answer = self._seen_since(asked_at, asked, now)
        if answer.wanted and now - asked_at > FRESH:
            answer = self._seen_since(now - (FRESH if in_time else 2 * FRESH), asked, now)
        if answer.wanted is None and is_slow:
            answer = self._seen_since(now - FRESH, asked, now)  # those that do answer in time are asked again
            old = answer if in_time else self._seen_since(now - OLD, asked, now)
            if old.wanted:
                slow = ", ".join(sorted({lack.source for lack in answer.lacks}))
                log.warning(
                    "%s: looks take long: %s goes on what was seen up to %g s ago",
                    slow, asked.action, OLD.total_seconds(),
                )  # fmt: skip
                return old
        return answer

    def _seen_since(self, since: datetime, asked: WantedRequest, now: datetime) -> Confirmation:
        return self._group_store().confirm(asked.rule, asked.object, asked.action, since, now)

    def _is_slow(self, asked: WantedRequest, now: datetime) -> bool:
        """True if questions about this object have had no answer for so long that looks cannot be faster."""
        before = self._unanswered.get((asked.rule, asked.object))
        return before is not None and now - before.first_at >= SLOW_AFTER and now - before.last_at < SLOW_AFTER

    def _stay_unanswered(self, asked: WantedRequest, now: datetime) -> None:
        """Note a question without an answer; forget those after which none came for long."""
        kept = {key: one for key, one in self._unanswered.items() if now - one.last_at < SLOW_AFTER}
        key = (asked.rule, asked.object)
        first_at = kept[key].first_at if key in kept else now
        self._unanswered = kept | {key: _Unanswered(first_at, now)}
