"""First verb: fold the facts in. A late fact never undoes a newer one; silence is itself a fact."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from bus.messages import Fact, Health, Observation, Outcome, Pause, Resume, Route, SetWeights
from rules.engine.debounce import heard
from rules.group import Group, Member, Owed, Paused, RouteState, Signal
from rules.language.model import Rule

PRIMARY_ANNOTATION = "failover.linkerd.io/primary-service"
DECISION_ANNOTATION = "reactor/decision"
HEALTHY_ANNOTATION = "reactor/healthy-weights"

RETRY_FIRST = timedelta(seconds=5)
RETRY_MAX = timedelta(minutes=5)


def observe(rule: Rule, group: Group, fact: Fact, now: datetime) -> Group:
    """Give the group with one fact folded in."""
    match fact:
        case Observation():
            return _observation(rule, group, fact, now)
        case Route():
            return _route(group, fact, now)
        case Outcome():
            return _outcome(group, fact, now)
        case Pause() | Resume():
            return _command(group, fact)


def _observation(rule: Rule, group: Group, fact: Observation, now: datetime) -> Group:
    # A source whose clock is ahead must not see the future: its window would open late, and its silence late.
    at = min(fact.observed_at, now)
    known = group.members.get(fact.target)
    last = known.signals.get(fact.signal) if known else None
    if last is not None and at <= last.observed_at:
        return group  # older, or the same again: a bus may say everything twice
    stale_at = at + timedelta(seconds=fact.stale_seconds) if fact.stale_seconds is not None else None
    signal = Signal(fact.status, at, stale_at, fact.resolved, fact.labels, fact.detail)
    member = known or Member(Health.UNKNOWN, at)
    member = heard(member, fact.signal, signal, rule)
    return replace(group, members=dict(sorted({**group.members, fact.target: member}.items())))


def _route(group: Group, fact: Route, now: datetime) -> Group:
    at = min(fact.observed_at, now)
    known = group.route
    if known is not None and at < known.observed_at:
        return group
    backends = tuple((backend.service, backend.weight) for backend in fact.backends)
    route = RouteState(
        backends=backends,
        observed_at=at,
        exists=fact.exists,
        problem=fact.problem,
        primary=fact.annotations.get(PRIMARY_ANNOTATION),
        healthy=_healthy(fact, known),
    )
    moved = known is not None and known.backends != backends
    return replace(
        group,
        route=route,
        asked=None if moved else group.asked,
        generation=max(group.generation, _written_generation(group, fact)),
    )


def _healthy(fact: Route, known: RouteState | None) -> Mapping[str, int]:
    """The weights from before the first failover: by annotation, else as first seen."""
    first = {backend.service: backend.weight for backend in fact.backends}
    seen = known.healthy if known is not None and known.healthy else first
    text = fact.annotations.get(HEALTHY_ANNOTATION)
    if text is not None:
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if isinstance(value, dict) and all(type(weight) is int and weight >= 0 for weight in value.values()):
            # Two rules of one HTTPRoute share the annotation: it may not know our services yet.
            return {**seen, **value}
    return seen


def _written_generation(group: Group, fact: Route) -> int:
    """The generation that stands on the object, so that a wiped bus does not start again below it."""
    rule, _, rest = fact.annotations.get(DECISION_ANNOTATION, "").partition("/")
    _, _, generation = rest.rpartition("/")
    return int(generation) if rule == group.rule and generation.isdecimal() and len(generation) < 18 else 0


def _command(group: Group, fact: Pause | Resume) -> Group:
    if group.commanded_at is not None and fact.observed_at < group.commanded_at:
        return group  # somebody has said otherwise since
    paused = None
    if isinstance(fact, Pause):
        paused = group.paused or Paused(fact.by, fact.reason, fact.observed_at)
    return replace(group, paused=paused, commanded_at=fact.observed_at)


def _outcome(group: Group, fact: Outcome, now: datetime) -> Group:
    owed = next((owed for owed in group.owed if owed.action.id == fact.action), None)
    if owed is None:
        return group  # of an action that is no longer asked for
    rest = tuple(other for other in group.owed if other is not owed)
    if fact.status == "Done":
        return _done(replace(group, owed=rest), owed, fact, now)
    if fact.status == "Refused" or not owed.wanted:
        return replace(group, owed=rest)
    wait = min(RETRY_FIRST * 2 ** min(owed.tries - 1, 10), RETRY_MAX)
    failed = f"{fact.reason or 'Failed'}: {fact.detail}".rstrip(": ")
    return replace(group, owed=(*rest, replace(owed, retry_at=now + wait, tries=owed.tries + 1, failed=failed)))


def _done(group: Group, owed: Owed, fact: Outcome, now: datetime) -> Group:
    """The world is as asked: take it as seen, until a newer look at it says otherwise."""
    if not isinstance(owed.action, SetWeights) or group.route is None:
        return group
    weights = owed.action.weights
    backends = tuple((service, weights.get(service, weight)) for service, weight in group.route.backends)
    at = max(min(fact.observed_at, now), group.route.observed_at)
    step_at = at if group.step is not None else None
    return replace(group, route=replace(group.route, backends=backends, observed_at=at), step_at=step_at)
