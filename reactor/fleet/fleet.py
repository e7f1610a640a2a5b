"""Membership of the fleet, and ownership of the partitions.

Each member writes a heartbeat; a member is gone when its heartbeat has not moved for LEASE on our own monotonic clock,
or soon when its `alive` subject has no responders. Who should own what is rendezvous hashing over the members, with
quotas, so one more or one less moves little. An owner's word is a key of its own, written by compare-and-set. None of
this has to be exact: what a stale owner publishes is refused by the epoch fence.

A heartbeat counts when it has come back through the watch: then all that others had said before it is known, too. So a
member that has only not listened does not take itself for the only one.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from bus import subjects
from bus.errors import Malformed, Unavailable
from bus.port import Bus, KeyValueEntry, Store
from bus.topology import LEASES
from reactor.fleet import presence
from reactor.fleet.assignment import assignment
from reactor.fleet.owners import Owners
from reactor.fleet.peers import LEASE, Peers
from reactor.runtime.clock import Clock
from reactor.runtime.quarantine import unreadable
from reactor.runtime.retry_backoff import RetryBackoff
from reactor.runtime.supervise import ended, forever, to_its_end

log = logging.getLogger(__name__)

HEARTBEAT = 1.0
LOOK = 0.5
"""Seconds between two looks at who owns what."""
ASK = timedelta(seconds=0.4)
LEAVE = 1.0
"""Seconds that our good-bye gets to arrive when the process is in a hurry."""


@dataclass(frozen=True, slots=True)
class _OwnHeartbeat:
    """A heartbeat of ours that the store has taken."""

    revision: int
    began: float
    at: datetime
    losses: int
    """Number of times the connection had been lost by then."""


def _never() -> int:
    return 0


class Fleet:
    """This process as a member of its fleet."""

    def __init__(
        self, bus: Bus, name: str, shares: int, clock: Clock, *, kind: str = "", losses: Callable[[], int] = _never
    ) -> None:
        """`shares`: how many things are shared among the members. `kind`: a fleet of its own on the same bus.

        `losses` gives how often the connection was lost until now: others may have taken us for dead meanwhile.
        """
        self._bus = bus
        self._name = name
        self._clock = clock
        self._kind = kind
        self._losses = losses
        self._store: Store = bus.store(LEASES)
        self._peers = Peers(name, clock)
        self._owners = Owners(self._store, name, kind)
        self._shares = shares
        self._sent: _OwnHeartbeat | None = None
        """Our newest heartbeat that was taken."""
        self._known: _OwnHeartbeat | None = None
        """Our newest heartbeat that came back."""
        self._read = 0
        """The revision of our own key, as the watch gave it last."""
        self._missed = False
        self._alone = False
        self._met = asyncio.Event()
        self._changed = asyncio.Event()

    def wanted(self) -> frozenset[int]:
        """The partitions that are ours by rendezvous, while our own heartbeat is fresh or there was no other member;
        else none."""
        if not (self.fresh or self.alone):
            return frozenset()
        share = assignment(self.members(), self._shares)
        return frozenset(partition for partition, member in share.items() if member == self._name)

    @property
    def fresh(self) -> bool:
        """True if the others know that we are here: our heartbeat came back, and is not older than LEASE."""
        return self._known is not None and self._clock.monotonic() - self._known.began <= LEASE

    @property
    def alone(self) -> bool:
        """True if there were no others when our heartbeat last came back, and none has joined since that we know of.

        After a standstill of this process the heartbeat has to be a newer one.
        """
        return self._alone and self._known is not None and not self._outdated(self._known)

    @property
    def present(self) -> bool:
        """True if we may go on with what is ours: our last heartbeat was stored, and not long ago. Or there is no other
        member.

        A connection that was lost is by itself no reason to end anything: others do not get what we see meanwhile.
        """
        return self.alone or (self.fresh and not self._missed)

    @property
    def heard(self) -> bool:
        """True if the others surely get our heartbeats, and took nothing over, unknown to us, while our connection was
        lost."""
        return self.present and self._unbroken

    @property
    def _unbroken(self) -> bool:
        return self._known is not None and self._known.losses == self._losses()

    def _outdated(self, beat: _OwnHeartbeat) -> bool:
        """True if this process was stopped since this heartbeat: others may have joined, or taken us for dead."""
        return beat.at < self._clock.standstill.ended_at

    def members(self) -> list[str]:
        """Sorted names of the members that are present, ourselves included."""
        return self._peers.there()

    def owned(self) -> frozenset[int]:
        """The partitions whose owner key has our name, whether we work on them or not."""
        return self._owners.ours()

    async def claim(self, partition: int) -> bool:
        """Take a partition whose owner is gone, or that has none. False: not yet ours. Raises Unavailable."""
        if self._owners.owner(partition) in {*self.members()} - {self._name}:
            return False
        return await self._owners.take(partition)

    async def release(self, partition: int) -> None:
        """Give a partition away, so that the next owner need not wait. Raises Unavailable."""
        await self._owners.give_up(partition)

    async def changed(self, timeout: float) -> None:
        """Wait until a member joined, left, claimed or released, or until the timeout in seconds."""
        try:
            async with asyncio.timeout(timeout):
                await self._changed.wait()
        except TimeoutError:
            return
        finally:
            self._changed.clear()

    @asynccontextmanager
    async def joined(self) -> AsyncIterator[None]:
        """Be a member for as long as the block runs; leave at its end. The block begins when all others are known."""
        self._sent = self._known = None
        self._alone = False
        self._met.clear()
        stop_answering = await self._bus.announce(subjects.alive(self._kind + self._name))
        tasks = [asyncio.create_task(_keep(self._watching))]
        try:
            await self._beat()
            await self._meet()
            tasks += [asyncio.create_task(_keep(loop)) for loop in (self._beating, self._asking)]
            yield
        finally:
            try:
                await ended(*tasks)
            finally:
                # Whatever comes between: a member that answers counts as present, and others wait until it has left.
                await to_its_end(self._leave(stop_answering), LEAVE)

    async def _leave(self, stop_answering: Callable[[], Awaitable[None]]) -> None:
        try:
            await stop_answering()
        finally:
            try:
                await self._store.delete(self._key("member", self._name), revision=None)
            except Unavailable as error:
                log.warning("could not say that we leave, the others will notice: %s", error)

    def _key(self, what: str, which: str) -> str:
        return subjects.key(self._kind + what, which)

    async def _meet(self) -> None:
        """Wait until our first heartbeat has come back. Raises Unavailable where it does not."""
        try:
            async with asyncio.timeout(LEASE):
                await self._met.wait()
        except TimeoutError as error:
            raise Unavailable(f"who else is there could not be read within {LEASE:g} s") from error

    async def _beat(self) -> None:
        began, at, losses = self._clock.monotonic(), self._clock.now(), self._losses()
        value = json.dumps({"name": self._name, "at": at.isoformat()}).encode()
        try:
            revision = await self._store.put(self._key("member", self._name), value, revision=None)
        except Unavailable:
            self._missed = True
            self._changed.set()
            raise
        self._sent = _OwnHeartbeat(revision, began, at, losses)
        self._settle()

    def _settle(self) -> None:
        """Count our newest heartbeat if it has come back, whichever of the two was known first."""
        if self._sent is None or self._sent.revision != self._read:
            return
        self._peers.listened()
        self._known, self._missed = self._sent, False
        self._alone = self.members() == [self._name]
        self._met.set()
        self._changed.set()

    async def _beating(self) -> None:
        while True:
            await self._wait_for_heartbeat()
            await self._beat()

    async def _wait_for_heartbeat(self) -> None:
        """Wait for the next heartbeat's time; at once when the connection was lost or this process was stopped."""
        for _ in range(round(HEARTBEAT / LOOK)):
            sent = self._sent
            if sent is None or sent.losses != self._losses() or self._outdated(sent):
                return
            await asyncio.sleep(LOOK)

    async def _watching(self) -> None:
        async with self._store.watch(">") as changes:
            async for change in changes:
                try:
                    self._take_change(change)
                except Malformed as error:
                    # It concerns the member that wrote it alone: the others go on.
                    unreadable(LEASES.name, change if isinstance(change, str) else change.key, error)

    def _take_change(self, change: KeyValueEntry | str) -> None:
        """Raises Malformed."""
        key = change if isinstance(change, str) else change.key
        kind, _, rest = key.partition(".")
        if not kind.startswith(self._kind):
            return
        kind = kind.removeprefix(self._kind)
        if kind == "owner" and isinstance(change, KeyValueEntry):
            self._owners.told(_share(rest), change)
        elif kind == "member":
            self._take_member_change(key, change)
            return
        self._changed.set()

    def _take_member_change(self, key: str, change: KeyValueEntry | str) -> None:
        if key == self._key("member", self._name):
            self._read = change.revision if isinstance(change, KeyValueEntry) else 0
            self._settle()
        elif isinstance(change, KeyValueEntry):
            if self._peers.spoke(presence.name_in(change.value), change.revision):
                self._alone = False
                self._changed.set()
        else:
            for name in [name for name in self._peers.names() if self._key("member", name) == key]:
                self._peers.left(name)
            self._changed.set()

    async def _asking(self) -> None:
        """Notice a member that was killed long before its lease is over."""
        while True:
            await asyncio.sleep(LOOK)
            for name in self._peers.asked():
                answer = await self._bus.is_present(subjects.alive(self._kind + name), ASK)
                # A member that was cut off itself calls no other gone: the others may be connecting again as well.
                if self._unbroken and self._peers.answered(name, answer):
                    log.warning("%s is gone: no process answers for it", name)
                    self._changed.set()


def _share(text: str) -> int:
    """Raises Malformed."""
    if not text.isdecimal():
        raise Malformed(f"{text[:40]!r} is no number of a partition")
    return int(text)


async def _keep(loop: Callable[[], Awaitable[None]]) -> None:
    """Run a loop, again after each failure at the pace of its looks: without it a member would be deaf, or dead to the
    others."""
    pace = RetryBackoff(first_seconds=LOOK, most_seconds=LOOK, spread=lambda: 1.0)
    await forever("fleet", loop, backoff=pace)
