"""Checker of TrafficFailover."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf

from bus.messages import Health, SetWeights
from rules.core.reasons import Because, Held
from rules.kinds.traffic.backends import service_target
from rules.kinds.traffic.failback_policy import FailbackMode
from rules.kinds.traffic.model import OnAllDown, TrafficFailover
from rules.kinds.traffic.route_fleet import of_object
from rules.kinds.traffic.route_interests import named_ref
from rules.rehearsal.world.checkers.promise_finding import GRACE, Promise, Question, Violation, kept, taken_for, was_bad
from rules.rehearsal.world.signal_timeline import GOOD
from rules.rehearsal.world.world_log import KnownRoute, WorldLog
from rules.rulefile.selectors import matches as selected


def weighted(question: Question) -> Iterator[Violation]:
    """A backend that loses all its traffic was bad for long enough; one that gets some is Healthy; one has it."""
    rule, action, told = question.rule, question.action, question.told
    if not isinstance(action, SetWeights):
        return
    known = told.routes.get(action.route.object)
    if known is None:
        yield Violation(Promise.BLIND, f"{action.object} was never listed")
        return
    weights, before = action.weights, known.weights
    may_be_zero = rule.on_all_down is OnAllDown.ZERO  # elsewhere it is refused
    yield Violation(
        Promise.LAST, "" if any(weights.values()) or may_be_zero else f"{action.object} gets no weight at all"
    )
    primary = primary_of(rule, known)
    if primary not in weights or action.because == Because.ALL_DOWN:
        return  # none is left to choose from; that some are bad is asked where they lose their traffic
    if action.because in (Because.TRIAL, Because.TRIAL_FAILED):
        return  # how it is without traffic is not known, and one bad observation is enough to take it back
    if action.because == Because.DRIFT and rule.backs_off:
        return  # the weights before are put back: the primary may be good, and still have to wait
    entries = of_object(rule, action.object).backends or ()
    targets, tiers = targets_of(rule, known), {one.service: one.tier for one in entries}
    getting = {service for service, weight in weights.items() if weight and not before.get(service)}
    lowest = min((tiers.get(service, 1) for service in weights if weights[service] and service != primary), default=1)
    for service, weight in weights.items():
        loses = before.get(service, 0) > 0 and weight == 0
        if loses and (service == primary or (not weights[primary] and tiers.get(service, 1) <= lowest)):
            yield was_bad(question, targets[service])
    for service in sorted(getting):
        yield _is_healthy(question, targets[service], first=service == primary)


def _is_healthy(question: Question, target: str, *, first: bool) -> Violation:
    """Check that a backend that gets traffic is Healthy; a primary also for the recovery time."""
    status = question.told.words.now(target, question.rule.signals, question.now, GOOD)
    if status is not Health.HEALTHY:
        return Violation(Promise.BLIND, f"{target} gets traffic and is {status or 'without an observation'}")
    ready = not first or not taken_for(question, target, GOOD).bad
    return kept(Promise.EARLY, ready, f"{target} gets traffic again before it was good for recoverySeconds")


def unmoved(told: WorldLog, rule: TrafficFailover, now: float) -> Iterator[Violation]:
    """Traffic is where it should be, or on its way there, or held back with a reason that holds."""
    ref = named_ref(rule)
    for object_, known in told.routes.items():
        mine = ref.object == object_ if ref is not None else _selected(rule, known)
        # What is listed again is looked at again: its windows begin with what is said from then on.
        fresh = now - known.since < rule.toleration_seconds + rule.recovery_seconds + GRACE
        if not mine or fresh or not known.route.exists or known.route.problem or known.at > now - GRACE:
            continue
        targets, primary = targets_of(rule, known), primary_of(rule, known)
        if primary not in targets or any(service not in known.weights for service in targets):
            continue
        flying = told.flying.get((rule.name, object_, ""))
        coming = flying.weights if isinstance(flying, SetWeights) else known.weights
        has, gets = known.weights.get(primary, 0) > 0, coming.get(primary, 0) > 0
        hold = told.holds.get((rule.name, object_))
        bad = told.words.surely(targets[primary], rule.signals, now, Health.UNHEALTHY)
        good = told.words.surely(targets[primary], rule.signals, now, Health.HEALTHY)
        ready = [
            service for service, target in targets.items() if service != primary
            and told.words.surely(target, rule.signals, now, Health.HEALTHY) > rule.recovery_seconds + GRACE
        ]  # fmt: skip
        if bad > rule.toleration_seconds + GRACE and ready:
            # That no backend can take it is no reason where one can.
            held = hold is not None and hold.reason != Held.NO_HEALTHY_SECONDARY
            what = f"{targets[primary]} has been bad for {bad:g} s, {ready[0]} is ready, and nothing was asked or held"
            yield Violation(Promise.LOST, what if has and gets and not held else "", object_)
        elif good > _longest(rule) + GRACE:
            what = f"{targets[primary]} has been good for {good:g} s and has no traffic"
            yield Violation(Promise.LOST, what if not has and not gets and hold is None else "", object_)


def _longest(rule: TrafficFailover) -> float:
    """Longest time in seconds for which a primary may be good without its traffic and without a reason: a trial waits
    before it."""
    way = rule.failback
    if way.mode is FailbackMode.MANUAL:
        return inf
    return rule.recovery_seconds + (2 * way.trial.seconds if way.mode is FailbackMode.TRIAL else 0)


def _selected(rule: TrafficFailover, known: KnownRoute) -> bool:
    route = known.route
    return (
        rule.route.selector is not None
        and (rule.route.cluster, rule.route.called) == (route.cluster, route.called)
        and rule.route.namespace in (None, route.namespace)
        and selected(rule.route.selector, route.labels)
    )


def primary_of(rule: TrafficFailover, known: KnownRoute) -> str:
    """Give the service that has the traffic while all is well."""
    rule = of_object(rule, known.route.object)
    named = rule.primary or known.route.annotations.get("failover.linkerd.io/primary-service")
    first = [one.service for one in rule.backends or ()] or [one.service for one in known.route.backends]
    return named or next(iter(first), "")


def targets_of(rule: TrafficFailover, known: KnownRoute) -> Mapping[str, str]:
    """Give what each service's health is told as."""
    rule = of_object(rule, known.route.object)
    named = {one.service: one.target for one in rule.backends or ()}
    services = list(named) or list(known.weights)
    return {service: named.get(service) or service_target(known.route, service) for service in services}
