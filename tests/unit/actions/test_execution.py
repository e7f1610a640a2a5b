"""Checks before each write of an action, and the write whose caller is cancelled."""

from __future__ import annotations

import asyncio

import pytest

from reactor.actions import execution
from reactor.actions.execution import ExecutionContext
from reactor.actions.outcomes import Declined, OutOfTime, failed
from reactor.clients.kubernetes_port import ApiUnavailable
from reactor.runtime.clock import Clock
from tests.clock import on_virtual_time, virtual_clock


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


def test_a_write_takes_no_longer_than_it_may() -> None:
    async def written() -> None:
        context = ExecutionContext()
        context.limit(virtual_clock(), begin_within=6, take_at_most=1)
        with pytest.raises(ApiUnavailable, match=r"PATCH got no answer within 1 s"):
            await context.write("PATCH", lambda: asyncio.sleep(60))

    on_virtual_time(written())


@pytest.mark.parametrize(("takes", "unanswered"), [(0.9, False), (1.1, True)])
def test_a_write_under_way_is_waited_for_when_its_caller_is_cancelled_but_not_for_long(
    takes: float, unanswered: bool
) -> None:
    context, landed = ExecutionContext(), list[str]()

    async def send() -> None:
        await asyncio.sleep(takes * execution.LAND_SECONDS)
        landed.append("PATCH")

    async def cancelled() -> None:
        call = asyncio.create_task(context.write("PATCH", send))
        await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    on_virtual_time(cancelled())
    assert (context.unanswered, landed) == (unanswered, [] if unanswered else ["PATCH"])
