"""A read of few Services alone that takes long is waited for beside a LIST of all."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, cast

from reactor.clients.list_page import ListPage
from reactor.sources.kubernetes.endpoints import ServiceName
from reactor.sources.kubernetes.service_looks import ServiceLooks
from tests.clock import on_virtual_time, virtual_clock

CART = ServiceName("shop", "cart")


class Api:
    """Has no slices. Takes `seconds` to say so."""

    cluster = "east"

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def page(self, _path: str, _query: Mapping[str, str]) -> ListPage:
        await asyncio.sleep(self._seconds)
        return ListPage(b'{"metadata": {}, "items": []}')


class Looking:
    """One source's single looks, asked for the same Service at each of the moments that `run` is given. `failures`:
    seconds at which a Service was found Unhealthy. `run` gives what came."""

    def __init__(self, seconds: float, failures: Collection[float]) -> None:
        self._clock = virtual_clock()
        self._began = self._asked = self._clock.now()
        self.listed: list[tuple[float, float]] = []
        """Second of each request for a LIST of all, and from which second on it has to begin."""
        self.seen: list[tuple[float, float]] = []
        """Second at which the Service was seen, and begin of the look that saw it."""
        self._looks = ServiceLooks(
            cast("Any", Api(seconds)), self._clock, None, wanted=lambda: {CART: self._asked}, shown=lambda _: {},
            failed_at=lambda moment: self._after(moment) in failures,
            list_all=lambda not_before: self.listed.append((self._now(), self._after(not_before))), seen=self._seen,
        )  # fmt: skip

    def _after(self, moment: datetime) -> float:
        return (moment - self._began).total_seconds()

    def _now(self) -> float:
        return self._after(self._clock.now())

    async def _seen(self) -> None:
        at = self._looks.seen_at(CART)
        assert at is not None
        self.seen.append((self._now(), self._after(at)))

    async def run(self, *asked: float) -> Looking:
        running = asyncio.create_task(self._looks.run())
        for moment in asked:
            await asyncio.sleep(moment - self._now())
            self._asked = self._clock.now()
            self._looks.look_again(self._asked)
        await asyncio.sleep(10)
        running.cancel()
        await asyncio.wait({running})
        return self


async def _looking(seconds: float, *asked: float, failures: Collection[float] = ()) -> Looking:
    return await Looking(seconds, failures).run(*asked)


def test_a_quick_answer_needs_no_list() -> None:
    looking = on_virtual_time(_looking(0.5, 0))
    assert looking.seen == [(0.5, 0)]
    assert looking.listed == []


def test_only_who_asks_from_the_moment_of_a_failure_is_answered_at_once() -> None:
    looking = on_virtual_time(_looking(0.5, 2, 4, failures=(2, 3)))
    assert looking.seen == [(2, 2), (4.5, 4)]
    assert looking.listed == []


def test_after_a_second_all_are_listed_and_the_answer_still_counts() -> None:
    looking = on_virtual_time(_looking(1.5, 0))
    assert looking.listed == [(1, 0)]
    assert looking.seen == [(1.5, 0)]


def test_while_an_answer_is_late_the_next_ones_are_listed_at_once() -> None:
    looking = on_virtual_time(_looking(3.0, 0, 2, 3.5))
    assert looking.listed == [(1, 0), (2, 2), (4.5, 3.5)]
    assert looking.seen == [(3, 0), (6.5, 3.5)]


def test_an_answer_that_does_not_come_is_given_up() -> None:
    looking = on_virtual_time(_looking(100.0, 0, 5))
    assert looking.listed == [(1, 0), (6, 5)]
    assert looking.seen == []
