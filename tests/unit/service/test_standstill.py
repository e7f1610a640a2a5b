"""A process that was suspended knows it before it publishes anything."""

from __future__ import annotations

from reactor.runtime.standstill import NEVER
from tests.clock import HandClock


def test_a_standstill_is_noticed_by_who_asks_first_and_wakes_those_who_watch() -> None:
    clock, woken = HandClock(), []
    forget = clock.standstill.watch(lambda: woken.append(clock.seconds))
    clock.standstill.tick()
    clock.seconds = 0.5
    assert clock.standstill.ended_at == NEVER
    clock.standstill.tick()
    clock.seconds = 9
    assert clock.standstill.ended_at == HandClock(9).now()
    clock.seconds = 9.2
    clock.standstill.tick()
    assert clock.standstill.ended_at == HandClock(9).now()
    forget()
    clock.seconds = 20
    clock.standstill.tick()
    assert (clock.standstill.ended_at, woken) == (HandClock(20).now(), [9])


def test_nothing_is_a_standstill_while_nothing_ticks() -> None:
    clock = HandClock()
    clock.seconds = 100
    assert clock.standstill.ended_at == NEVER
