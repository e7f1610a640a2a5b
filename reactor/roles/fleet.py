"""Who is there, and who decides for which partition.

Each member writes a heartbeat; a member is gone when its heartbeat has not moved for LEASE on our own monotonic clock,
or at once when its `alive` subject has no responders. Who should own what is rendezvous hashing over the members, with
quotas, so one more or one less moves little. An owner's word is a key of its own, written by compare-and-set. None of
this has to be exact: what a stale owner publishes is refused by the epoch fence.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from bus import subjects
from bus.errors import NotFound, Refused, Unavailable
from bus.port import Bus, Entry, Store
from bus.topology import LEASES
from reactor.clock import Clock
from reactor.roles.supervise import ended

log = logging.getLogger(__name__)

LEASE = 10.0
"""Seconds without a heartbeat after which a member counts as gone."""
HEARTBEAT = 3.0
LOOK = 0.5
"""How often, in seconds, who owns what is looked at."""
ASK = timedelta(seconds=0.4)


@dataclass(slots=True)
class _Member:
    revision: int
    seen: float
    gone: bool = False


@dataclass(frozen=True, slots=True)
class _Owner:
    name: str
    revision: int


class Fleet:
    """This process among its peers."""

    def __init__(self, bus: Bus, name: str, shares: int, clock: Clock, *, kind: str = "") -> None:
        """`shares`: how many things are shared among the members. `kind`: a fleet of its own on the same bus."""
        self._bus = bus
        self._name = name
        self._clock = clock
        self._kind = kind
        self._store: Store = bus.store(LEASES)
        self._members: dict[str, _Member] = {}
        self._owners: dict[int, _Owner] = {}
        self._shares = shares
        self._beaten = 0.0
        self._missed = False
        self._alone = False
        """Whether there were no others when we were last heard."""
        self._changed = asyncio.Event()

    def wanted(self) -> frozenset[int]:
        """The partitions that are ours by rendezvous, while our own heartbeat is fresh or nobody else was there; else
        none."""
        if not (self.fresh or self._alone):
            return frozenset()
        share = assignment(self.members(), self._shares)
        return frozenset(partition for partition, member in share.items() if member == self._name)

    @property
    def fresh(self) -> bool:
        """Whether the others know that we are here."""
        return self._clock.monotonic() - self._beaten <= LEASE

    @property
    def heard(self) -> bool:
        """Whether the others surely hear us: our last word was taken, and not long ago. Or nobody else was there."""
        return self._alone or (self.fresh and not self._missed)

    def members(self) -> list[str]:
        """Who is there, ourselves included."""
        now = self._clock.monotonic()
        alive = [name for name, member in self._members.items() if not member.gone and now - member.seen < LEASE]
        return sorted({*alive, self._name})

    def owned(self) -> frozenset[int]:
        """The partitions that our own word stands on, whether we work on them or not."""
        return frozenset(partition for partition, owner in self._owners.items() if owner.name == self._name)

    async def claim(self, partition: int) -> bool:
        """Take a partition whose owner is gone, or that nobody owns. False: not yet ours."""
        owner = self._owners.get(partition)
        if owner is not None and owner.name not in ("", self._name) and owner.name in self.members():
            return False
        key = self._key("owner", str(partition))
        try:
            revision = await self._store.put(key, self._name.encode(), revision=owner.revision if owner else 0)
        except Refused:
            await self._look_again(partition, key)
            return False
        self._learn(partition, owner, _Owner(self._name, revision))
        return partition in self.owned()

    async def _look_again(self, partition: int, key: str) -> None:
        """Somebody was faster; or the store was wiped, and no watch tells of a key that was never written again."""
        before = self._owners.get(partition)
        try:
            entry = await self._store.get(key)
        except NotFound:
            self._learn(partition, before, None)
        else:
            self._learn(partition, before, _Owner(entry.value.decode(), entry.revision))

    def _learn(self, partition: int, before: _Owner | None, answer: _Owner | None) -> None:
        """Take an answer, unless the watch spoke while it was on its way: the watch comes to the newest in the end,
        and an older answer on top of that would stand for ever."""
        if self._owners.get(partition) != before:
            return
        if answer is None:
            self._owners.pop(partition, None)
        else:
            self._owners[partition] = answer

    async def release(self, partition: int) -> None:
        """Give a partition away, so that the next owner need not wait."""
        owner = self._owners.get(partition)
        if owner is None or owner.name != self._name:
            return
        key = self._key("owner", str(partition))
        try:
            revision = await self._store.put(key, b"", revision=owner.revision)
        except Refused:
            await self._look_again(partition, key)
            return
        self._learn(partition, owner, _Owner("", revision))

    async def changed(self, timeout: float) -> None:
        """Wait until somebody came, went, claimed or released, or until the timeout in seconds."""
        try:
            async with asyncio.timeout(timeout):
                await self._changed.wait()
        except TimeoutError:
            return
        finally:
            self._changed.clear()

    @asynccontextmanager
    async def joined(self) -> AsyncIterator[None]:
        """Be a member for as long as the block runs; leave at its end."""
        stop_answering = await self._bus.answer(subjects.alive(self._kind + self._name))
        await self._beat()
        tasks = [asyncio.create_task(_keep(loop)) for loop in (self._beating, self._watching, self._asking)]
        try:
            yield
        finally:
            await ended(*tasks)
            await stop_answering()
            try:
                await self._store.delete(self._key("member", self._name), revision=None)
            except Unavailable as error:
                log.warning("could not say that we leave, the others will notice: %s", error)

    def _key(self, what: str, which: str) -> str:
        return subjects.key(self._kind + what, which)

    async def _beat(self) -> None:
        began = self._clock.monotonic()
        value = json.dumps({"name": self._name, "at": self._clock.now().isoformat()}).encode()
        try:
            await self._store.put(self._key("member", self._name), value, revision=None)
        except Unavailable:
            self._missed = True
            self._changed.set()
            raise
        self._beaten, self._missed = began, False
        self._alone = self.members() == [self._name]

    async def _beating(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT)
            await self._beat()

    async def _watching(self) -> None:
        async with self._store.watch(">") as changes:
            async for change in changes:
                self._heard(change)

    def _heard(self, change: Entry | str) -> None:
        key = change if isinstance(change, str) else change.key
        kind, _, rest = key.partition(".")
        if not kind.startswith(self._kind):
            return
        kind = kind.removeprefix(self._kind)
        if kind == "owner" and isinstance(change, Entry):
            self._owners[int(rest)] = _Owner(change.value.decode(), change.revision)
        elif kind == "member" and isinstance(change, Entry):
            name = json.loads(change.value)["name"]
            known = self._members.get(name)
            # Unequal, not greater: a store that was wiped counts from one again.
            if known is None or known.revision != change.revision:
                self._members[name] = _Member(change.revision, self._clock.monotonic())
                if known is not None and not known.gone:
                    return  # a mere heartbeat
        elif kind == "member":
            for name in [name for name in self._members if self._key("member", name) == key]:
                del self._members[name]
        self._changed.set()

    async def _asking(self) -> None:
        """Notice a member that was killed long before its lease is over."""
        while True:
            await asyncio.sleep(LOOK)
            for name, member in list(self._members.items()):
                if (
                    name != self._name
                    and not member.gone
                    and await self._bus.ask(subjects.alive(self._kind + name), ASK) is False
                ):
                    log.warning("%s is gone: nobody answers for it", name)
                    member.gone = True
                    self._changed.set()


async def _keep(loop: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await loop()
        except Unavailable as error:
            log.warning("the fleet waits for the bus: %s", error)
        await asyncio.sleep(LOOK)


def assignment(members: Sequence[str], partitions: int) -> dict[int, str]:
    """Give each partition to a member: evenly (one more or less), and so that a change of members moves little.

    Rendezvous hashing with quotas: the pairs of the highest weight are served first, until a member has its share.
    Everybody who knows the same members comes to the same answer.
    """
    ordered = sorted(set(members))
    base, more = divmod(partitions, len(ordered))
    left = {member: base + (number < more) for number, member in enumerate(ordered)}
    out: dict[int, str] = {}
    pairs = [(_weight(member, partition), partition, member) for partition in range(partitions) for member in ordered]
    for _, partition, member in sorted(pairs, reverse=True):
        if partition not in out and left[member]:
            out[partition] = member
            left[member] -= 1
    return out


def _weight(member: str, partition: int) -> bytes:
    return hashlib.sha256(f"{member}\0{partition}".encode()).digest()
