"""The fleet with one mistake in it: each is a mistake that a hurried change could make, and must be caught."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import pytest

from bus.messages import Fact, Mode, Observation, Outcome
from bus.port import Outgoing
from reactor.roles import executor, partition
from reactor.roles.partition import Partition
from rules.engine import decide as engine
from rules.engine import observe as facts_in
from rules.engine.decide import Decision
from tests.simulation.fleet.readers import SimReading

Mutant = Callable[[pytest.MonkeyPatch], None]


def saved_after_publish(patch: pytest.MonkeyPatch) -> None:
    """What is owed is published first, and stored when that is done."""

    async def carry(
        self: Any, decisions: Sequence[Decision], facts: Sequence[Fact], now: datetime, trace: str | None
    ) -> None:
        keys = [(decision.group.rule, decision.group.object) for decision in decisions]
        self._dirty.update(keys)
        actions = [
            self._outgoing(decision.group, action, trace)
            for decision in decisions
            for action in decision.actions
            if action.mode is Mode.ENFORCE
        ]
        if actions:
            await self._desk.bus.publish_all(actions)
            await self._save([key for key, decision in zip(keys, decisions, strict=True) if decision.actions])

    patch.setattr(Partition, "_carry", carry)


def no_fence(patch: pytest.MonkeyPatch) -> None:
    """Actions carry an epoch, and the server is not asked to check it."""
    outgoing = Partition._outgoing

    def unfenced(self: Partition, *args: Any) -> Outgoing:
        message = outgoing(self, *args)
        return Outgoing(message.subject, message.body, message.id, None, message.traceparent)

    patch.setattr(Partition, "_outgoing", unfenced)


def from_receipt(patch: pytest.MonkeyPatch) -> None:
    """Windows run from when an observation is heard, not from when it was made."""
    observe = facts_in.observe

    def late(rule: Any, group: Any, fact: Fact, now: datetime) -> Any:
        if isinstance(fact, Observation):
            fact = fact.model_copy(update={"observed_at": now})
        return observe(rule, group, fact, now)

    patch.setattr(engine, "observe", late)


def no_catching_up(patch: pytest.MonkeyPatch) -> None:
    """Windows run out whether all older facts were read or not."""

    async def always(self: SimReading) -> bool:
        return True

    patch.setattr(SimReading, "caught_up", always)


def position_first(patch: pytest.MonkeyPatch) -> None:
    """The position is stored before the groups that it speaks of."""
    checkpoint = Partition._checkpoint

    async def reversed_order(self: Any) -> None:
        dirty, self._dirty = self._dirty, set()
        await checkpoint(self)
        self._dirty = dirty
        await checkpoint(self)

    patch.setattr(Partition, "_checkpoint", reversed_order)


def no_intent_check(patch: pytest.MonkeyPatch) -> None:
    """The executor writes whatever it is given, and looks at no intent."""

    async def write(self: Any, action: Any) -> Outcome:
        outcome: Outcome = await self._write(action)
        return outcome

    patch.setattr(executor.Executor, "_fenced", write)


def owed_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A new owner does not publish what the one before it owed."""

    async def nothing(self: Any) -> None:
        return

    patch.setattr(partition.Partition, "_publish_owed", nothing)


MUTANTS: dict[str, Mutant] = {
    one.__name__: one
    for one in (
        saved_after_publish, no_fence, from_receipt, no_catching_up, position_first, no_intent_check,
        owed_forgotten,
    )
}  # fmt: skip
