"""State of `reactor watch`: groups, recent actions, and how long ago the bus answered."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from bus.errors import Malformed
from bus.message_admission import read_message
from bus.messages import DecisionRecord, Outcome
from bus.subjects import ROOT
from bus.topology import DECISIONS, FACTS, Stream
from reactor.fleet.layout import partitions_of
from reactor.runtime.clock import Clock
from reactor.runtime.supervise import forever
from reactor.views.rows import Row, action_rows
from reactor.views.stored_groups import stored_groups
from rules.core.group import Group
from rules.rulefile.model import Rule

if TYPE_CHECKING:
    from bus.jetstream import JetStreamBus

LOOK_SECONDS = 0.5
SHARE = 4
"""Between two looks passes at least so many times what the last one took: a large fleet is not read all the time."""
BEAT_SECONDS = 1.0
STALE_SECONDS = 2.5
"""Seconds without an answer of the bus after which the state counts as old."""
RECORDS_READ = 2_000
"""Newest decisions that are searched for actions at the start."""
ACTIONS_KEPT = 50
OUTCOMES_KEPT = 5_000
WAIT = timedelta(seconds=1)
_Kept = TypeVar("_Kept")


@dataclass(slots=True)
class Watched:
    """The newest state. `follow` keeps it so."""

    bus: JetStreamBus
    clock: Clock
    rules: Mapping[str, Rule]
    groups: Sequence[Group] = ()
    heard_at: float = 0.0
    """Monotonic time at which the bus last answered."""
    problem: str = ""
    """Reason why the bus, or what is stored on it, cannot be read; empty: all was read."""
    _actions: OrderedDict[str, Row] = field(default_factory=OrderedDict)
    _outcomes: OrderedDict[str, Outcome] = field(default_factory=OrderedDict)

    def actions(self) -> list[Row]:
        """Give the newest actions, the newest first."""
        return [*reversed(self._actions.values())]

    def stale_seconds(self) -> float:
        """Give for how long the bus has not answered; 0: it does."""
        silent = self.clock.monotonic() - self.heard_at
        return silent if silent > STALE_SECONDS else 0.0

    async def beat(self) -> None:
        """Ask the bus for a single value, again and again. Raises BusError."""
        while True:
            await partitions_of(self.bus)
            self.heard_at = self.clock.monotonic()
            await asyncio.sleep(BEAT_SECONDS)

    async def follow_groups(self) -> None:
        """Read all groups, again and again. Raises BusError."""
        while True:
            began, unread = self.clock.monotonic(), list[str]()
            self.groups = await stored_groups(self.bus, unread.append)
            self.heard_at = self.clock.monotonic()
            self.problem = unread[0] if unread else ""
            await asyncio.sleep(max(LOOK_SECONDS, SHARE * (self.heard_at - began)))

    async def follow_actions(self) -> None:
        """Take each decision that asks for actions. Raises BusError."""
        bounds = await self.bus.extent(DECISIONS)
        async for record in self._messages(DECISIONS, DECISIONS.subjects[0], max(bounds.last - RECORDS_READ, 0)):
            if isinstance(record, DecisionRecord):
                for row in action_rows(record, self._outcomes):
                    _keep(self._actions, str(row["id"]), row, ACTIONS_KEPT)

    async def follow_outcomes(self) -> None:
        """Take what became of each action of the last day. Raises BusError."""
        async for outcome in self._messages(FACTS, f"{ROOT}.facts.*.outcome.>", 0):
            if isinstance(outcome, Outcome):
                _keep(self._outcomes, outcome.action, outcome, OUTCOMES_KEPT)
                if (row := self._actions.get(outcome.action)) is not None:
                    row["outcome"] = {"status": outcome.status, "reason": outcome.reason, "detail": outcome.detail}

    async def _messages(self, stream: Stream, subject: str, after: int) -> AsyncIterator[object]:
        async with self.bus.read(stream, subject, after=after) as reading:
            while True:
                for one in await reading.next(WAIT):
                    try:
                        yield read_message(one.subject, one.body).data
                    except Malformed as error:
                        self.problem = str(error)

    async def follow(self) -> None:
        """Keep all of it new until cancelled."""
        loops = (self.beat, self.follow_groups, self.follow_actions, self.follow_outcomes)
        async with asyncio.TaskGroup() as tasks:
            for loop in loops:
                tasks.create_task(forever(f"watch {loop.__name__}", loop))

    async def look_once(self) -> None:
        """Read the groups a first time. Raises BusError."""
        self.groups = await stored_groups(self.bus, lambda _: None)
        self.heard_at = self.clock.monotonic()


def _keep(kept: OrderedDict[str, _Kept], key: str, one: _Kept, most: int) -> None:
    kept[key] = one
    while len(kept) > most:
        kept.popitem(last=False)
