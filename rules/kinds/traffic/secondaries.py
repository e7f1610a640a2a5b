"""Weights of the secondaries while the primary has no traffic, and the answer where none of them is healthy."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from bus.messages import Health
from rules.core.reasons import Because, Held
from rules.core.timers import first_of
from rules.core.values import replace
from rules.kinds.traffic import backend_backoff as traffic_backoff
from rules.kinds.traffic import failback as traffic_failback
from rules.kinds.traffic.backends import BackendView, detail_of, everything, serving, shares_of
from rules.kinds.traffic.model import OnAllDown, TrafficFailover
from rules.kinds.traffic.state import TrafficGroup
from rules.kinds.traffic.wanted_weights import NOTHING, DesiredWeights
from rules.rulefile.model import UnknownAs

NEVER = datetime.max.replace(tzinfo=UTC)


def secondaries_serve(
    rule: TrafficFailover, group: TrafficGroup, primary: BackendView, secondaries: Sequence[BackendView]
) -> DesiredWeights:
    """Those that serve share the weight by theirs; one that has failed again and again waits for its back-off."""
    desired = _shared(rule, primary, secondaries)
    waiting = [backend for backend in secondaries if backend.waits_until is not None and not backend.weight]
    if not waiting:
        return desired
    first = min(waiting, key=lambda backend: backend.waits_until or NEVER)
    flap = traffic_failback.is_away(group, first.service)
    why = traffic_backoff.why(first.service, flap, first.waits_until) if flap and first.waits_until else ""
    requeue_at = first_of(desired.requeue_at, first.waits_until)
    return replace(desired, held=desired.held or (Held.BACKING_OFF, why), requeue_at=requeue_at)


def _shared(rule: TrafficFailover, primary: BackendView, secondaries: Sequence[BackendView]) -> DesiredWeights:
    serve = serving(secondaries)
    if not _stays(primary, secondaries) and not any(backend.settled for backend in serve):
        # It may keep what it has though its health is not known yet, but nothing is moved to it alone.
        serve = serving([backend for backend in secondaries if backend.settled is not None])
    if not serve:
        # None has been good for long enough: one that is good again now is better than none.
        again = [backend for backend in secondaries if backend.healthy_now]
        lowest = min((backend.tier for backend in again), default=None)
        serve = [backend for backend in again if backend.tier == lowest]
    if not serve:
        return all_down(rule, primary, secondaries)
    shares = shares_of(rule, serve)
    weights = {primary.service: 0} | {backend.service: shares.get(backend.service, 0) for backend in secondaries}
    because = Because.PRIMARY_UNHEALTHY if primary.weight > 0 else Because.SECONDARIES_CHANGED
    # It was bad when it was last seen, and is Unknown now: until it is known, the rule cannot go back.
    held = (Held.TARGET_UNKNOWN, detail_of(primary)) if waits(rule, primary) else None
    return DesiredWeights(weights=weights, because=because, detail=detail_of(primary), held=held)


def _stays(primary: BackendView, secondaries: Sequence[BackendView]) -> bool:
    """True if the backends that serve keep their weights: the primary has none, and no serving secondary is settled as
    bad."""
    return primary.weight == 0 and all(backend.settled is not False for backend in secondaries if backend.weight > 0)


def all_down(rule: TrafficFailover, primary: BackendView, secondaries: Sequence[BackendView]) -> DesiredWeights:
    """No backend is good: what `onAllDown` says; nothing while it is not known of all that they are bad."""
    waiting = [backend for backend in secondaries if backend.settled is not False]
    if rule.on_all_down is OnAllDown.HOLD or waiting:
        detail = ", ".join(detail_of(backend) for backend in secondaries) or "there are no secondaries"
        return DesiredWeights(held=(Held.NO_HEALTHY_SECONDARY, detail))
    everyone = [primary, *secondaries]
    if rule.on_all_down is OnAllDown.PRIMARY:
        weights = everything(rule, primary, secondaries)
    elif rule.on_all_down is OnAllDown.SPREAD:
        weights = shares_of(rule, everyone)
    else:
        weights = {backend.service: 0 for backend in everyone}
    return DesiredWeights(weights=weights, because=Because.ALL_DOWN, detail=f"onAllDown: {rule.on_all_down}")


def unsure(rule: TrafficFailover, primary: BackendView) -> DesiredWeights:
    """The primary's health was never known for sure: no action, and a hold where it is Unknown."""
    return DesiredWeights(held=(Held.TARGET_UNKNOWN, detail_of(primary))) if waits(rule, primary) else NOTHING


def waits(rule: TrafficFailover, backend: BackendView) -> bool:
    """True if its health is Unknown, and the rule waits until it is known (`treatUnknownAs: Hold`)."""
    unknown = backend.member is not None and backend.member.status is Health.UNKNOWN
    return unknown and rule.treat_unknown_as is UnknownAs.HOLD
