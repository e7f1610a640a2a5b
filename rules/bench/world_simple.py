"""What a witness asks of ClusterTaint and Notification: they follow one target's windows, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from bus.messages import Health, Notify, SetTaints
from rules.bench.play import second as second_
from rules.bench.world_finding import GRACE, Finding, Promise, Question, judged
from rules.bench.world_told import Told
from rules.bench.world_words import Lean, taken
from rules.language.model import Notification, UnknownAs
from rules.language.targets import matches
from rules.language.workload import ClusterTaint

EPSILON = 0.001
"""Seconds; a moment that is computed twice, and not in the same way, is the same."""


def tainted(question: Question) -> Iterator[Finding]:
    """Taints come when the cluster was bad for long enough, and not back-dated; they go when it was good for so."""
    action = question.action
    if not isinstance(action, SetTaints):
        return
    yield from _followed(question, action.object, bad=bool(action.taints))
    for taint in action.taints:
        since = second_(taint.time_added) if taint.time_added is not None else question.now
        found = _taken(question, action.object, Lean.BAD)
        early = found.since is not None and since < found.since - EPSILON
        yield Finding(Promise.EARLY, f"{taint.key} is dated before the toleration was over" if early else "")


def notified(question: Question) -> Iterator[Finding]:
    """People are told once that it is bad, when it was so for long enough, and then once that it is good again."""
    action, told = question.action, question.told
    if not isinstance(action, Notify):
        return
    key = (action.rule, action.object)
    told.news[key] = told.news.get(key, 0) + 1
    yield from _followed(question, action.object, bad=told.news[key] % 2 == 1)


def _taken(question: Question, target: str, lean: Lean):  # type: ignore[no-untyped-def]
    rule = question.rule
    parts = question.told.words.parts(target, rule.signals, question.now, lean)
    return taken(
        parts, question.now, rule.toleration_seconds, rule.recovery_seconds, lean,
        unknown_is_bad=rule.treat_unknown_as is UnknownAs.UNHEALTHY,
    )  # fmt: skip


def _followed(question: Question, target: str, *, bad: bool) -> Iterator[Finding]:
    rule = question.rule
    if bad:
        parts = question.told.words.parts(target, rule.signals, question.now, Lean.BAD)
        worst = {Health.UNHEALTHY}
        if rule.treat_unknown_as is UnknownAs.UNHEALTHY:
            worst.add(Health.UNKNOWN)
        found = _taken(question, target, Lean.BAD)
        yield judged(
            bad=found.bad, seconds=found.seconds, tolerated=rule.toleration_seconds, target=target,
            seen_bad=any(status in worst for _, status in parts),
        )  # fmt: skip
        return
    found = _taken(question, target, Lean.GOOD)
    wrong = ""
    if not found.once_healthy:
        yield Finding(Promise.BLIND, f"nobody has said that {target} is Healthy")
        return
    if found.bad:
        wrong = f"{target} was not good for recoverySeconds"
    yield Finding(Promise.EARLY, wrong)


def untold(told: Told, rule: ClusterTaint | Notification, now: float) -> Iterator[Finding]:
    """What has been bad, or good, for long enough is answered, or held back with a reason."""
    for target in told.words.of:
        if not matches(rule.match, target):
            continue
        hold = told.holds.get((rule.name, target))
        bad = told.words.surely(target, rule.signals, now, Health.UNHEALTHY)
        good = told.words.surely(target, rule.signals, now, Health.HEALTHY)
        if bad > rule.toleration_seconds + GRACE:
            lost = not _answered(told, rule, target) and hold is None
            yield Finding(Promise.LOST, f"{target} has been bad for {bad:g} s" if lost else "", target)
        elif good > rule.recovery_seconds + GRACE:
            lost = _answered(told, rule, target) and hold is None
            yield Finding(Promise.LOST, f"{target} has been good for {good:g} s" if lost else "", target)


def _answered(told: Told, rule: ClusterTaint | Notification, target: str) -> bool:
    """Whether the last word about this target is that it is bad."""
    if isinstance(rule, Notification):
        return told.news.get((rule.name, target), 0) % 2 == 1
    lane = (rule.name, target, "taints")
    last = told.flying.get(lane) or told.done.get(lane)
    return isinstance(last, SetTaints) and bool(last.taints)
