"""Deciding for one partition: read its facts in order, decide, store what is owed, only then publish it.

The epoch that is taken at the start fences everything that is published: a paused or cut off owner is refused by the
server itself. Groups are kept in memory and written when they owe something, all others every second with the position,
so that what was read after the last checkpoint is read again, and folding it in again changes nothing.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bus import subjects
from bus.envelope import decode, encode
from bus.errors import Malformed, Refused
from bus.messages import Action, DecisionRecord, Fact, Mode, Observation, Outcome, Pause, Resume, Route
from bus.port import Bus, Delivery, Fence, Outgoing, Reading, Store
from bus.topology import FACTS, GROUPS
from reactor import telemetry
from reactor.clock import Clock
from reactor.failpoints import reach
from rules.engine.book import Book, Key
from rules.engine.decide import Decision
from rules.engine.routing import Routing
from rules.group import Group, dump, load
from rules.reasons import Held

log = logging.getLogger(__name__)

CATCH_UP = timedelta(milliseconds=50)
"""How often it is asked whether all is read while a window waits for that; a fact that comes is taken at once."""
FRESH = timedelta(milliseconds=250)
"""Facts that were stored so lately are on time: they are decided on without asking whether there are newer ones."""
TOGETHER = 20_000
"""How many facts that are late are decided on at once at most."""
CHECKPOINT = timedelta(seconds=1)
"""How often groups that owe nothing new are written, with the position: what a takeover has to read again at most."""
LAP = timedelta(seconds=5)
"""A loop that was away for longer was stopped (SIGSTOP, a paused machine), and checks its ownership again."""
_FACTS = (Observation, Route, Outcome, Pause, Resume)


@dataclass(frozen=True, slots=True)
class Desk:
    """What every partition of this process shares."""

    bus: Bus
    clock: Clock
    routing: Routing
    partitions: int
    name: str


class Lost(Exception):
    """Somebody else decides for this partition now."""


class Partition:
    """One partition while we own it."""

    def __init__(self, desk: Desk, number: int) -> None:
        self._desk = desk
        self._number = number
        self._store: Store = desk.bus.store(GROUPS)
        self._revisions: dict[str, int] = {}
        self._dirty: set[Key] = set()
        self._position = 0
        self._saved_position = 0
        self._saved_at = desk.clock.monotonic()
        self.book = Book(desk.routing)
        self._fence = Fence("", 0)
        self._catching_up = False
        self._inherited = True
        """Whether what the owner before us owed is still to be published."""
        self._now = datetime.min.replace(tzinfo=UTC)
        """The moment up to which was decided."""

    async def run(self, stop: asyncio.Event) -> None:
        """Decide until told to stop, or until the partition is somebody else's. Raises Lost, Unavailable."""
        try:
            self._fence = await self._desk.bus.take_epoch(subjects.own(self._number), self._desk.name)
            reach("decider.epoch-taken")
            await self._load()
            reach("decider.loaded")
            async with self._desk.bus.read(FACTS, subjects.facts(self._number), after=self._position) as reading:
                stopped = asyncio.create_task(stop.wait())
                try:
                    while not stopped.done():
                        await self._turn(reading, stopped)
                finally:
                    stopped.cancel()
            await self._checkpoint()
        except Refused as error:
            raise Lost(f"partition {self._number}: {error}") from error

    async def _load(self) -> None:
        groups: list[Group] = []
        for entry in await self._store.entries(f"{self._number}.>"):
            self._revisions[entry.key] = entry.revision
            if entry.key == self._position_key:
                self._position = self._saved_position = int(json.loads(entry.value)["sequence"])
                continue
            try:
                groups.append(load(entry.value))
            except Malformed as error:
                # Its facts come again; starting afresh is better than not starting.
                telemetry.quarantined.labels(GROUPS.name).inc()
                log.warning("group %s cannot be read and starts anew: %s", entry.key, error)
        self.book = Book(self._desk.routing, groups, mine=self._mine)

    async def _publish_owed(self) -> None:
        """The owner before us may have stored what it owes and not published it; what it did is not taken twice.

        Only after all facts were read: what was right for it may be the wrong thing to do by now.
        """
        owed = [
            self._outgoing(group, owed.action, None)
            for group in self.book.groups.values()
            for owed in group.owed
            if owed.wanted and not owed.failed
        ]
        if owed:
            await self._desk.bus.publish_all(owed)

    def _mine(self, rule: str, scope: str) -> bool:
        return subjects.partition_of(rule, scope, self._desk.partitions) == self._number

    async def _turn(self, reading: Reading, stopped: asyncio.Task[bool]) -> None:
        """Wait for facts or for the next alarm, whichever comes first, and decide."""
        began = self._desk.clock.monotonic()
        wait = self._wait()
        coming = asyncio.create_task(reading.next(wait))
        await asyncio.wait({coming, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not coming.done():
            coming.cancel()  # whoever owns the partition next reads it again
            await asyncio.gather(coming, return_exceptions=True)
            return
        deliveries = coming.result()
        if self._desk.clock.monotonic() - began > wait.total_seconds() + LAP.total_seconds():
            await self._still_ours()
        if deliveries:
            await self._take(*await self._with_what_follows(deliveries, reading))
        await self._ring(reading)
        if self._inherited and await reading.caught_up():
            await self._publish_owed()
            self._inherited = False
        if self._desk.clock.monotonic() - self._saved_at >= CHECKPOINT.total_seconds():
            await self._checkpoint()

    def _wait(self) -> timedelta:
        alarm = self.book.next_alarm()
        if alarm is None:
            return CHECKPOINT
        soonest = CATCH_UP if self._catching_up else timedelta(milliseconds=1)
        return min(max(alarm - self._desk.clock.now(), soonest), CHECKPOINT)

    async def _still_ours(self) -> None:
        """After a pause: the fence says whether anybody took over. Raises Lost."""
        entry = await self._store.get(self._position_key) if self._position_key in self._revisions else None
        if entry is not None and entry.revision != self._revisions[self._position_key]:
            raise Lost(f"partition {self._number} was taken over while this process was stopped")

    async def _with_what_follows(
        self, deliveries: Sequence[Delivery], reading: Reading
    ) -> tuple[Sequence[Delivery], bool]:
        """Facts that were long on their way are decided on together with what came behind them, or else half a story
        moves traffic. Gives also whether that is known to be all."""
        taken, until = list(deliveries), self._desk.clock.monotonic() + CHECKPOINT.total_seconds()
        while self._desk.clock.now() - taken[-1].stored_at > FRESH:
            if not taken[-1].pending and await reading.caught_up():
                return taken, True
            if len(taken) >= TOGETHER or self._desk.clock.monotonic() > until:
                break
            taken += await reading.next(CATCH_UP)
        return taken, False

    async def _take(self, deliveries: Sequence[Delivery], all_read: bool) -> None:
        facts: list[Fact] = []
        positions: list[int] = []
        for delivery in deliveries:
            try:
                fact = decode(delivery.body).data
            except Malformed as error:
                telemetry.quarantined.labels(FACTS.name).inc()
                log.warning("fact %s on %s is put aside: %s", delivery.sequence, delivery.subject, error)
                continue
            if isinstance(fact, _FACTS):
                facts.append(fact)
                positions.append(delivery.sequence)
                telemetry.facts.labels(type(fact).__name__).inc()
        reach("decider.fact-read")
        last = deliveries[-1]
        now = self._as_late_as(facts, all_read=all_read)
        self._position = last.sequence
        with telemetry.decide_seconds.time():
            decisions = self.book.take(facts, now, positions)
        await self._carry(decisions, facts, now, last.traceparent)

    def _as_late_as(self, facts: Sequence[Fact], *, all_read: bool) -> datetime:
        """How late it is for facts that were read: as late as the newest of them, or now where that is all there is.

        What ends a window may come right behind them: only `_ring`, which asks for that, lets windows run out that are
        over only now. Never earlier than before.
        """
        now = self._desk.clock.now()
        newest = now if all_read else max((fact.observed_at for fact in facts), default=self._now)
        self._now = max(self._now, min(newest, now))
        return self._now

    async def _ring(self, reading: Reading) -> None:
        now = self._desk.clock.now()
        alarm = self.book.next_alarm()
        if alarm is None or alarm > now:
            self._catching_up = False
            return
        if not await reading.caught_up():
            if not self._catching_up:
                self._catching_up = True
                telemetry.held.labels("", Held.CATCHING_UP).inc()
                log.info("partition %d: windows wait until older facts are read", self._number)
            return
        self._catching_up = False
        self._now = max(self._now, now)
        await self._carry(self.book.ring(self._now), (), self._now, None)

    async def _carry(
        self, decisions: Sequence[Decision], facts: Sequence[Fact], now: datetime, trace: str | None
    ) -> None:
        """Store the groups that owe something, then publish what they owe, then the audit."""
        self._dirty.update((decision.group.rule, decision.group.object) for decision in decisions)
        await self._forget()
        speaking = [decision for decision in decisions if decision.actions or decision.held]
        if not speaking:
            return
        reach("decider.decided")
        await self._save([(decision.group.rule, decision.group.object) for decision in speaking])
        reach("decider.state-stored")
        actions = [
            self._outgoing(decision.group, action, trace)
            for decision in speaking
            for action in decision.actions
            if action.mode is Mode.ENFORCE
        ]
        if actions:
            await self._desk.bus.publish_all(actions)
            reach("decider.actions-published")
        await self._desk.bus.publish_all([self._audit(decision, facts, now, trace) for decision in speaking])
        reach("decider.audit-published")
        for decision in speaking:
            _report(decision)

    def _outgoing(self, group: Group, action: Action, trace: str | None) -> Outgoing:
        tries = next((owed.tries for owed in group.owed if owed.action.id == action.id), 1)
        action = action.model_copy(update={"epoch": self._fence.epoch})
        # The id names the try: after a failure the same action has to reach an executor again.
        id_ = f"{action.id}#{tries}"
        subject = subjects.action(self._number, type(action).__name__, action.object)
        body = encode(action, id=id_, source="/reactor/decider", time=action.decided_at)
        return Outgoing(subject, body, id_, self._fence, trace)

    def _audit(self, decision: Decision, facts: Sequence[Fact], now: datetime, trace: str | None) -> Outgoing:
        group, held = decision.group, decision.held
        concerned = [fact for fact in facts if fact.about in group.members or fact.about == group.object]
        record = DecisionRecord(
            rule=group.rule, object=group.object, decided_at=now, because=decision.because,
            facts=tuple(fact.model_dump(mode="json") for fact in concerned),
            actions=tuple(_as_said(action) for action in decision.actions),
            held=f"{held.reason}: {held.detail}" if held else None,
        )  # fmt: skip
        id_ = f"{self._number}/{self._fence.epoch}/{group.rule}/{group.object}/{now.isoformat()}/{self._position}"
        body = encode(record, id=id_, source="/reactor/decider", time=now)
        return Outgoing(subjects.decision(self._number, group.rule), body, id_, None, trace)

    async def _save(self, keys: Sequence[Key]) -> None:
        """Write these groups by compare-and-set. Raises Lost where another owner has written."""
        writes = []
        for key in dict.fromkeys(keys):
            name = self._key(key)
            writes.append((name, dump(self.book.groups[key]), self._revisions.get(name, 0)))
        revisions = await self._store.put_all(writes)
        for (name, _, _), revision in zip(writes, revisions, strict=True):
            if revision is None:
                raise Lost(f"partition {self._number}: {name} was written by another owner")
            self._revisions[name] = revision
        self._dirty.difference_update(keys)

    async def _checkpoint(self) -> None:
        """Write what has changed, then the position: never a position whose groups are not written."""
        self._saved_at = self._desk.clock.monotonic()
        if self._dirty:
            await self._save(sorted(self._dirty & self.book.groups.keys()))
            self._dirty.clear()
            reach("decider.groups-stored")
        if self._position != self._saved_position:
            body = json.dumps({"sequence": self._position, "owner": self._desk.name}).encode()
            revision = self._revisions.get(self._position_key, 0)
            self._revisions[self._position_key] = await self._store.put(self._position_key, body, revision=revision)
            self._saved_position = self._position
            reach("decider.checkpointed")

    async def _forget(self) -> None:
        while self.book.dropped:
            name = self._key(self.book.dropped.pop())
            if (revision := self._revisions.pop(name, None)) is not None:
                await self._store.delete(name, revision=revision)

    def _key(self, key: Key) -> str:
        return subjects.key(str(self._number), "group", f"{key[0]}/{key[1]}")

    @property
    def _position_key(self) -> str:
        return subjects.key(str(self._number), "position")


def _as_said(action: Action) -> dict[str, object]:
    return {"action": type(action).__name__, **action.model_dump(mode="json", by_alias=True)}


def _report(decision: Decision) -> None:
    group, held = decision.group, decision.held
    for action in decision.actions:
        kind = type(action).__name__
        would = "" if action.mode is Mode.ENFORCE else " (dry run)"
        telemetry.decisions.labels(action.rule, action.because).inc()
        log.info(
            "%s%s", kind, would,
            extra={"rule": action.rule, "object": action.object, "because": action.because, "id": action.id,
                   "what": getattr(action, "weights", None) or getattr(action, "message", "")},
        )  # fmt: skip
    if held is not None:
        telemetry.held.labels(group.rule, held.reason).inc()
        extra = {"rule": group.rule, "object": group.object, "reason": held.reason, "detail": held.detail}
        log.warning("holds", extra=extra)
