"""Stored state of one partition: its groups, and the position up to which their facts were read.

Everything is written by revision. Groups are written when they owe something, all others with the next checkpoint, and
the position after them: never a position whose groups are not written.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from bus import subjects
from bus.errors import Malformed
from bus.messages import iso
from bus.port import Bus, Store
from bus.topology import FACTS, GROUPS
from reactor.audit.chain import Head
from reactor.audit.position import Position
from reactor.decide.kept_rules import KeptRules
from reactor.runtime import telemetry
from reactor.runtime.failpoints import reach
from reactor.runtime.slices import sliced
from rules.core.group import Group
from rules.engine.group_codec import dump_group, load_group
from rules.engine.groups import GroupStore
from rules.engine.subscriptions import RuleObject

log = logging.getLogger(__name__)


class OwnershipLost(Exception):
    """Another process decides for this partition now."""


class PartitionStore:
    """The stored side of one partition, while we own it."""

    def __init__(self, bus: Bus, number: int, owner: str, rules: str) -> None:
        """`rules`: digest of the rule set by which its facts are read now."""
        self._bus = bus
        self._rules = rules
        self._store: Store = bus.store(GROUPS)
        self._number = number
        self._kept = KeptRules(self._store, number)
        self._owner = owner
        self._revisions: dict[str, int] = {}
        self._dirty: set[RuleObject] = set()
        self._news = False
        self._saved_position = 0
        self._saved_rules = ""
        """Digest of the rules by which the facts up to the stored position were read."""
        self._stream = ""
        """Creation time of the stream that is read."""
        self._of_stream = ""
        """Creation time of the stream of the stored position; empty: not known."""
        self._later: Any = None
        """Keys that a later release stored with the position and this one does not know: kept, and written back."""
        self.audited = Head()
        """The newest record of this partition's audit, as it is stored."""

    @property
    def other_rules(self) -> bool:
        """True if facts up to the stored position were read by other rules: they may have concerned other groups."""
        return self._saved_rules != self._rules

    async def load(self) -> tuple[list[Group], int]:
        """Give the groups that are stored, and the position of the last fact that they have had."""
        groups = await self._read_stored()
        extent = await self._bus.extent(FACTS)  # after the position: a process may be stopped between the two
        self._stream = iso(extent.created)
        if self._saved_position <= extent.last and self._of_stream in ("", self._stream):
            return groups, self._saved_position
        # Its facts have other numbers: by the old ones, groups would take all that is said for long heard.
        log.error("partition %d: the stream of facts is another one, and is read from its beginning", self._number)
        self.changed((group.rule, group.object) for group in groups)
        return [replace(group, position=0) for group in groups], 0

    async def _read_stored(self) -> list[Group]:
        groups: list[Group] = []
        async for entry in sliced(await self._store.entries(f"{self._number}.>")):
            if self._kept.loaded(entry):
                continue
            self._revisions[entry.key] = entry.revision
            try:
                if entry.key == self._position_key:
                    self._read_position(entry.value)
                else:
                    groups.append(load_group(entry.value))
            except Malformed as error:
                # Its facts come again; starting again is better than not starting.
                telemetry.quarantined.labels(GROUPS.name).inc()
                what = "position" if entry.key == self._position_key else "group"
                log.warning("%s %s cannot be read and starts again: %s", what, entry.key, error)
        return groups

    def _read_position(self, stored: bytes) -> None:
        """Raises Malformed. Then all facts are read again: each group knows which of them it has had."""
        found = Position.read(stored)
        self.audited, self._saved_position = found.audited, found.sequence
        self._of_stream, self._saved_rules = found.stream, found.rules
        self._later = found.later

    def changed(self, keys: Iterable[RuleObject], *, news: bool = True) -> None:
        """These are to be written with the next checkpoint. `news`: soon; else what was heard only moved dates on."""
        keys = list(keys)
        self._dirty.update(keys)
        self._news |= news and bool(keys)

    def unsaved(self, position: int, audited: Head) -> tuple[bool, bool]:
        """Give whether something is to be stored that a new owner, or a person, would miss, and whether anything is."""
        news = self._news or audited != self.audited or bool(position and self.other_rules)
        return news, bool(self._dirty)

    async def save(self, group_store: GroupStore, keys: Sequence[RuleObject]) -> None:
        """Write these groups by compare-and-set. Raises Lost where another owner has written."""
        await self._kept.before(group_store, keys)
        writes = []
        async for key in sliced([*dict.fromkeys(keys)]):
            name = self._key(key)
            writes.append((name, dump_group(group_store.stored(key)), self._revisions.get(name, 0)))
        revisions = await self._store.put_all(writes)
        for (name, _, _), revision in zip(writes, revisions, strict=True):
            if revision is None:
                raise OwnershipLost(f"partition {self._number}: {name} was written by another owner")
            self._revisions[name] = revision
        self._dirty.difference_update(keys)
        await self._kept.tidy(group_store)

    async def checkpoint(self, group_store: GroupStore, position: int, audited: Head) -> None:
        """Write what has changed, then the position, and which record of the audit is the newest."""
        if self._dirty:
            await self.save(group_store, sorted(self._dirty))
            reach("decider.groups-stored")
        self._news = False
        if position != self._saved_position or (position and self.other_rules) or audited != self.audited:
            body = Position(position, self._stream, self._rules, audited, self._later).dump(self._owner)
            revision = self._revisions.get(self._position_key, 0)
            self._revisions[self._position_key] = await self._store.put(self._position_key, body, revision=revision)
            self._saved_position, self._saved_rules, self.audited = position, self._rules, audited
            reach("decider.checkpointed")

    async def forget(self, group_store: GroupStore) -> None:
        """Delete the groups that are no more."""
        await self._kept.tidy(group_store)
        while group_store.dropped:
            key = group_store.dropped.pop()
            self._dirty.discard(key)
            name = self._key(key)
            if (revision := self._revisions.pop(name, None)) is not None:
                await self._store.delete(name, revision=revision)

    async def still_ours(self) -> None:
        """Check, after a pause of this process, that no other owner took over. Raises OwnershipLost."""
        if self._position_key not in self._revisions:
            return
        entry = await self._store.get(self._position_key)
        if entry.revision != self._revisions[self._position_key]:
            raise OwnershipLost(f"partition {self._number} was taken over while this process was stopped")

    def _key(self, key: RuleObject) -> str:
        return subjects.group(self._number, *key)

    @property
    def _position_key(self) -> str:
        return subjects.key(str(self._number), "position")
