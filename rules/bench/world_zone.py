"""What a witness asks of ZoneIsolation."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from bus.messages import Health, Zones, ZoneStep
from rules.bench.world_finding import GRACE, Finding, Promise, Question, judged
from rules.bench.world_told import Told
from rules.bench.world_words import Lean, taken
from rules.language.model import UnknownAs
from rules.language.zone import ZoneIsolation
from rules.reasons import Because

SIGNALS = 2
"""That have to agree before a zone goes, and before it comes back."""


def isolated(question: Question) -> Iterator[Finding]:
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
    yield Finding(Promise.LAST, f"{action.zone} is taken while {others[0]} is" if others else "")
    if touched.get(action.zone) or _begun(told, action):
        return
    yield from _enough_left(question)
    if action.because == Because.ZONE_UNHEALTHY:
        yield from _bad_enough(question)


def _begun(told: Told, action: ZoneStep) -> bool:
    """Whether this goes on with a plan that was begun: its first step was asked for."""
    last = told.flying.get((action.rule, action.object, action.lane))
    last = last or told.done.get((action.rule, action.object, action.lane))
    return isinstance(last, ZoneStep) and not last.undo and last.step != action.step


def _bad_enough(question: Question) -> Iterator[Finding]:
    rule, told, now = question.rule, question.told, question.now
    target = rule.target(question.action.zone)
    unknown_is_bad = rule.treat_unknown_as is UnknownAs.UNHEALTHY
    bad = {Health.UNHEALTHY, Health.UNKNOWN} if unknown_is_bad else {Health.UNHEALTHY}
    parts = told.words.parts(target, rule.signals, now, Lean.BAD)
    found = taken(parts, now, rule.toleration_seconds, rule.recovery_seconds, Lean.BAD, unknown_is_bad=unknown_is_bad)
    yield judged(
        bad=found.bad, seconds=found.seconds, tolerated=rule.toleration_seconds, target=target,
        seen_bad=any(status in bad for _, status in parts),
    )  # fmt: skip
    saying = [
        name for name in told.words.signals(target, rule.signals)
        if told.words.now(target, [name], now, Lean.BAD) in bad
    ]  # fmt: skip
    few = len(saying) < SIGNALS
    yield Finding(Promise.BLIND, f"only {', '.join(saying) or 'nobody'} says that {target} is bad" if few else "")
    for zone in rule.zones:
        if zone.name != question.action.zone and rule.target(zone.name) in told.words.of:
            status = told.words.now(rule.target(zone.name), rule.signals, now, Lean.GOOD)
            wide = status is not Health.HEALTHY
            yield Finding(Promise.BLIND, f"{zone.name} is {status} too: rather the view is wrong" if wide else "")


def _enough_left(question: Question) -> Iterator[Finding]:
    """Others are there and carry on. What a person may force, they may."""
    rule, told, action = question.rule, question.told, question.action
    seen = told.zones.get(rule.cluster_name)
    if seen is None or not seen.api_reachable:
        yield Finding(Promise.BLIND, f"the zones of {rule.cluster_name} are not known")
        return
    order = told.isolate.get((rule.name, action.zone))
    by_hand = action.because == Because.COMMANDED and order is not None
    others = [one for name, one in seen.zones.items() if name != action.zone and one.nodes]
    yield Finding(Promise.LAST, "" if others else f"{action.zone} is the only zone with nodes")
    allowed = order.allow_single_zone if by_hand and order is not None else ()
    alone = [
        name
        for name in seen.single_zone_services
        if _is_there(name, action.zone) and name.split(":")[-1] not in allowed
    ]
    yield Finding(Promise.LAST, f"{alone[0]} has all its copies in {action.zone}" if alone else "")
    members = sum(seen.quorum_members.values())
    left = members - seen.quorum_members.get(action.zone, 0)
    lost = bool(members) and left <= members * Fraction(str(rule.quorum_share))
    yield Finding(Promise.LAST, f"{left} of {members} members would be left" if lost else "")
    if by_hand and order is not None and order.force:
        return
    nodes, healthy = sum(one.nodes for one in others), sum(one.healthy_nodes for one in others)
    unwell = healthy < nodes * Fraction(str(rule.healthy_share))
    yield Finding(Promise.LAST, f"{healthy} of {nodes} remaining nodes are healthy" if unwell else "")
    yield Finding(
        Promise.LAST, "" if _carry(seen, healthy, rule) else f"{healthy} nodes left, {seen.demand_nodes} needed"
    )


def _is_there(service: str, zone: str) -> bool:
    where, _, _ = service.rpartition(":")
    return where in ("", zone)


def _carry(seen: Zones, healthy: int, rule: ZoneIsolation) -> bool:
    return seen.demand_nodes is None or healthy >= seen.demand_nodes * Fraction(str(rule.demand_share))


def _proven(question: Question) -> Iterator[Finding]:
    """Two signals or more have called it Healthy for recoverySeconds, and none says otherwise."""
    rule, told, now = question.rule, question.told, question.now
    target, names = rule.target(question.action.zone), rule.failback.signals or rule.signals
    said = told.words.signals(target, names)
    few = len(said) < SIGNALS
    yield Finding(Promise.BLIND, f"{', '.join(said) or 'nobody'} alone says that {target} is well" if few else "")
    parts = told.words.parts(target, names, now, Lean.GOOD)
    well = now - parts[-1][0] if parts and parts[-1][1] is Health.HEALTHY else 0.0
    early = well < rule.recovery_seconds
    yield Finding(Promise.EARLY, f"{target} has been well for {well:g} of {rule.recovery_seconds:g} s" if early else "")


def unisolated(told: Told, rule: ZoneIsolation, now: float) -> Iterator[Finding]:
    """A zone that is bad by two signals for too long is taken out, or stays with a reason."""
    for zone in rule.zones:
        target = rule.target(zone.name)
        surely = sorted(
            (told.words.surely(target, [name], now, Health.UNHEALTHY) for name in told.words.signals(target, rule.signals)),
            reverse=True,
        )  # fmt: skip
        if len(surely) < SIGNALS or surely[SIGNALS - 1] <= rule.toleration_seconds + GRACE:
            continue
        touched = told.touched.get(rule.name, {}).get(zone.name)
        lost = not touched and (rule.name, rule.object) not in told.holds
        what = f"{target} has been bad for {surely[SIGNALS - 1]:g} s, and stays without a word"
        yield Finding(Promise.LOST, what if lost else "", f"{rule.object}/{zone.name}")
