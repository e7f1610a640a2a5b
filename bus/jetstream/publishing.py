"""Publishing with acknowledgement: many messages in one go, one inbox for all their answers, one future per round.

nats-py's own ways cost 50 µs a message and more, and its publish_async waits without end for an answer that a killed
server took with it (both measured). Here a message costs about 25 µs, and what is not confirmed in time is published
again with the same id until `patience` is over: the server stores it once.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TypeVar

from nats.aio.msg import Msg
from nats.errors import BadHeaderError, BadSubjectError, Error, MaxPayloadError, OutboundBufferLimitError

from bus.errors import Malformed, NotPermitted, Refused, Unavailable
from bus.jetstream.batch_choice import BatchChoice
from bus.jetstream.connection import Connection
from bus.jetstream.in_flight import InFlightLimit
from bus.jetstream.pending_publish import PendingPublish, as_batch, chunks, fit_in_round, may_be_batch, root_of
from bus.jetstream.wire import OutgoingMessage

UNANSWERED_MAX = 512  # of one stream: half a second's work of a busy disk, and a hundred times what a quiet one needs
PAUSE_SECONDS = 0.1  # before asking again a server that answered "not now", or a client whose buffer is full
HEARD_SECONDS = 0.25  # so often at most the answers of one stream move limits on
ELSEWHERE = 10071  # JetStream: wrong last sequence
STORED = 10201  # a batch has the id of a message that is stored already
NO_BATCHES = (10174, 10177)  # not in this stream; not with ids, by a server of before 2.12.1
IN_PROCESS = (10158, 10164)  # a cluster: the same id, or another message under the same expectation, is being stored
NO_ANSWER = "no answer"
NOT_STORED = (NO_ANSWER, "no space left", "insufficient")  # in what the server says, or does not, when its disk is full
NOT_NOW = (408, 429, 500, 503)  # JetStream: no leader, no space, too much at once, the same id is being stored

Result = TypeVar("Result")


@dataclass(slots=True)
class _PublishRound:
    """Messages on their way: the answers so far, by index."""

    posts: Sequence[PendingPublish]
    open: set[int]
    done: asyncio.Future[None]
    give_up: float
    inbox: str
    """The answer to each message comes there, under its index."""
    losses: int
    """Number of times that the connection was lost before."""
    answers: dict[int, Msg] = field(default_factory=dict)
    limit: asyncio.Timeout | None = None
    """Timeout within which an answer has to come, to one of these or to what was sent before them."""


class Publisher:
    """Publishes and waits for what the server says about each message."""

    def __init__(self, connection: Connection, *, patience: timedelta) -> None:
        self._connection = connection
        self._patience = patience.total_seconds()
        self._prefix = connection.client.new_inbox()
        self._rounds: dict[str, _PublishRound] = {}
        self._heard_at: dict[str, float] = defaultdict(float)
        """Time at which answers of a stream last moved limits on."""
        self._in_flight: dict[str, InFlightLimit] = defaultdict(partial(InFlightLimit, UNANSWERED_MAX))
        self._count = self._ids = 0
        self._choices: dict[str, BatchChoice] = defaultdict(BatchChoice)
        self._no_batches: set[str] = set()
        """The streams that take no batches, by the first tokens of their subjects."""

    async def start(self) -> None:
        """Listen for answers. Ends with the connection."""
        self._connection.watch(self._on_change)
        await self._connection.client.subscribe_directly(f"{self._prefix}.*.*", self._on_answer)

    def new_id(self) -> str:
        """Give an id for a message that has none of its own, so that it too can be published again."""
        self._ids += 1
        return f"{self._prefix}-{self._ids}"

    async def send(self, posts: Sequence[PendingPublish]) -> list[int | Refused]:
        """Give each message's sequence, or that its expectation did not hold.

        Raises Unavailable, NotPermitted, Malformed.
        """
        if len(posts) == 1:
            return await self._send_chunk(posts)
        results: list[int | Refused] = []
        for chunk in chunks(posts):
            results += await self._send_chunk(chunk)
        return results

    async def send_together(self, posts: Sequence[PendingPublish]) -> list[int | Refused]:
        """The same; many of one stream go as batches where that takes less. A batch that is refused is sent again, each
        message alone."""
        results: list[int | Refused] = []
        for chunk in chunks(posts):
            results += await (self._sent_best(chunk) if may_be_batch(chunk) else self.send(chunk))
        return results

    async def _sent_best(self, posts: Sequence[PendingPublish]) -> Sequence[int | Refused]:
        loop, choice = asyncio.get_running_loop(), self._choices[root_of(posts[0])]
        batch, began = choice.next(), loop.time()
        newest = await self.send_batch(posts) if batch else None
        results = range(newest - len(posts) + 1, newest + 1) if isinstance(newest, int) else await self.send(posts)
        choice.took((loop.time() - began) / len(posts), batch=batch)
        return results

    async def send_batch(self, posts: Sequence[PendingPublish]) -> int | Refused | None:
        """Have all of these stored or none, by one answer: the sequence of the last one. They are of one stream.

        None: that cannot be done here, and nothing is stored. Refused also where one of them is stored already.
        Raises Unavailable, NotPermitted, Malformed.
        """
        if not fit_in_round(posts) or root_of(posts[0]) in self._no_batches:
            return None
        return await self._send_within_limit(posts, self._stored_together)

    async def _send_chunk(self, posts: Sequence[PendingPublish]) -> list[int | Refused]:
        return await self._send_within_limit(posts, self._stored)

    async def _send_within_limit(
        self, posts: Sequence[PendingPublish], send: Callable[[Sequence[PendingPublish]], Awaitable[Result]]
    ) -> Result:
        limit = self._in_flight[root_of(posts[0])]
        await limit.acquire(len(posts))
        try:
            return await send(posts)
        except NotPermitted:
            raise  # says nothing of other subjects
        except Unavailable as error:
            limit.fail(str(error))
            raise
        finally:
            limit.release(len(posts))

    async def _stored(self, posts: Sequence[PendingPublish]) -> list[int | Refused]:
        loop = asyncio.get_running_loop()
        give_up = loop.time() + self._patience
        results: dict[int, int | Refused] = {}
        why, said = "the connection is down", ""
        while missing := [index for index in range(len(posts)) if index not in results]:
            if loop.time() >= give_up:
                raise self._unconfirmed([posts[index] for index in missing], len(posts), why)
            answers = await self._round(posts, missing, give_up)
            if denied := self._denied(posts, missing):
                raise NotPermitted(f"this user of the bus may not publish on {', '.join(sorted(denied))}")
            why = NO_ANSWER if self._connection.up.is_set() else "the connection is down"
            for index, answer in answers.items():
                verdict = _verdict(answer)
                if isinstance(verdict, str):
                    said = verdict
                else:
                    results[index] = verdict
                    self._connection.unstored.pop(root_of(posts[index]), None)
            if said:  # the last round may end before its answers: the server's own words tell more
                why = said if len(answers) == len(missing) else f"{why}; before: {said}"
            if len(answers) == len(missing) and len(results) < len(posts):
                await asyncio.sleep(PAUSE_SECONDS)  # every one answered, some with "not now"
        return [results[index] for index in range(len(posts))]

    async def _stored_together(self, posts: Sequence[PendingPublish]) -> int | Refused | None:
        """The server keeps back what is not committed, and answers the last one for all."""
        loop = asyncio.get_running_loop()
        give_up = loop.time() + self._patience
        last, why = len(posts) - 1, "the connection is down"
        while loop.time() < give_up:
            answers = await self._round(as_batch(posts, self.new_id()), range(len(posts)), give_up, answered=(last,))
            if denied := self._denied(posts, range(len(posts))):
                raise NotPermitted(f"this user of the bus may not publish on {', '.join(sorted(denied))}")
            if (answer := answers.get(last)) is None:
                why = NO_ANSWER if self._connection.up.is_set() else "the connection is down"
                continue
            return self._verdict_on_batch(answer, posts)
        raise self._unconfirmed(posts, len(posts), why)

    def _verdict_on_batch(self, answer: Msg, posts: Sequence[PendingPublish]) -> int | Refused | None:
        """Sequence of a batch, or Refused; None: not as a batch, or not now: some of it may go by itself, as where a
        queue is nearly full."""
        try:
            verdict = _verdict(answer)
        except Malformed:
            error = json.loads(answer.data)["error"]
            if error.get("err_code") in NO_BATCHES:
                self._no_batches.add(root_of(posts[0]))
            return Refused(error["description"]) if error.get("err_code") == STORED else None
        if isinstance(verdict, str):
            return None
        if isinstance(verdict, int):
            self._connection.unstored.pop(root_of(posts[0]), None)
        return verdict

    def _unconfirmed(self, missing: Sequence[PendingPublish], of: int, why: str) -> Unavailable:
        now = asyncio.get_running_loop().time()
        # Of a server that was away until a moment ago it says nothing.
        was_there = now - self._connection.found_at >= self._patience
        if was_there and any(text in why for text in NOT_STORED):
            self._connection.unstored |= dict.fromkeys(map(root_of, missing), now)
        return Unavailable(f"{len(missing)} of {of} messages not confirmed within {self._patience:g} s: {why}")

    async def _round(
        self, posts: Sequence[PendingPublish], indexes: Sequence[int], give_up: float, answered: Sequence[int] = ()
    ) -> dict[int, Msg]:
        """Publish once and give the answers that came in time. `answered`: who gets one, if not all do."""
        loop = asyncio.get_running_loop()
        self._count += 1
        name, full = str(self._count), False
        inbox = f"{self._prefix}.{name}"
        open_ = set(answered or indexes)
        current = _PublishRound(posts, open_, loop.create_future(), give_up, inbox, self._connection.losses)
        self._rounds[name] = current
        if denied := self._denied(posts, indexes):
            self._connection.denied -= {subject.lower() for subject in denied}  # it may be allowed by now
        try:
            async with asyncio.timeout_at(min(give_up, loop.time() + self._connection.timeout)) as current.limit:
                # What is published while the connection is down waits in nats-py's buffer, and is sent long after.
                await self._connection.up.wait()
                await self._connection.client.publish_together(
                    OutgoingMessage(post.subject, f"{inbox}.{index}" if index in open_ else "", post.body, post.headers)
                    for index, post in ((index, posts[index]) for index in indexes)
                )
                await current.done
        except TimeoutError:
            pass  # the caller sees who is missing
        except (MaxPayloadError, BadSubjectError, BadHeaderError) as error:
            raise Malformed(f"cannot be published: {error}") from error
        except OutboundBufferLimitError:
            full = True  # nats-py tells us that the connection is lost only some moments after it has begun to buffer
        except Error as error:  # a connection that has just ended: no fault of the message
            raise Unavailable(f"not connected: {error}") from error
        finally:
            del self._rounds[name]
        if full:
            await asyncio.sleep(PAUSE_SECONDS)
        return current.answers

    def _denied(self, posts: Sequence[PendingPublish], indexes: Iterable[int]) -> Set[str]:
        """The subjects among these on which we may not publish."""
        denied = self._connection.denied
        return (
            {posts[index].subject for index in indexes if posts[index].subject.lower() in denied} if denied else set()
        )

    def _on_answer(self, message: Msg) -> None:
        _, name, index = message.subject.rsplit(".", 2)
        current = self._rounds.get(name)
        if current is None:
            return  # an answer to a round that was given up; its next round is answered too
        self._extend_rounds(current)
        current.answers[int(index)] = message
        current.open.discard(int(index))
        if not current.open and not current.done.done():
            current.done.set_result(None)

    def _on_change(self) -> None:
        """End the rounds to which no answer will come: the connection was lost, or a subject is denied."""
        self._no_batches.clear()  # another server may answer now
        for current in self._rounds.values():
            lost = self._connection.losses != current.losses
            if (lost or self._denied(current.posts, current.open)) and not current.done.done():
                current.done.set_result(None)

    def _extend_rounds(self, current: _PublishRound) -> None:
        """A stream answers in order. While it does, what was sent later is on its way: it has as long again."""
        now, root = asyncio.get_running_loop().time(), root_of(current.posts[0])
        if now < self._heard_at[root] + HEARD_SECONDS:
            return
        self._heard_at[root] = now
        behind = False
        for one in self._rounds.values():
            behind = behind or one is current
            if behind and one.limit is not None and not one.limit.expired() and root_of(one.posts[0]) == root:
                one.limit.reschedule(min(one.give_up, now + self._connection.timeout))


def _verdict(answer: Msg) -> int | Refused | str:
    """Give the sequence, a refusal, or why it has to be tried again. Raises Malformed where that cannot help."""
    if not answer.data:
        return "no stream takes this subject, or its cluster has no leader"
    ack = json.loads(answer.data)
    error = ack.get("error")
    if error is None:
        return int(ack["seq"])
    if error.get("err_code") == ELSEWHERE:
        return Refused(error["description"])
    if error.get("code") in NOT_NOW or error.get("err_code") in IN_PROCESS:
        return str(error["description"])
    raise Malformed(f"the server does not take this message: {error['description']}")
