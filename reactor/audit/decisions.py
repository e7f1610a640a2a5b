"""Checks a production audit: the decisions that were recorded against their evidence and the stored observations.

early        something was left although by all that was said of it it had been bad for less than its window
needless     what was left was Healthy, or what got something was not, or no word from the window's end or later shows
             it: by the evidence in the record, or by the stored observations
doubled      one action id that asks for two different things
interleaved  a route's new generation is not above the one before
undecided    the observations of that time, or the rule, are no longer there: nothing is claimed by them

An outage of the bus, or a source that was silent, excuses none of them. What a kind's actions rest on its own module of
premises says; commands, taints as cause, drift and ways back to safety rest on no health.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bus.messages import DecisionRecord, Health
from reactor.audit.recorded_evidence import contradictions
from reactor.audit.stored_observations import TargetObservations, remembered
from reactor.audit.verdict import AuditVerdict, Breach
from rules.core.premises import Alternatives, Premise

SLACK = 0.05
"""Seconds by which clocks may lie apart."""
AHEAD = 0.25
"""Seconds by which a source may date what a decider had at a moment later than that moment."""
Premises = Callable[[DecisionRecord, int], Sequence[Alternatives] | None]
"""Premises of an action by record and number; None: its rule is not known."""


@dataclass(slots=True)
class _Judge:
    heard: Mapping[str, TargetObservations]
    premises_of: Premises
    verdict: AuditVerdict = field(default_factory=AuditVerdict)
    oldest: datetime | None = None
    asked: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    newest: dict[tuple[str, str], int] = field(default_factory=dict)

    def hear(self, record: DecisionRecord) -> None:
        """Judge the actions of one record."""
        self.oldest = self.oldest or record.decided_at
        for number, action in enumerate(record.actions):
            known = self.asked.get(action["id"])
            if known is not None:
                self.verdict.add("doubled", list(_other(record, known, action)), tested=1)
            elif action["action"] == "SetWeights":
                self.verdict.add("interleaved", list(self._order(record, action)), tested=1)
            if known is None or known.get("decidedAt") != action.get("decidedAt"):
                self._founded(record, number)
            self.asked.setdefault(action["id"], action)

    def _order(self, record: DecisionRecord, action: Mapping[str, Any]) -> Iterator[Breach]:
        group, generation = (record.rule, record.object), action["generation"]
        newest = self.newest.get(group, 0)
        self.newest[group] = max(newest, generation)
        if generation <= newest:
            yield _breach("interleaved", record, f"generation {generation} after {newest}")

    def _founded(self, record: DecisionRecord, number: int) -> None:
        """Judge whether what the action rests on was so."""
        asked_at = record.actions[number].get("decidedAt")
        if asked_at is not None and self.oldest is not None and datetime.fromisoformat(asked_at) < self.oldest:
            return  # said again: it was asked for in a record that is no longer kept
        premises = self.premises_of(record, number)
        if premises is None:
            self.verdict.tested["undecided"] += 1
            return
        if not premises:
            return
        early, needless = list[Breach](), [_breach("needless", record, one) for one in contradictions(record, premises)]
        for premise in (one for alternatives in premises for one in alternatives if one.toleration is not None):
            found = _observed(premise, record, self.heard.get(premise.target))
            if found is None:
                self.verdict.tested["undecided"] += 1
                continue
            early += [one for one in found if one.promise == "early"]
            needless += [one for one in found if one.promise == "needless"]
            self.verdict.tested["early"] += 1
        self.verdict.breaches += early
        self.verdict.add("needless", needless[:1], tested=1)


def judge(
    records: Iterable[DecisionRecord], heard: Mapping[str, TargetObservations], premises_of: Premises
) -> AuditVerdict:
    """Judge the records in their order."""
    judge = _Judge(heard, premises_of)
    for record in records:
        judge.hear(record)
    return judge.verdict


def _other(record: DecisionRecord, known: Mapping[str, Any], action: Mapping[str, Any]) -> Iterator[Breach]:
    """An action that is said again asks for the same."""
    before, now = (one.get("weights", one.get("message")) for one in (known, action))
    if before != now:
        yield _breach("doubled", record, f"{action['id']} asks for {now} after {before}")


def _observed(premise: Premise, record: DecisionRecord, known: TargetObservations | None) -> list[Breach] | None:
    """Judge by the stored observations whether the target was bad for its window, and seen so when that was over.

    None: they are gone.
    """
    at = record.decided_at.timestamp()
    length = premise.toleration.total_seconds() if premise.toleration is not None else 0.0
    if known is None or not remembered(known, at - length):
        return None
    bad, target = known.bad(at + max(AHEAD, record.skew_seconds), premise.signals), premise.target
    if bad is None and premise.unknown and _was_unknown(record, target):
        return []
    if bad is None:
        return [_breach("needless", record, f"{target}: no signal said Unhealthy")]
    if at - bad.since < length - SLACK:
        return [_breach("early", record, f"{target}: {at - bad.since:.3f} s, {length:g} s are tolerated")]
    if bad.proven_until < bad.since + length - SLACK:
        ago = bad.since + length - bad.proven_until
        what = f"{target}: last seen Unhealthy {ago:.3f} s before its window of {length:g} s was over"
        return [_breach("needless", record, what)]
    return []


def _was_unknown(record: DecisionRecord, target: str) -> bool:
    return any(one.target == target and one.status is Health.UNKNOWN for one in record.evidence)


def _breach(promise: str, record: DecisionRecord, what: str) -> Breach:
    return Breach(promise, f"{record.rule} {record.object}", record.decided_at.timestamp(), what)
