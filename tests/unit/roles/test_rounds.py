"""Facts that are reported together are one round on the bus, and the failure of one does not affect another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from bus.errors import Malformed, NotPermitted, Unavailable
from bus.port import Outgoing
from reactor.route.rounds import Rounds
from tests.clock import on_virtual_time


class Bus:
    """Notes its rounds; each takes a second."""

    def __init__(self, refused: str = "", error: Exception | None = None) -> None:
        self.rounds: list[list[str]] = []
        self.stored: list[str] = []
        self._refused, self._error = refused, error

    async def publish_all(self, messages: Sequence[Outgoing]) -> None:
        ids = [message.id for message in messages]
        self.rounds.append(ids)
        await asyncio.sleep(1)
        if self._error is not None and self._refused in ids:
            raise self._error
        self.stored += ids


def message(id_: str) -> Outgoing:
    return Outgoing("a.b", b"", id_)


def rounds(bus: Bus) -> Rounds:
    return Rounds(cast("Any", bus))


def test_what_is_told_at_once_is_one_round_and_what_comes_later_another() -> None:
    async def run() -> list[list[str]]:
        bus = Bus()
        one = rounds(bus)
        await asyncio.gather(one.publish([message("a"), message("b")]), one.publish([message("c")]))
        await one.publish([message("d")])
        return bus.rounds

    assert on_virtual_time(run()) == [["a", "b", "c"], ["d"]]


@pytest.mark.parametrize("error", [Malformed("m"), NotPermitted("n")])
def test_what_is_refused_harms_no_other(error: Exception) -> None:
    async def run() -> tuple[list[object], list[str]]:
        bus = Bus("b", error)
        one = rounds(bus)
        told = [one.publish([message(id_)]) for id_ in "abc"]
        return await asyncio.gather(*told, return_exceptions=True), bus.stored

    assert on_virtual_time(run()) == ([None, error, None], ["a", "c"])


def test_a_bus_that_is_away_is_away_for_all() -> None:
    error = Unavailable("u")

    async def run() -> tuple[list[object], int]:
        bus = Bus("b", error)
        one = rounds(bus)
        told = [one.publish([message(id_)]) for id_ in "abc"]
        return await asyncio.gather(*told, return_exceptions=True), len(bus.rounds)

    assert on_virtual_time(run()) == ([error] * 3, 1)


@pytest.mark.parametrize("after", [0.0, 0.5])
def test_one_that_waits_no_longer_ends_the_round_only_if_no_other_does(after: float) -> None:
    async def run() -> tuple[list[str], list[str]]:
        bus = Bus()
        one = rounds(bus)
        first, second, third = (asyncio.create_task(one.publish([message(id_)])) for id_ in "abc")
        await asyncio.sleep(after)
        first.cancel()
        await asyncio.gather(first, second, third, return_exceptions=True)
        alone = asyncio.create_task(one.publish([message("d")]))
        await asyncio.sleep(after)
        alone.cancel()
        await asyncio.gather(alone, return_exceptions=True)
        await one.publish([message("e")])
        return bus.stored, bus.rounds[-1]

    stored, last = on_virtual_time(run())
    assert set("bc") <= set(stored)
    assert "d" not in stored
    assert last == ["e"]
