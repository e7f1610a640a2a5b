"""The decider's word: how long a yes holds, and that nothing goes on without one."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest

from bus import subjects
from bus.messages import Mode, WantedReply, WantedRequest, ZoneStep
from bus.testing.memory import MemoryBus
from reactor.actions.outcomes import Declined, Waited
from reactor.execute.cancellation import ANSWER, FRESH, CancellationCheck
from reactor.runtime.clock import Clock
from rules.rehearsal.simulation import at

PARTITION = 3
STEP = ZoneStep(
    id="zones/prod/a/1", rule="zones", object="prod/a", generation=1, mode=Mode.ENFORCE, because="Commanded",
    decided_at=at(0), cluster="prod", zone="a", carrier="Kubernetes", phase="Failover", status="InProgress",
    step="Fence",
)  # fmt: skip
LATER = FRESH + timedelta(milliseconds=1)


class Stepped(Clock):
    """Time that goes on only when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.time = at(0)

    def now(self) -> datetime:
        return self.time


class Decider:
    """Answers on the bus as the test says, and counts the questions."""

    def __init__(self) -> None:
        self.clock = Stepped()
        self.bus = MemoryBus(self.clock.now)
        self.asked: list[WantedRequest] = []
        self.wanted = True
        self.takes = timedelta(0)
        self.answers = True

    async def listen(self) -> Decider:
        await self.bus.listen(subjects.wanted(PARTITION), self._answer)
        return self

    async def _answer(self, body: bytes) -> bytes | None:
        self.asked.append(WantedRequest.model_validate_json(body))
        reply = WantedReply(wanted=self.wanted, detail="the primary is Healthy", at=self.clock.time)
        await asyncio.sleep(0)
        self.clock.time += self.takes
        return reply.model_dump_json(by_alias=True).encode() if self.answers else None

    def question(self, *, redelivered: bool = False) -> CancellationCheck:
        return CancellationCheck(self.bus, self.clock, STEP, PARTITION, redelivered=redelivered)


async def test_what_was_decided_a_moment_ago_is_begun_without_a_question() -> None:
    decider = await Decider().listen()
    decider.clock.time += FRESH
    await decider.question()()
    assert decider.asked == []


async def test_what_rests_on_evidence_that_is_older_than_a_moment_is_asked_about() -> None:
    decider = await Decider().listen()
    old = STEP.model_copy(update={"proven_at": at(0) - LATER})
    await CancellationCheck(decider.bus, decider.clock, old, PARTITION, redelivered=False)()
    assert len(decider.asked) == 1


async def test_what_has_waited_or_is_redelivered_is_asked_about() -> None:
    decider = await Decider().listen()
    await decider.question(redelivered=True)()
    decider.clock.time += LATER
    await decider.question()()
    question = WantedRequest(action=STEP.id, rule="zones", object="prod/a")
    assert decider.asked == [question, question]


async def test_what_is_no_longer_wanted_is_called_off_with_the_deciders_reason() -> None:
    decider = await Decider().listen()
    decider.wanted = False
    with pytest.raises(Declined, match="the primary is Healthy") as error:
        await decider.question(redelivered=True)()
    assert error.value.reason == "CalledOff"


async def test_without_an_answer_nothing_is_begun() -> None:
    decider = Decider()
    with pytest.raises(Waited, match="partition 3"):
        await decider.question(redelivered=True)()
    await decider.listen()
    decider.answers = False
    with pytest.raises(Waited):
        await decider.question(redelivered=True)()


async def test_a_yes_holds_for_a_second_after_what_it_rests_on_and_many_writes_share_it() -> None:
    decider = await Decider().listen()
    question = decider.question(redelivered=True)
    await asyncio.gather(*(question() for _ in range(16)))
    decider.clock.time += FRESH
    await question()
    assert len(decider.asked) == 1
    decider.clock.time += LATER - FRESH
    await question()
    assert len(decider.asked) == 2


async def test_a_process_that_was_suspended_while_it_waited_for_the_answer_does_not_use_it() -> None:
    decider = await Decider().listen()
    decider.takes = ANSWER + LATER
    with pytest.raises(Waited, match="was suspended"):
        await decider.question(redelivered=True)()


async def test_an_answer_that_cannot_be_read_is_none() -> None:
    decider = Decider()

    async def garbage(_: bytes) -> bytes:
        return b"{}"

    await decider.bus.listen(subjects.wanted(PARTITION), garbage)
    with pytest.raises(Waited, match="cannot be read"):
        await decider.question(redelivered=True)()
