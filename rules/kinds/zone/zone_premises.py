"""Premises of the steps of an isolation: the zone that is taken out is bad, and one that is opened again is healthy."""

from __future__ import annotations

from collections.abc import Iterator

from bus.messages import Action, IsolateZone, ZoneStep
from rules.core.premises import Alternatives, DecisionContext, Premise
from rules.core.reasons import Because
from rules.kinds.zone.admission import SOURCES_MIN
from rules.kinds.zone.model import ZoneIsolation
from rules.kinds.zone.state import Isolation, ZoneState
from rules.rulefile.model import UnknownAs


def premises(rule: ZoneIsolation, action: Action, context: DecisionContext[ZoneState]) -> Iterator[Alternatives]:
    """Give what a step rests on. What people ask for, drills, aborts and late nodes rest on no health."""
    if not isinstance(action, ZoneStep):
        return
    before = context.before.state.isolation if context.before is not None else None
    isolation = before if before is not None and before.zone == action.zone else None
    if context.has_ended(ZoneStep) and not _is_called_off(isolation):
        return
    if any(isinstance(fact, IsolateZone) and fact.zone == action.zone for fact in context.facts):
        return  # a person takes it over with this very decision
    target = rule.target(action.zone)
    if action.because == Because.ZONE_UNHEALTHY and not action.undo and not _rests_on_no_health(isolation):
        if _goes_on(isolation):
            yield (Premise(target, healthy=False, unknown=True, silence=True, unobserved=True, signals=rule.signals),)
            return
        bad = rule.treat_unknown_as is UnknownAs.UNHEALTHY
        tolerated = rule.window(rule.toleration_seconds)
        yield (
            Premise(
                target, healthy=False, unknown=bad, silence=bad, least=SOURCES_MIN, signals=rule.signals,
                toleration=tolerated,
            ),
        )  # fmt: skip
    elif action.because == Because.ZONE_RECOVERED and action.undo and not _goes_back(isolation):
        names = rule.failback.signals
        least, signals = (len(names), names) if names else (SOURCES_MIN, rule.signals)
        yield (Premise(target, healthy=True, least=least, signals=signals),)


def _rests_on_no_health(isolation: Isolation | None) -> bool:
    """True also where it is complete: what keeps it so rests on no health."""
    return isolation is not None and bool(isolation.by or isolation.practice or isolation.status == "Done")


def _is_called_off(isolation: Isolation | None) -> bool:
    """True if it goes on only past the guards: an outcome that comes late begins no other step."""
    if isolation is None or isolation.phase != "Failover":
        return False
    return isolation.status == "Pending" and bool(isolation.touched)


def _goes_on(isolation: Isolation | None) -> bool:
    """True if a step of it is done, and it was not called off since."""
    return isolation is not None and bool(isolation.done) and isolation.status != "Pending"


def _goes_back(isolation: Isolation | None) -> bool:
    """True if a step back is on its way already, or the way back needs no proof."""
    if isolation is None or isolation.phase != "Failback":
        return False
    return isolation.asked_at is not None or bool(isolation.waived)
