"""What precedes each write of an action, and what becomes of a write when its caller is cancelled."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from reactor.actions import execution
from reactor.actions.execution import ExecutionContext
from reactor.actions.outcomes import Declined, OutOfTime, failed
from reactor.clients.kubernetes_port import ApiUnavailable
from reactor.runtime.clock import Clock


class Stepped(Clock):
    """Time that goes on only when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 0.0

    def monotonic(self) -> float:
        return self.passed


async def test_what_is_called_off_is_not_written_and_the_outcome_is_refused() -> None:
    sent: list[str] = []

    async def no() -> None:
        raise Declined("CalledOff", "the primary is Healthy")

    async def send() -> None:
        sent.append("PATCH")

    with pytest.raises(Declined) as error:
        await ExecutionContext(no).write("PATCH", send)
    outcome = failed("a/1", Clock(), error.value)
    assert (sent, outcome.status, outcome.reason) == ([], "Refused", "CalledOff")


async def test_no_write_begins_when_the_time_for_it_is_over_also_if_the_answer_of_the_decider_took_it() -> None:
    clock = Stepped()

    async def slow_yes() -> None:
        clock.passed += 4

    async def send() -> str:
        return "sent"

    context = ExecutionContext(slow_yes)
    context.limit(clock, begin_within=6, take_at_most=1)
    assert await context.write("first", send) == "sent"
    with pytest.raises(OutOfTime, match="second: the time of this call is over"):
        await context.write("second", send)


async def test_a_write_takes_no_longer_than_it_may() -> None:
    context = ExecutionContext()
    context.limit(Clock(), begin_within=6, take_at_most=0.01)
    with pytest.raises(ApiUnavailable, match=r"PATCH got no answer within 0.01 s"):
        await context.write("PATCH", lambda: asyncio.sleep(60))


@pytest.mark.parametrize(("takes", "unanswered"), [(0.02, False), (60.0, True)])
async def test_a_write_under_way_is_waited_for_when_its_caller_is_cancelled_but_not_for_long(
    monkeypatch: pytest.MonkeyPatch, takes: float, unanswered: bool
) -> None:
    monkeypatch.setattr(execution, "LAND_SECONDS", timedelta(milliseconds=200).total_seconds())
    context, landed = ExecutionContext(), list[str]()

    async def send() -> None:
        await asyncio.sleep(takes)
        landed.append("PATCH")

    call = asyncio.create_task(context.write("PATCH", send))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (context.unanswered, landed) == (unanswered, [] if unanswered else ["PATCH"])
