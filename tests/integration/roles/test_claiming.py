"""A bus that is slow to take one word keeps a decider from that partition, and from none that it has."""

from __future__ import annotations

import pytest

from bus.errors import Unavailable
from bus.testing.memory import MemoryBus
from bus.topology import LEASES
from reactor.decide import decider as decider_
from reactor.decide.decider import Decider
from reactor.decide.partition import Partition
from reactor.decide.partition_context import PartitionContext
from reactor.fleet import fleet
from reactor.runtime.clock import Clock
from rules.engine.routing import Routing
from tests.integration.roles.conftest import eventually, running

LATE = 2


class Slow(MemoryBus):
    """A bus that does not confirm our word on one partition, and counts how often it was asked to."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock.now)
        self.slow = True
        self.asked = 0

    def refuse(self, key: str) -> None:
        if self.slow and key == f"owner.{LATE}":
            self.asked += 1
            raise Unavailable("no confirmation")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (fleet, decider_):
        monkeypatch.setattr(module, "LOOK", 0.005)


async def test_one_slow_claim_or_release_ends_no_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    bus = Slow(clock)
    store = bus.store(LEASES)
    put = store.put

    async def slow(key: str, value: bytes, *, revision: int | None) -> int:
        bus.refuse(key)
        return await put(key, value, revision=revision)

    monkeypatch.setattr(store, "put", slow)
    one = Decider(PartitionContext(bus, clock, Routing([]), 3, "one"))
    async with running(one.run):
        await eventually(lambda: bus.asked > 3)
        assert one.owned() == [0, 1]
        before = dict(one._running)
        await eventually(lambda: bus.asked > 6)
        assert dict(one._running) == before
        bus.slow = False
        await eventually(lambda: one.owned() == [0, 1, 2])
        bus.slow, bus.asked = True, 0
        monkeypatch.setattr(one.fleet, "wanted", lambda: frozenset({0, 1}))
        await eventually(lambda: bus.asked > 3)
        assert {number: one._running[number] for number in one.owned()} == before


async def test_a_bus_that_is_away_hides_no_other_error() -> None:
    async def fail(number: int) -> None:
        raise [Unavailable("no confirmation"), KeyError(number), Unavailable("no confirmation")][number]

    with pytest.raises(KeyError):
        await decider_._each(fail, range(3))
    with pytest.raises(Unavailable):
        await decider_._each(fail, (0, 2))


async def test_one_broken_partition_harms_no_hand_over_and_ends_no_decider(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken = True
    checkpoint = Partition._checkpoint

    async def breaks(self: Partition) -> None:
        if broken and self._number == LATE:
            raise ZeroDivisionError("a mistake of ours")
        await checkpoint(self)

    monkeypatch.setattr(Partition, "_checkpoint", breaks)
    clock = Clock()
    one = Decider(PartitionContext(MemoryBus(clock.now), clock, Routing([]), 4, "one"))
    everything = one.fleet.wanted
    async with running(one.run) as task:
        await eventually(lambda: one.owned() == [0, 1, 2, 3])
        monkeypatch.setattr(one.fleet, "wanted", frozenset[int])
        await eventually(lambda: one.owned() == [] and one.fleet.owned() == frozenset())
        assert not task.done()
        assert "partition 2 was not handed over cleanly" in caplog.text
        broken = False
        monkeypatch.setattr(one.fleet, "wanted", everything)
        await eventually(lambda: one.owned() == [0, 1, 2, 3])
