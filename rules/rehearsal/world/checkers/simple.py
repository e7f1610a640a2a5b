"""Checker of ClusterTaint and Notification: they follow one target's windows, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from bus.messages import Health, Notify, SetTaints
from rules.kinds.cluster_taint.model import ClusterTaint
from rules.kinds.notification.model import Notification
from rules.rehearsal.simulation import second as second_
from rules.rehearsal.world.checkers.promise_finding import (
    GRACE,
    Promise,
    Question,
    Violation,
    counts_as_bad,
    kept,
    taken_for,
    was_bad,
)
from rules.rehearsal.world.signal_timeline import GOOD
from rules.rehearsal.world.world_log import WorldLog
from rules.rulefile.targets import matches

EPSILON = 0.001
"""Seconds; a moment that is computed twice, and not in the same way, is the same."""


def tainted(question: Question) -> Iterator[Violation]:
    """Taints come when the cluster was bad for long enough, and not back-dated; they go when it was good for so."""
    action = question.action
    if not isinstance(action, SetTaints):
        return
    yield _followed(question, action.object, bad=bool(action.taints))
    for taint in action.taints:
        since = second_(taint.time_added) if taint.time_added is not None else question.now
        found = taken_for(question, action.object, counts_as_bad(question.rule))
        late_enough = found.since is None or since >= found.since - EPSILON
        yield kept(Promise.EARLY, late_enough, f"{taint.key} is dated before the toleration was over")


def notified(question: Question) -> Iterator[Violation]:
    """People are told once that it is bad, when it was so for long enough, and then once that it is good again."""
    action, told = question.action, question.told
    if not isinstance(action, Notify):
        return
    key = (action.rule, action.object)
    told.news[key] = told.news.get(key, 0) + 1
    yield _followed(question, action.object, bad=told.news[key] % 2 == 1)


def _followed(question: Question, target: str, *, bad: bool) -> Violation:
    if bad:
        return was_bad(question, target)
    found = taken_for(question, target, GOOD)
    if not found.once_healthy:
        return Violation(Promise.BLIND, f"no source has said that {target} is Healthy")
    return kept(Promise.EARLY, not found.bad, f"{target} was not good for recoverySeconds")


def untold(told: WorldLog, rule: ClusterTaint | Notification, now: float) -> Iterator[Violation]:
    """Check that a target that has been bad, or good, for long enough is answered, or held back with a reason."""
    for target in told.words.of:
        if not matches(rule.match, target):
            continue
        held = (rule.name, target) in told.holds
        is_tainted, coming = _answered(told, rule, target)
        bad = told.words.surely(target, rule.signals, now, Health.UNHEALTHY)
        good = told.words.surely(target, rule.signals, now, Health.HEALTHY)
        if bad > rule.toleration_seconds + GRACE:
            what = f"{target} has been bad for {bad:g} s, and no person was told"
            yield Violation(Promise.LOST, "" if is_tainted or coming or held else what, target)
        elif good > rule.recovery_seconds + GRACE:
            what = f"{target} has been good for {good:g} s, and no person was told"
            yield Violation(Promise.LOST, what if is_tainted and coming and not held else "", target)


def _answered(told: WorldLog, rule: ClusterTaint | Notification, target: str) -> tuple[bool, bool]:
    """Two booleans: the last known answer is that the target is bad; so it will be after the actions in flight."""
    if not isinstance(rule, ClusterTaint):
        is_told = told.news.get((rule.name, target), 0) % 2 == 1
        return is_told, is_told
    key = (rule.name, target, "taints")
    done, flying = told.done.get(key), told.flying.get(key)
    is_tainted = isinstance(done, SetTaints) and bool(done.taints)
    return is_tainted, bool(flying.taints) if isinstance(flying, SetTaints) else is_tainted
