"""Asks the decider of an action's partition, the only one that knows, if the action is still wanted.

What was right when it was decided may be wrong a moment later: the action waited in the queue, in a process that was
stopped, or behind a slow API. So the decider is asked again at every redelivery, and before each write for which its
last yes is no longer fresh. It answers on evidence from after the question; without an answer nothing is begun.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta

from pydantic import ValidationError

from bus import subjects
from bus.messages import Action, WantedReply, WantedRequest
from bus.port import Bus
from reactor.actions.outcomes import Declined, Waited
from reactor.runtime.clock import Clock

log = logging.getLogger(__name__)

FRESH = timedelta(seconds=1)
"""Validity of the decider's confirmation: half of the two seconds within which a pause stops all writes."""
ANSWER = timedelta(seconds=5.5)
"""Longest wait for the decider's answer: it may have to let its sources look again first, twice."""
DETAIL_MAX = 500


class CancellationCheck:
    """The decider's word on one delivery of an action; `await` it before each write."""

    def __init__(self, bus: Bus, clock: Clock, action: Action, partition: int, *, redelivered: bool) -> None:
        """Decided a moment ago, on evidence of that moment, is as good as a yes, unless other hands had it since."""
        self._bus = bus
        self._clock = clock
        self._action = action
        self._partition = partition
        seen_at = action.proven_at or action.decided_at
        self._yes_at: datetime | None = None if redelivered else min(seen_at, action.decided_at, clock.now())
        self._asking = asyncio.Lock()

    async def __call__(self) -> None:
        """Return if the action is wanted now.

        Raises Declined (CalledOff) where it is not, Waited where the decider does not answer, Unavailable.
        """
        async with self._asking:  # many writes of one action may wait for the same answer
            if not self._is_fresh():
                self._yes_at = await self._ask()

    def _is_fresh(self) -> bool:
        return self._yes_at is not None and self._clock.now() - self._yes_at <= FRESH

    async def _ask(self) -> datetime:
        """Give the moment for which the yes was given, as far as two clocks can tell."""
        action, asked_at = self._action, self._clock.now()
        question = WantedRequest(action=action.id, rule=action.rule, object=action.object)
        body = question.model_dump_json(by_alias=True).encode()
        answer = await self._bus.request(subjects.wanted(self._partition), body, ANSWER)
        if answer is None:
            raise Waited(f"the decider of partition {self._partition} does not say whether this is still wanted")
        try:
            reply = WantedReply.model_validate_json(answer)
        except ValidationError as error:
            raise Waited(f"the decider's answer cannot be read: {error.errors(include_url=False)[0]['msg']}") from error
        if not reply.wanted:
            raise Declined("CalledOff", reply.detail[:DETAIL_MAX] or "it is no longer wanted")
        now = self._clock.now()
        if now - asked_at > ANSWER + FRESH:
            raise Waited("the decider's answer was read too late: this process was suspended")
        return min(max(reply.at, asked_at), now)
