"""Checker of ZoneIsolation."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from bus.messages import Health, ZoneStep
from rules.core.reasons import Because
from rules.kinds.zone.model import ZoneIsolation
from rules.rehearsal.world.checkers.promise_finding import (
    GRACE,
    Promise,
    Question,
    Violation,
    counts_as_bad,
    kept,
    was_bad,
)
from rules.rehearsal.world.signal_timeline import GOOD
from rules.rehearsal.world.world_log import WorldLog

SIGNALS = 2
"""Number of signals that have to agree before a zone is isolated, and before it returns."""


def isolated(question: Question) -> Iterator[Violation]:
    """One zone at a time, never without another that carries on; bad by two signals, and back only when proven well."""
    action, told = question.action, question.told
    if not isinstance(action, ZoneStep):
        return
    touched = told.touched.get(action.rule, {})
    if action.undo:
        if action.because != Because.ABORTED:
            yield from _proven(question)
        return
    others = sorted(zone for zone, steps in touched.items() if steps and zone != action.zone)
    yield kept(Promise.LAST, not others, f"{action.zone} is taken while {', '.join(others)} is")
    if touched.get(action.zone) or _begun(told, action):
        return
    yield from _enough_left(question)
    if action.because == Because.ZONE_UNHEALTHY:
        yield from _bad_enough(question)


def _begun(told: WorldLog, action: ZoneStep) -> bool:
    """True if the step continues a plan whose first step was asked for."""
    last = told.flying.get((action.rule, action.object, action.concurrency_key))
    last = last or told.done.get((action.rule, action.object, action.concurrency_key))
    return isinstance(last, ZoneStep) and not last.undo and last.step != action.step


def _bad_enough(question: Question) -> Iterator[Violation]:
    rule, words, now = question.rule, question.told.words, question.now
    target, bad = rule.target(question.action.zone), counts_as_bad(rule)
    yield was_bad(question, target)
    saying = [name for name in words.signals(target, rule.signals) if words.now(target, [name], now, bad) in bad]
    enough = len(saying) >= SIGNALS
    yield kept(Promise.BLIND, enough, f"only {', '.join(saying) or 'no signal'} says that {target} is bad")
    for zone in rule.zones:
        other = rule.target(zone.name)
        if zone.name != question.action.zone and other in words.of:
            status = words.now(other, rule.signals, now, GOOD)
            well = status is Health.HEALTHY
            yield kept(Promise.BLIND, well, f"{zone.name} is {status} too: the observation may be wrong")


def _enough_left(question: Question) -> Iterator[Violation]:
    """Others are there and carry on. What a person may force, they may."""
    rule, told, action = question.rule, question.told, question.action
    seen = told.zones.get(rule.cluster_name)
    if seen is None or not seen.api_reachable:
        yield Violation(Promise.BLIND, f"the zones of {rule.cluster_name} are not known")
        return
    order = told.isolate.get((rule.name, action.zone)) if action.because == Because.COMMANDED else None
    others = [one for name, one in seen.zones.items() if name != action.zone and one.nodes]
    yield kept(Promise.LAST, bool(others), f"{action.zone} is the only zone with nodes")
    allowed = order.allow_single_zone if order is not None else ()
    alone = [
        name for name in seen.single_zone_services
        if name.rpartition(":")[0] in ("", action.zone) and name.rpartition(":")[2] not in allowed
    ]  # fmt: skip
    yield kept(Promise.LAST, not alone, f"{', '.join(alone)} would have no copy left")
    members = sum(seen.quorum_members.values())
    left = members - seen.quorum_members.get(action.zone, 0)
    majority = not members or left > members * Fraction(str(rule.quorum_share))
    yield kept(Promise.LAST, majority, f"{left} of {members} members would be left")
    if order is not None and order.force:
        return
    nodes, healthy = sum(one.nodes for one in others), sum(one.healthy_nodes for one in others)
    well = healthy >= nodes * Fraction(str(rule.healthy_share))
    yield kept(Promise.LAST, well, f"{healthy} of {nodes} remaining nodes are healthy")
    carry = seen.demand_nodes is None or healthy >= seen.demand_nodes * Fraction(str(rule.demand_share))
    yield kept(Promise.LAST, carry, f"{healthy} healthy nodes would be left, and {seen.demand_nodes} are needed")


def _proven(question: Question) -> Iterator[Violation]:
    """Two signals or more have called it Healthy for recoverySeconds, and none says otherwise."""
    rule, words, now = question.rule, question.told.words, question.now
    target, names = rule.target(question.action.zone), rule.failback.signals or rule.signals
    said = words.signals(target, names)
    enough = len(said) >= SIGNALS
    yield kept(Promise.BLIND, enough, f"{', '.join(said) or 'no signal'} alone says that {target} is well")
    parts = words.parts(target, names, now, GOOD)
    well = now - parts[-1][0] if parts and parts[-1][1] is Health.HEALTHY else 0.0
    proven = well >= rule.recovery_seconds
    yield kept(Promise.EARLY, proven, f"{target} has been well for {well:g} of {rule.recovery_seconds:g} s")


def unisolated(told: WorldLog, rule: ZoneIsolation, now: float) -> Iterator[Violation]:
    """A zone that is bad by two signals for too long is taken out, or stays with a reason."""
    for zone in rule.zones:
        target = rule.target(zone.name)
        names = told.words.signals(target, rule.signals)
        surely = sorted((told.words.surely(target, [name], now, Health.UNHEALTHY) for name in names), reverse=True)
        if len(surely) < SIGNALS or surely[SIGNALS - 1] <= rule.toleration_seconds + GRACE:
            continue
        touched = told.touched.get(rule.name, {}).get(zone.name)
        lost = not touched and (rule.name, rule.object) not in told.holds
        what = f"{target} has been bad for {surely[SIGNALS - 1]:g} s, and stays without a word"
        yield Violation(Promise.LOST, what if lost else "", f"{rule.object}/{zone.name}")
