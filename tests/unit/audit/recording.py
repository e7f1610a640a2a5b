"""Records of what rules decide on a history, as the audit keeps them, and what a verification finds in them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from bus.messages import DecisionRecord, Fact, TargetEvidence
from reactor.audit.decisions import judge
from reactor.audit.stored_observations import hear
from rules.engine.decide import Decision
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.loader import RuleSet
from rules.rehearsal.decision_replay import recorded
from rules.rehearsal.recorded_premises import by_rules
from rules.rehearsal.simulation import Simulator, at
from tests.unit.rules.builders import Event


class RecordingGroupStore(GroupStore):
    """Groups whose decisions are recorded."""

    def __init__(self, routing: Routing) -> None:
        super().__init__(routing)
        self._rules = routing
        self.records: list[DecisionRecord] = []

    def apply(
        self, facts: Sequence[Fact], now: datetime, positions: Sequence[int] = (), *, known: bool = True
    ) -> list[Decision]:
        return self._recorded(super().apply(facts, now, positions, known=known), now)

    def fire_due(self, now: datetime, *, at_most: int = sys.maxsize) -> list[Decision]:
        return self._recorded(super().fire_due(now, at_most=at_most), now)

    def _recorded(self, decisions: list[Decision], now: datetime) -> list[Decision]:
        for one in decisions:
            if one.seen is not None:
                record = recorded(one, self._rules.digest(one.group.rule), now)
                self.records.append(DecisionRecord.model_validate_json(record.model_dump_json()))
        return decisions


def records(rules: RuleSet, *events: Event, until: float = 1000, outcomes: bool = True) -> list[DecisionRecord]:
    """Records of all that is decided. `outcomes`: each action is done at once."""
    store = RecordingGroupStore(Routing.of(rules))
    simulator = Simulator(store, outcomes=outcomes)
    for now in sorted({second for second, _ in events}):
        list(simulator.until(at(now)))
        list(simulator.take([one for second, one in events if second == now], at(now)))
    list(simulator.until(at(until)))
    return store.records


def acting(records: Iterable[DecisionRecord], action: str, **fields: Any) -> DecisionRecord:
    """The first record with such an action."""
    return next(
        one
        for one in records
        for asked in one.actions
        if asked["action"] == action and all(asked[name] == value for name, value in fields.items())
    )


def found(rules: RuleSet, *records: DecisionRecord) -> list[str]:
    """Promises and reasons of the breaches that the records show by themselves, without any stored observation."""
    verdict = judge(records, hear([]), by_rules(rules.rules))
    return [f"{one.promise}: {one.what}" for one in verdict.breaches]


Change = Callable[[TargetEvidence], Mapping[str, Any]]


def edited(record: DecisionRecord, target: str, change: Change) -> DecisionRecord:
    """The record with other evidence of one target."""
    evidence = [one.model_copy(update=dict(change(one))) if one.target == target else one for one in record.evidence]
    assert evidence != [*record.evidence]
    return record.model_copy(update={"evidence": tuple(evidence)})


def without(record: DecisionRecord, target: str) -> DecisionRecord:
    """The record without the evidence of one target."""
    evidence = tuple(one for one in record.evidence if one.target != target)
    assert evidence != record.evidence
    return record.model_copy(update={"evidence": evidence})
