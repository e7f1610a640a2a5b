"""Follows the state on the bus: groups, recent actions and their outcomes, and each change of them for viewers.

A change is put into words once, however many look. What a viewer missed it gets as the newest state.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import datetime, timedelta

from bus.errors import BusError, Malformed
from bus.jetstream import JetStreamBus
from bus.message_admission import read_message
from bus.messages import DecisionRecord, Outcome
from bus.port import KeyValueEntry
from bus.subjects import ROOT
from bus.topology import DECISIONS, FACTS, GROUPS, Stream
from reactor.runtime.clock import Clock
from reactor.views.rows import Row, action_rows, group_row, key_of, outcome_row, stamp
from rules.core.group import Group, Paused
from rules.engine.group_codec import load_group
from rules.engine.pauses import PAUSES
from rules.loader import RuleSet
from rules.rulefile.model import Rule

log = logging.getLogger(__name__)

ACTIONS_MAX = 2_000
RECORDS_READ = 20_000
"""Newest records that are searched for actions at the start."""
OUTCOMES_MAX = 10_000
WAIT = timedelta(seconds=5)
LOOK_SECONDS = 0.3
"""Seconds between two questions to the bus. With the 2 s that it has for its answer this is less than the 3 s within
which the page marks what is old."""
PAUSE_SECONDS = 0.05
"""Two batches of changes are at least so far apart: one batch carries what came meanwhile."""
BATCHES_KEPT = 64


class Board:
    """State on the bus for the page: `follow_*` run side by side for as long as it is served."""

    def __init__(self, bus: JetStreamBus, clock: Clock, rules: Callable[[], RuleSet]) -> None:
        self.bus, self.clock = bus, clock
        self._rules = rules
        self._by_key: dict[str, Group] = {}
        """Groups by the key of the bucket."""
        self._actions: OrderedDict[str, Row] = OrderedDict()
        """Actions by ID, the newest last."""
        self.outcomes: OrderedDict[str, Outcome] = OrderedDict()
        self.problem = ""
        """Reason why the state here may be old; empty: it is as the bus has it."""
        self.batches = ChangeBatches()
        self._frame: tuple[tuple[int, str], bytes] | None = None

    @property
    def rule_set(self) -> RuleSet:
        """The rules of this process's files."""
        return self._rules()

    @property
    def rules(self) -> Mapping[str, Rule]:
        """The same by name."""
        return {rule.name: rule for rule in self._rules().rules}

    def groups(self) -> list[Group]:
        """Give all groups, those of the reactor's own too, sorted."""
        return sorted(self._by_key.values(), key=lambda group: (group.rule, group.object))

    def group_rows(self, now: datetime) -> list[Row]:
        """Give a row for each group of a rule."""
        rules = self.rules
        return [group_row(group, rules, now) for group in self.groups() if not group.rule.startswith("@")]

    def pauses(self) -> list[Row]:
        """Give the pauses in effect: the pattern, who, why, since and until when.

        Each partition stores a pause for itself, and one may be behind: of a pattern the pause that ends last is given.
        """
        found: dict[str, Paused] = {}
        for one in self.groups():
            if one.rule == PAUSES and (paused := one.paused) is not None:
                known = found.get(one.object)
                found[one.object] = paused if known is None or paused.outlasts(known) else known
        return [
            {"pattern": pattern, "by": one.by, "reason": one.reason, "since": stamp(one.since),
             "until": stamp(one.until)}
            for pattern, one in found.items()
        ]  # fmt: skip

    def actions(self) -> list[Row]:
        """Give the newest actions, the newest first."""
        return [*reversed(self._actions.values())]

    def snapshot(self) -> Row:
        """Give all that a page begins with."""
        now = self.clock.now()
        return {
            "now": stamp(now), "problem": self.problem, "groups": self.group_rows(now), "pauses": self.pauses(),
            "actions": self.actions()[:100],
        }  # fmt: skip

    def snapshot_frame(self) -> bytes:
        """Give the same as an event of the stream; put into words once for all who ask before the next change."""
        if self._frame is None or self._frame[0] != (self.batches.newest, self.problem):
            self._frame = (self.batches.newest, self.problem), framed("state", self.snapshot())
        return self._frame[1]

    async def follow_groups(self) -> None:
        """Take each change of a group as it is stored. Raises BusError."""
        async with self.bus.store(GROUPS).watch("*.group.>") as changes:
            # A key that was removed while the bus was not followed comes as no change.
            stored = {entry.key for entry in await self.bus.store(GROUPS).entries("*.group.>")}
            for key in set(self._by_key) - stored:
                self._take_group(key)
            async for change in changes:
                self._take_group(change)

    def _take_group(self, change: KeyValueEntry | str) -> None:
        key = change if isinstance(change, str) else change.key
        before = self._by_key.pop(key, None)
        if isinstance(change, KeyValueEntry):
            try:
                self._by_key[key] = load_group(change.value)
            except Malformed as error:
                log.warning("a stored group cannot be shown", extra={"key": key, "reason": str(error)})
        now = self._by_key.get(key, before)
        if now is not None:
            self.batches.changed(key_of(now))

    async def follow_actions(self) -> None:
        """Take each decision that asks for actions. Raises BusError."""
        self._actions.clear()
        bounds = await self.bus.extent(DECISIONS)
        async for record in self._messages(DECISIONS, DECISIONS.subjects[0], max(bounds.last - RECORDS_READ, 0)):
            if isinstance(record, DecisionRecord):
                for row in action_rows(record, self.outcomes):
                    self._take_action(row)

    def _take_action(self, row: Row) -> None:
        """Keep an action; one that is tried again stays one action, and of who asked for it first."""
        before = self._actions.pop(row["id"], None)
        row["by"] = row["by"] or (before["by"] if before is not None else [])
        self._actions[row["id"]] = row
        while len(self._actions) > ACTIONS_MAX:
            self._actions.popitem(last=False)
        self.batches.acted(row)

    async def follow_outcomes(self) -> None:
        """Take what became of each action of the last day. Raises BusError."""
        async for outcome in self._messages(FACTS, f"{ROOT}.facts.*.outcome.>", 0):
            if isinstance(outcome, Outcome):
                self.outcomes[outcome.action] = outcome
                while len(self.outcomes) > OUTCOMES_MAX:
                    self.outcomes.popitem(last=False)
                self._note_outcome(outcome)

    def _note_outcome(self, outcome: Outcome) -> None:
        if (row := self._actions.get(outcome.action)) is not None:
            row["outcome"] = outcome_row(outcome)
            self.batches.acted(row)

    async def _messages(self, stream: Stream, subject: str, after: int) -> AsyncIterator[object]:
        async with self.bus.read(stream, subject, after=after) as reading:
            while True:
                for one in await reading.next(WAIT):
                    try:
                        yield read_message(one.subject, one.body).data
                    except Malformed as error:
                        log.info("a stored message cannot be shown", extra={"key": one.subject, "reason": str(error)})

    async def check(self) -> None:
        """Ask the bus whether it is there, again and again."""
        while True:
            try:
                await self.bus.extent(DECISIONS)
                problem = ""
            except BusError as error:
                problem = f"the bus does not answer: {error}"
            if problem != self.problem:
                self.problem = problem
                self.batches.wake()
            await asyncio.sleep(LOOK_SECONDS)

    async def publish(self) -> None:
        """Hand out changes to viewers, in batches."""
        while True:
            await self.batches.wanted.wait()
            keys, acts = self.batches.take()
            rules, now = self.rules, self.clock.now()
            by_key = {key_of(group): group for group in self._by_key.values()} if keys else {}
            own = {key for key in keys if key.startswith("@")}
            batch: Row = {
                "now": stamp(now),
                "groups": [group_row(by_key[key], rules, now) for key in sorted(keys - own) if key in by_key],
                "gone": [key for key in sorted(keys - own) if key not in by_key], "actions": acts,
            }  # fmt: skip
            if own:
                batch["pauses"] = self.pauses()
            self.batches.add(framed("change", batch))
            await asyncio.sleep(PAUSE_SECONDS)


def framed(event: str, data: object) -> bytes:
    """Give one event of a stream of server-sent events."""
    return f"event: {event}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


class ChangeBatches:
    """Changes that viewers have not all seen: numbered, and kept while they are few."""

    def __init__(self) -> None:
        self.wanted = asyncio.Event()
        """Set while there are changes that are in no batch yet."""
        self.newest = 0
        """The number of the newest batch."""
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=BATCHES_KEPT)
        self._keys: set[str] = set()
        self._acts: dict[str, Row] = {}
        self._more = asyncio.Event()

    def changed(self, key: str) -> None:
        """Take note of a group that has changed."""
        self._keys.add(key)
        self.wanted.set()

    def acted(self, row: Row) -> None:
        """Take note of an action, or of its outcome."""
        self._acts[str(row["id"])] = row
        self.wanted.set()

    def take(self) -> tuple[set[str], list[Row]]:
        """Give what has changed, and begin the next batch."""
        self.wanted.clear()
        keys, acts = self._keys, [*self._acts.values()]
        self._keys, self._acts = set(), {}
        return keys, acts

    def add(self, batch: bytes) -> None:
        """Number a batch, and wake who waits for it."""
        self.newest += 1
        self._kept.append((self.newest, batch))
        self.wake()

    def wake(self) -> None:
        """Wake who waits for a batch: there is one, or something else to say."""
        self._more.set()
        self._more = asyncio.Event()

    def since(self, number: int) -> list[bytes] | None:
        """Give the batches after this one; None: they are too many, so that the whole state is shorter."""
        if number + len(self._kept) < self.newest:
            return None
        return [batch for one, batch in self._kept if one > number]

    async def more(self, number: int, seconds: float) -> bool:
        """Wait until there is a batch after this one; False: there was none in time, or there is something else."""
        if self.newest > number:
            return True
        try:
            async with asyncio.timeout(seconds):
                await self._more.wait()
        except TimeoutError:
            return False
        return self.newest > number
