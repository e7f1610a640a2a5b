"""The decider role: own partitions, decide for them, give them away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager

from bus.errors import BusError, Unavailable
from reactor.decide.measures import Measures
from reactor.decide.partition import Partition
from reactor.decide.partition_context import PartitionContext
from reactor.decide.store import OwnershipLost
from reactor.fleet.fleet import LOOK, Fleet
from reactor.runtime import telemetry
from reactor.runtime.supervise import to_its_end
from rules.core.group import Group
from rules.engine.groups import GroupStore
from rules.rulefile.model import Rule

log = logging.getLogger(__name__)

HAND_OVER = 5.0
"""Seconds that partitions get, all together, to store what they know: with a bus that is gone it would never end."""
MEASURE = 2.0
"""Seconds between two updates of the gauges about groups."""
SETTLE = 1.0
"""Seconds that words under way about who owns what get to arrive when we stop: one that is stored, and that we do not
know of, would keep others out."""


class Decider:
    """Runs all partitions that this process owns."""

    def __init__(self, shared: PartitionContext, *, losses: Callable[[], int] = lambda: 0) -> None:
        """`losses` gives how often the connection to the bus was lost until now."""
        self._shared = shared
        self.fleet = Fleet(shared.bus, shared.name, shared.partitions, shared.clock, losses=losses)
        self._running: dict[int, tuple[asyncio.Task[None], asyncio.Event, Partition]] = {}
        self._measures = Measures()
        self._measured_at = -MEASURE
        self._measured: tuple[Mapping[str, Rule], list[GroupStore]] = {}, []
        """By which rules, and those of which the changed groups alone have to be measured."""

    def groups(self) -> list[Group]:
        """The groups that this process decides for."""
        return [group for _, _, partition in self._running.values() for group in partition.group_store.groups.values()]

    def unread(self) -> int:
        """Number of facts that were received and not yet decided on, over all partitions."""
        return sum(partition.unread for _, _, partition in self._running.values())

    def owned(self) -> list[int]:
        """The partitions that this process decides for."""
        return sorted(self._running)

    async def run(self) -> None:
        """Own what is ours until cancelled; then hand it over."""
        async with self._member():
            while True:
                await self._reap()
                wanted = self.fleet.wanted()
                await self._give_away([p for p in self._running if p not in wanted])
                if wanted ^ self._running.keys() or wanted ^ self.fleet.owned():
                    await to_its_end(self._settle(wanted), SETTLE)
                if self._shared.clock.monotonic() >= self._measured_at + MEASURE:
                    await self._measure()
                await self.fleet.changed(LOOK)

    @asynccontextmanager
    async def _member(self) -> AsyncIterator[None]:
        async with self.fleet.joined():
            try:
                yield
            finally:
                await self._give_away(list(self._running))

    async def _settle(self, wanted: frozenset[int]) -> None:
        """Make our words true; what failed or was not handed over, and is not ours any more, must not keep others out.

        A bus that is slow to take one word keeps us from no other.
        """
        try:
            await _each(self.fleet.release, self.fleet.owned() - wanted - self._running.keys())
            await _each(self._claim, wanted - self._running.keys())
        except Unavailable as error:
            log.warning("who owns what waits for the bus: %s", error)

    async def _claim(self, number: int) -> None:
        if await self.fleet.claim(number):
            self._start(number)

    def _start(self, number: int) -> None:
        partition, stop = Partition(self._shared, number), asyncio.Event()
        self._running[number] = (asyncio.create_task(partition.run(stop)), stop, partition)

    async def _give_away(self, numbers: list[int]) -> None:
        """Stop each after what it is doing, with its state written, then say that it is free."""
        leaving = {number: self._running.pop(number) for number in numbers}
        for _, stop, _ in leaving.values():
            stop.set()
        try:
            async with asyncio.timeout(HAND_OVER):
                await asyncio.gather(*(self._hand_over(number, task) for number, (task, _, _) in leaving.items()))
        except TimeoutError:
            log.warning("partitions were not handed over within %g s: the next owner reads again", HAND_OVER)

    async def _hand_over(self, number: int, task: asyncio.Task[None]) -> None:
        try:
            await task
            await self.fleet.release(number)
        except (OwnershipLost, BusError) as error:
            log.warning("partition %d was not handed over cleanly: %s", number, error)
        except Exception:  # a mistake of ours in one partition: the others are handed over all the same
            log.exception("partition %d was not handed over cleanly", number)

    async def _reap(self) -> None:
        """Partitions that ended by themselves: taken over by another, or cut off from the bus."""
        for number, (task, _, _) in list(self._running.items()):
            if not task.done():
                continue
            del self._running[number]
            try:
                await task
            except OwnershipLost as lost:
                log.warning("%s", lost)
            except BusError as error:
                log.warning("partition %d starts again: %s", number, error)
            except Exception:  # a mistake of ours in one partition must not end the others
                log.exception("partition %d failed, and starts again", number)

    async def _measure(self) -> None:
        self._measured_at = self._shared.clock.monotonic()
        telemetry.partitions_owned.set(len(self._running))
        rules = self._shared.routing.rules
        stores = [partition.group_store for _, _, partition in self._running.values()]
        changed = [(store, key) for store in stores for key in store.take_changed()]
        if self._measured[0] is not rules or self._measured[1] != stores:
            self._measured = rules, stores
            await self._measures.take(self.groups(), rules)
            return
        found = [(key, store.groups.get(key)) for store, key in changed]
        await self._measures.take(
            [group for _, group in found if group is not None], rules, gone=[key for key, one in found if one is None]
        )


async def _each(do: Callable[[int], Awaitable[None]], numbers: Iterable[int]) -> None:
    """Do it for all at once: a takeover waits for the slowest answer, not for one after the other.

    Raises one error of those that there were; a bus that is away never hides another.
    """
    results = await asyncio.gather(*(do(number) for number in sorted(numbers)), return_exceptions=True)
    if errors := [result for result in results if isinstance(result, BaseException)]:
        raise min(errors, key=lambda error: isinstance(error, Unavailable))
