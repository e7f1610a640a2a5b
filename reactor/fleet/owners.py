"""Ownership of shares: a key for each, with its owner's name, written by compare-and-set."""

from __future__ import annotations

from dataclasses import dataclass

from bus import subjects
from bus.errors import KeyNotFound, Refused
from bus.port import KeyValueEntry, Store

NOBODY = ""


@dataclass(frozen=True, slots=True)
class _Owner:
    name: str
    revision: int


class Owners:
    """The owners' words as the watch told them, and our own."""

    def __init__(self, store: Store, name: str, kind: str) -> None:
        self._store = store
        self._name = name
        self._kind = kind
        self._owners: dict[int, _Owner] = {}

    def owner(self, share: int) -> str:
        """The name of its owner; empty: it has none."""
        owner = self._owners.get(share)
        return owner.name if owner is not None else NOBODY

    def ours(self) -> frozenset[int]:
        """Shares whose owner is this member."""
        return frozenset(share for share, owner in self._owners.items() if owner.name == self._name)

    def told(self, share: int, entry: KeyValueEntry) -> None:
        """The watch gave an entry. One that cannot be read names no owner: the member whose share it is takes it."""
        self._owners[share] = _Owner(_name(entry.value), entry.revision)

    async def take(self, share: int) -> bool:
        """Write our name if the entry is still the one that we know. Raises Unavailable."""
        await self._write(share, self._name)
        return share in self.ours()

    async def give_up(self, share: int) -> None:
        """Empty our word, so that the next owner need not wait. Raises Unavailable."""
        if share in self.ours():
            await self._write(share, NOBODY)

    async def _write(self, share: int, name: str) -> None:
        key, before = subjects.key(self._kind + "owner", str(share)), self._owners.get(share)
        try:
            revision = await self._store.put(key, name.encode(), revision=before.revision if before else 0)
        except Refused:
            await self._look_again(share, key)
        else:
            self._learn(share, before, _Owner(name, revision))

    async def _look_again(self, share: int, key: str) -> None:
        """Another member was faster; or the store was wiped, and no watch gives a key that was never written again."""
        before = self._owners.get(share)
        try:
            entry = await self._store.get(key)
        except KeyNotFound:
            self._learn(share, before, None)
        else:
            self._learn(share, before, _Owner(_name(entry.value), entry.revision))

    def _learn(self, share: int, before: _Owner | None, answer: _Owner | None) -> None:
        """Take an answer, unless the watch gave an entry meanwhile: the watch gives the newest in the end, and an older
        answer after that would stay without end."""
        if self._owners.get(share) != before:
            return
        if answer is None:
            self._owners.pop(share, None)
        else:
            self._owners[share] = answer


def _name(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return NOBODY
