"""Checker of limits: the rule is not paused, quiet times are kept, and too many bad peers stop it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from bus.messages import CancelEviction, Evict, Health, Notify, Place, Purge, SetTaints, SetWeights, ZoneStep
from rules.core.reasons import Because
from rules.limits.limiters import CLUSTERS, CLUSTERS_MIN, limits_of
from rules.rehearsal.world.checkers.promise_finding import Promise, Question, Violation, kept
from rules.rehearsal.world.signal_timeline import GOOD
from rules.rehearsal.world.world_log import WorldLog
from rules.rulefile.guards import Guards
from rules.rulefile.targets import encode_segment, matches

MARGIN = 1.0
"""Seconds for which peers must have been bad, to be counted for sure."""
HOME = (Because.PRIMARY_HEALTHY, Because.RETURNING, Because.DRIFT)


def guarded(question: Question) -> Iterator[Violation]:
    """Limits that can be checked from outside: a pause, a cooldown, and the share of bad peers."""
    rule, action, told = question.rule, question.action, question.told
    asked_back = isinstance(action, ZoneStep) and action.undo and action.because in (Because.COMMANDED, Because.ABORTED)
    allowed = asked_back or not told.paused(rule.name)  # a pause keeps no way back closed
    yield kept(Promise.LAST, allowed, f"{action.id} was asked while {rule.name} was paused")
    if not _begins(question):
        return
    limits = limits_of(rule, question.routing.file_guards)
    quiet = max((one.cooldown_seconds for one in limits.own), default=0.0)
    last = told.done_at.get((action.rule, action.object))
    if quiet and last is not None and not isinstance(action, Notify):
        late_enough = question.now - last >= quiet
        yield kept(Promise.LAST, late_enough, f"{action.id} comes within cooldownSeconds of the last one")
    for name, guards in limits.shared.items():
        if guards.max_unhealthy is not None or guards.min_healthy is not None:
            # A guard of a file without peers counts those of all its rules, unless the kind has a limit of its own.
            own = name.startswith("rule.") or rule.limited_by_default
            wrong = _widespread(told, guards, rule.default_peers if own else (), question.now)
            if wrong is not None:
                yield Violation(Promise.BLIND, wrong)


def _begins(question: Question) -> bool:
    """True if the action begins something: it is neither a step back nor a further step."""
    action, told = question.action, question.told
    leaving = told.leaving.get((action.rule, action.object), {})
    match action:
        case Place() | Evict() if action.because == Because.RECOVERED:
            return False  # what was placed in vain goes again
        case SetWeights():
            return action.because not in HOME
        case Place():
            return not any(leaving.get(name) for name in action.leaving)
        case Evict():
            placed = told.done.get((action.rule, action.object, "place"))
            return action.from_ not in leaving and not (isinstance(placed, Place) and action.from_ in placed.leaving)
        case SetTaints():
            return bool(action.taints)
        case Purge() | CancelEviction() | ZoneStep():
            return False
        case _:
            return True


def _widespread(told: WorldLog, guards: Guards, default_peers: Sequence[str], now: float) -> str | None:
    """Say that too many peers are bad; empty: they are not; None: it is not known which peers the guard counts."""
    patterns = (guards.peers,) if guards.peers is not None else default_peers
    if not patterns:
        return None
    peers = {target for target in told.words.of if any(matches(pattern, target) for pattern in patterns)}
    peers |= {f"cluster/{encode_segment(name)}" for name in told.clusters if "cluster/*" in patterns}
    if guards is CLUSTERS and len(peers) < CLUSTERS_MIN:
        return ""
    moments = (now - MARGIN, now)
    bad = [
        target for target in sorted(peers & told.words.of.keys())
        if all(told.words.now(target, None, second, GOOD) is not Health.HEALTHY for second in moments)
    ]  # fmt: skip
    if guards.max_unhealthy is not None and len(bad) > _most(guards.max_unhealthy, len(peers), guards.rounding):
        return f"{len(bad)} of {len(peers)} peers are bad, and {guards.max_unhealthy} may be: {', '.join(bad[:3])}"
    healthy = len(peers) - len(bad)
    if guards.min_healthy is not None and healthy < _most(guards.min_healthy, len(peers), guards.rounding):
        return f"{healthy} of {len(peers)} peers are healthy, and {guards.min_healthy} have to be"
    return ""


def _most(share: int | str, total: int, rounding: str | None) -> int:
    if isinstance(share, int):
        return share
    exact = Fraction(share.removesuffix("%")) * total / 100
    return -int(-exact // 1) if rounding == "Up" else int(exact)
