"""Comparison of an action's premises with the evidence in its record: what was left, and what got something.

The evidence has the newest look of each signal at the moment of the decision, so it is judged for as long as decisions
are kept, also when the observations themselves are gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from bus.messages import DecisionRecord, Health, LookSeen, TargetEvidence, iso
from rules.core.premises import Alternatives, Premise

SLACK = timedelta(seconds=0.05)
"""Time by which clocks may lie apart."""


def contradictions(record: DecisionRecord, premises: Iterable[Alternatives]) -> Iterator[str]:
    """Give in a sentence what is not so, by the record's evidence, of what an action rests on."""
    for alternatives in premises:
        reasons = [_contradiction(record, premise) for premise in alternatives]
        if not reasons:
            yield "no copy is left that could be healthy"
        elif all(reasons):
            yield ", and ".join(reason for reason in reasons if reason)


def _contradiction(record: DecisionRecord, premise: Premise) -> str | None:
    found = [one for one in record.evidence if one.target == premise.target]
    if not found:
        if premise.unobserved and not _is_observed(record, premise.target):
            return None
        return f"{premise.target}: the record has no evidence of it"
    reasons = [_disagreement(one, premise) for one in found]
    return None if None in reasons else reasons[0]


def _is_observed(record: DecisionRecord, target: str) -> bool:
    """True if the record has an observation of the target, or lacks the state that would show it."""
    states = [state.get("members", {}) for state in (record.before, record.shared_group) if state is not None]
    said = any(fact.get("target") == target for fact in record.facts)
    return record.before is None or said or any(target in members for members in states)


def _disagreement(found: TargetEvidence, premise: Premise) -> str | None:
    """Reason why this evidence does not show the premise; None: it does."""
    right = found.status is Health.HEALTHY if premise.healthy else _is_bad(found, premise)
    if not right:
        needed = "Healthy" if premise.healthy else "bad"
        return f"{found.target} was {found.status.value}, and the action needs it to be {needed}"
    if premise.silence and found.status is Health.UNKNOWN:
        return None
    due = found.window_ended or found.window_began
    looks = [look for look in found.looks if premise.signals is None or look.signal in premise.signals]
    if sum(_shows(look, due) for look in looks) >= premise.least:
        return None
    last = max((look.valid_until or look.observed_at for look in looks), default=None)
    when = f"last seen {found.status.value} at {_time(last)}" if last is not None else "no look is kept"
    signals = f"{premise.least} signals have" if premise.least > 1 else "that has"
    return f"{found.target}: {when}, and {signals} to be seen at {_time(due)} or later"


def _is_bad(found: TargetEvidence, premise: Premise) -> bool:
    return found.status is Health.UNHEALTHY or (premise.unknown and found.status is Health.UNKNOWN)


def _shows(look: LookSeen, due: datetime) -> bool:
    return look.valid_until is None or due - look.valid_until <= SLACK


def _time(moment: datetime) -> str:
    return iso(moment.replace(microsecond=moment.microsecond // 1000 * 1000))
