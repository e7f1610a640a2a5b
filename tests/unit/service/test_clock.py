"""Time of a process: one whose clock differs from the bus's uses the bus's, one whose clock is right its own."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from bus.testing.memory import MemoryBus
from reactor.fleet.fleet import Fleet
from reactor.fleet.peers import LEASE
from reactor.process.session import clock_difference, keep_time_with
from reactor.runtime.clock import DRIFT, Clock
from tests.clock import HandClock


class SlowBus(MemoryBus):
    """A bus whose answers take some time, both ways or on the way back only."""

    def __init__(self, clock: Clock, takes: float, *, back: bool = False) -> None:
        super().__init__(clock.now)
        self._clock, self._takes, self._back = clock, takes, back
        self.probes = 0

    async def probe(self) -> datetime:
        self.probes += 1
        there, back = (0.0, self._takes) if self._back else (self._takes / 2, self._takes / 2)
        await self._clock.sleep(there)
        stored_at = await super().probe()
        await self._clock.sleep(back)
        return stored_at


@pytest.mark.parametrize("seconds", [3600, -3600, 1.5, -86_400, 0.8, -0.8])
async def test_a_clock_that_is_off_is_set_by_the_bus(seconds: float) -> None:
    right, wrong = Clock(), Clock(wrong_by=timedelta(seconds=seconds))
    bus = MemoryBus(right.now)
    ahead, _ = await clock_difference(bus, wrong)
    assert abs(ahead.total_seconds() + seconds) < 0.1
    await keep_time_with(bus, wrong)
    assert abs((wrong.now() - right.now()).total_seconds()) < 0.1


async def test_a_difference_of_less_than_a_second_is_set_right_without_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Otherwise its dates would be too old, or too young, by as much for all others."""
    ours = Clock(wrong_by=timedelta(seconds=-0.9))
    await keep_time_with(MemoryBus(Clock().now), ours)
    assert ours.skew_seconds < 0.1
    assert not caplog.records


async def test_a_slow_answer_is_no_wrong_clock() -> None:
    """All of the time that an answer takes may be on one way: it says nothing about clocks."""
    right, ours = Clock(), Clock()
    bus = SlowBus(right, 0.2, back=True)
    ahead, doubt = await clock_difference(bus, ours)
    assert abs(ahead) <= doubt + timedelta(milliseconds=20)
    await keep_time_with(bus, ours)
    assert abs((ours.now() - right.now()).total_seconds()) < 0.05
    assert bus.probes == 4


async def test_the_quickest_answer_counts() -> None:
    right, wrong = Clock(), Clock(wrong_by=timedelta(hours=1))
    bus = SlowBus(right, 0.3, back=True)

    async def quicker() -> datetime:
        bus._takes /= 10
        return await SlowBus.probe(bus)

    bus.probe = quicker  # type: ignore[method-assign]
    await keep_time_with(bus, wrong)
    assert abs((wrong.now() - right.now()).total_seconds()) < 0.01


async def test_the_bound_of_the_skew_is_what_was_measured_and_grows_by_drift_until_it_is_measured_again() -> None:
    clock = HandClock()
    assert clock.skew_seconds == 0
    clock.measured(timedelta(seconds=0.1), timedelta(seconds=0.2))
    assert clock.skew_seconds == pytest.approx(0.3)
    clock.seconds = 100
    assert clock.skew_seconds == pytest.approx(0.3 + 100 * DRIFT)
    clock.measured(timedelta(seconds=0.0), timedelta(seconds=0.05))
    assert clock.skew_seconds == pytest.approx(0.05)
    clock.measured(timedelta(seconds=0.0), timedelta(seconds=2))
    assert clock.skew_seconds == pytest.approx(0.05), "a slow answer does not make the last one less true"
    clock.measured(timedelta(seconds=-5), timedelta(seconds=0.1))
    assert clock.skew_seconds == pytest.approx(5.1), "a clock was set"


def test_time_in_which_the_machine_was_suspended_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    before, started = clock.now(), clock.monotonic()
    monkeypatch.setattr("reactor.runtime.clock._running", lambda: started + 60)
    assert clock.now() - before >= timedelta(seconds=59.9)
    assert clock.monotonic() == started + 60


async def test_a_process_that_was_suspended_owns_nothing_until_it_was_heard_again() -> None:
    clock = HandClock()
    bus = MemoryBus(clock.now)
    fleet, other = Fleet(bus, "ours", 8, clock), Fleet(bus, "other", 8, HandClock())
    async with other.joined(), fleet.joined():
        assert fleet.wanted()
        clock.seconds += LEASE + 1
        assert not fleet.fresh
        assert not fleet.wanted()
