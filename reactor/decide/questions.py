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


class Questions:
    """The questions about one partition's actions."""

    def __init__(self, group_store: Callable[[], GroupStore], refresher: Refresher, clock: Clock) -> None:
        """`group_store`: gives the partition's groups as they are now."""
        self._group_store = group_store
        self._refresher = refresher
        self._clock = clock
        self._waiting: set[_Waiter] = set()

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
        await self._refresher.ask(self._group_store().ask(judge, not_before, self._clock.now()))

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
        with self._waiter(asked) as waiter:
            while True:
                waiter.decided.clear()
                now = self._clock.now()
                answer = self._confirmed(asked, asked_at, now)
                if answer.wanted is not None:
                    return answer
                if now >= asked_at + ANSWER_WITHIN + FRESH:
                    return None
                await self._refresher.ask(answer.lacks)
                try:
                    async with asyncio.timeout(LOOK):
                        await waiter.decided.wait()
                except TimeoutError:
                    continue

    def _confirmed(self, asked: WantedRequest, asked_at: datetime, now: datetime) -> Confirmation:
        """Give the answer on what is known now. What was seen first is no reason for a yes when it is old by now: on a
        busy machine each look takes its time, and one of the later ones is as young as it has to be."""
        store = self._group_store()
        answer = store.confirm(asked.rule, asked.object, asked.action, asked_at, now)
        if not answer.wanted or now - asked_at <= FRESH:
            return answer
        age = FRESH if now < asked_at + ANSWER_WITHIN else 2 * FRESH
        return store.confirm(asked.rule, asked.object, asked.action, now - age, now)
