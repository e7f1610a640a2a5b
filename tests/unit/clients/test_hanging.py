"""A request that hangs is left when the server answers again; one that is slow is not."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from reactor.clients import hanging
from reactor.clients.hanging import Hung, SlowLists, unless_hung
from reactor.clients.kubernetes_port import ApiUnavailable


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hanging, "ASK_SECONDS", 0.01)


class Server:
    """Answers small requests as it is told to, and the last way from then on."""

    def __init__(self, *answers: bool) -> None:
        self.asked = 0
        self._answers: Iterator[bool] = iter(answers)
        self._last = True

    async def ask(self) -> None:
        self.asked += 1
        self._last = next(self._answers, self._last)
        if not self._last:
            raise ApiUnavailable("no answer")


def closed(answer: str) -> None:
    raise AssertionError(answer)


async def forever() -> str:
    await asyncio.Event().wait()
    return "never"


async def test_what_hangs_is_left_when_the_server_answers_again() -> None:
    server = Server(True, False, False, True)
    with pytest.raises(Hung):
        await unless_hung(forever(), server.ask, closed, what="GET /x")
    assert server.asked == 4


async def test_what_is_answered_at_once_or_never_is_left_after_some_answers_to_others() -> None:
    server = Server()
    with pytest.raises(Hung):
        await unless_hung(forever(), server.ask, closed, what="GET /x?watch", answers_max=3)
    assert server.asked == 3


async def test_a_lost_page_is_left_and_the_next_one_is_waited_for_until_pages_are_quick_again() -> None:
    lists, server = SlowLists(), Server()

    async def page(call: Coroutine[Any, Any, str]) -> str:
        return await lists.first_page("/pods", call, server.ask, closed, what="GET /pods")

    async def slow(answers: int) -> str:
        while server.asked < answers:
            await asyncio.sleep(0)
        return "a page"

    async def quick() -> str:
        return "a page"

    with pytest.raises(Hung):
        await page(forever())
    assert server.asked == 3
    assert await lists.first_page("/pods?app", quick(), server.ask, closed, what="GET /pods?app") == "a page"
    assert await page(slow(3 + 5)) == "a page", "what is quick with another selector says nothing of this LIST"
    assert await page(slow(8 + 5)) == "a page"  # it was slow
    assert await page(quick()) == "a page"
    with pytest.raises(Hung):
        await page(forever())
    assert server.asked == 13 + 3


async def test_a_slow_answer_of_a_server_that_answers_others_is_waited_for() -> None:
    server = Server()

    async def slow() -> str:
        while server.asked < 5:
            await asyncio.sleep(0)
        return "all of it"

    assert await unless_hung(slow(), server.ask, closed, what="GET /x") == "all of it"


async def test_a_slow_answer_is_not_kept_waiting_by_small_requests_that_are_as_slow() -> None:
    asked, left = asyncio.Event(), list[str]()

    async def slow() -> str:
        await asked.wait()
        return "all of it"

    async def ask() -> None:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.append("left")

    assert await unless_hung(slow(), ask, closed, what="GET /x") == "all of it"
    assert left == ["left"]


async def test_a_quick_answer_costs_no_other_request() -> None:
    server = Server()

    async def quick() -> str:
        return "here"

    assert await unless_hung(quick(), server.ask, closed, what="GET /x") == "here"
    assert server.asked == 0


async def test_nothing_is_waited_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hanging, "WAIT_SECONDS", 0.05)
    with pytest.raises(ApiUnavailable, match="within"):
        await unless_hung(forever(), Server(False).ask, closed, what="GET /x")


async def test_an_answer_that_comes_as_the_caller_leaves_is_closed() -> None:
    closed_, here = list[str](), asyncio.Event()

    async def answer() -> str:
        await here.wait()
        return "late"

    waiting = asyncio.create_task(unless_hung(answer(), Server().ask, closed_.append, what="GET /x"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    here.set()
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert closed_ == ["late"]
