"""Checker of acts that take something away: right by the truth, whatever was observed of it.

An outage may make an act late. It excuses none that is needless, early, or based on no look from its window's end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bus.messages import Evict, Place, SetTaints, SetWeights, ZoneStep
from rules.core.reasons import Because
from rules.rehearsal.world.checkers.promise_finding import Promise, Question, Violation, kept
from rules.rehearsal.world.checkers.traffic_promises import primary_of, targets_of
from rules.rehearsal.world.fault_plan import Interval
from rules.rehearsal.world.truth import ROUNDING, SEEN_WITHIN
from rules.rulefile.model import UnknownAs
from rules.rulefile.targets import encode_segment

_NOT_BY_HEALTH = (Because.DRIFT, Because.ALL_DOWN, Because.TRIAL, Because.TRIAL_FAILED, Because.BY_HAND)
"""Reasons to change weights that do not depend on a backend's health: a trial is made because it is not known."""


def founded(question: Question) -> Iterator[Violation]:
    """Check that what is left has been bad for its whole window and is bad now, and that what gets traffic or copies is
    not bad."""
    if question.rule.treat_unknown_as is UnknownAs.UNHEALTHY:
        return  # for this rule silence is bad
    match question.action:
        case SetWeights():
            yield from _weights(question)
        case Place() | Evict():
            yield from _copies(question)
        case SetTaints(taints=taints) if taints:
            yield from left(question, question.action.object)
        case ZoneStep(undo=False, because=Because.ZONE_UNHEALTHY):
            if not question.told.touched.get(question.action.rule, {}).get(question.action.zone):
                yield from left(question, question.rule.target(question.action.zone))
        case _:
            return


def left(question: Question, target: str) -> Iterator[Violation]:
    """Check that a target is bad, has been for the toleration, and was seen so when that was over."""
    rule, now = question.rule, question.now
    spans = question.truth.bad(target, rule.signals, now)
    if spans is None:
        return
    last = _recent(spans, now)
    if last is None:
        yield Violation(Promise.NEEDLESS, f"{target} is left and {_well(spans, now)}")
        return
    yield Violation(Promise.NEEDLESS)
    seconds = now - last[0]
    enough = seconds + ROUNDING >= rule.toleration_seconds
    yield kept(Promise.EARLY, enough, f"{target} has really been bad for {seconds:g} of {rule.toleration_seconds:g} s")
    looked = question.told.words.looked(target, rule.signals)
    due = last[0] + rule.toleration_seconds - ROUNDING
    yield kept(Promise.BLIND, looked >= due, f"{target} was last looked at {due - looked:g} s before its window ended")


def taken(question: Question, target: str, names: Sequence[str] | None) -> Iterator[Violation]:
    """Check that a target that gets something is healthy."""
    spans = question.truth.bad(target, names, question.now)
    if spans is None:
        return
    bad = spans[-1] if spans else (0.0, 0.0)
    is_bad = bad[1] >= question.now and question.now - bad[0] > SEEN_WITHIN
    yield kept(Promise.BLIND, not is_bad, f"{target} gets something and has really been bad since {bad[0]:g}")


def _weights(question: Question) -> Iterator[Violation]:
    rule, action, known = question.rule, question.action, question.told.routes.get(question.action.route.object)
    if known is None or action.because in _NOT_BY_HEALTH:
        return
    targets, primary = targets_of(rule, known), primary_of(rule, known)
    if known.weights.get(primary) and action.weights.get(primary) == 0 and primary in targets:
        yield from left(question, targets[primary])
    for service, weight in action.weights.items():
        if weight and not known.weights.get(service) and service in targets:
            own = service == primary and rule.own_way_back
            names = rule.failback.signals if own and rule.failback.signals is not None else rule.signals
            yield from taken(question, targets[service], names)


def _copies(question: Question) -> Iterator[Violation]:
    rule, action, told = question.rule, question.action, question.told
    leaving = told.leaving.get((action.rule, action.object), {})
    copies = told.copies.get(action.object)
    if copies is None or action.because == Because.RECOVERED:
        return  # what was placed in vain goes again, however it is
    for name in action.leaving if isinstance(action, Place) else (action.from_,):
        if leaving.get(name) is None and name in copies.since and not told.taints.get(name):
            yield from _left_by_any(question, name)
    if not isinstance(action, Place):
        return
    for name in action.clusters.keys() - copies.since.keys():
        yield from taken(question, f"cluster/{encode_segment(name)}", rule.signals)


def _left_by_any(question: Question, cluster: str) -> Iterator[Violation]:
    """A workload leaves for its cluster's health, or for its copy's: one of them is bad."""
    name, now = encode_segment(cluster), question.now
    targets = [f"cluster/{name}", f"workload/{name}/{question.action.object}"]
    known = {target: question.truth.bad(target, question.rule.signals, now) for target in targets}
    if any(spans is None for spans in known.values()):
        return
    well = all(_recent(spans or (), now) is None for spans in known.values())
    what = "; ".join(f"{target} {_well(spans or (), now)}" for target, spans in known.items())
    yield kept(Promise.NEEDLESS, not well, f"{question.action.object} leaves {cluster}: {what}")


def _recent(spans: Sequence[Interval], now: float) -> Interval | None:
    """The stretch that was not over longer ago than an act's looks may be old."""
    return spans[-1] if spans and spans[-1][1] >= now - SEEN_WITHIN else None


def _well(spans: Sequence[Interval], now: float) -> str:
    if not spans:
        return "was never bad"
    return f"was bad from {spans[-1][0]:g} to {spans[-1][1]:g}, and well for {now - spans[-1][1]:g} s"
