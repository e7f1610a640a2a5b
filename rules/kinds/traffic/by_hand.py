"""Traffic in people's hands: moved away and brought back by a command, and weights that another writer has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from bus.messages import FailbackTraffic, FailoverTraffic, ReleaseTraffic, SetWeights, TrafficCommand
from rules.core.group import with_state
from rules.core.reasons import Because, Held
from rules.core.values import replace
from rules.kinds.traffic.backend_backoff import weights_of as current_weights
from rules.kinds.traffic.backends import BackendView, detail_of, everything, serving, shares_of
from rules.kinds.traffic.failback_policy import OnDrift
from rules.kinds.traffic.model import TrafficFailover
from rules.kinds.traffic.state import Drift, FailoverState, Override, RefusedCommand, TrafficGroup
from rules.kinds.traffic.wanted_weights import DesiredWeights

REFUSAL_SHOWN = timedelta(minutes=5)
"""Time for which the group shows a refused command as its hold."""


def follow(group: TrafficGroup, fact: TrafficCommand, now: datetime) -> TrafficGroup:
    """Fold a command in: the newest one counts, and one that comes twice changes nothing."""
    state = group.state.failover or FailoverState()
    at = min(fact.observed_at, now)
    if state.commanded_at is not None and at <= state.commanded_at:
        return group
    state = replace(state, commanded_at=at, refused=None)
    if isinstance(fact, ReleaseTraffic):
        return with_state(group, failover=replace(state, override=None, drift=None))
    if group.paused is not None:
        return _refused(group, state, f"{fact.who} asked for it: {group.paused.words}", now)
    until = at + timedelta(seconds=fact.for_seconds) if fact.for_seconds is not None else None
    home = isinstance(fact, FailbackTraffic)
    to = fact.to if isinstance(fact, FailoverTraffic) else ()
    override = Override(fact.who, fact.reason, at, until, home, to, fact.force)
    return with_state(group, failover=replace(state, override=override, drift=None, trial=None))


def _refused(group: TrafficGroup, state: FailoverState, detail: str, now: datetime) -> TrafficGroup:
    return with_state(group, failover=replace(state, refused=RefusedCommand(detail, now)))


def advance(
    rule: TrafficFailover, group: TrafficGroup, primary: BackendView, secondaries: Sequence[BackendView], now: datetime
) -> TrafficGroup:
    """An override ends in time; a new one is turned into weights, or refused."""
    state = group.state.failover
    if state is None:
        return group
    if state.refused is not None and now >= state.refused.at + REFUSAL_SHOWN:
        group = with_state(group, failover=(state := replace(state, refused=None)))
    override = state.override
    if override is None:
        return group
    if override.until is not None and now >= override.until:
        return with_state(group, failover=replace(state, override=None))
    if override.weights is None:
        weights, problem = _asked(rule, override, primary, secondaries)
        if weights is None:
            return _refused(group, replace(state, override=None), f"{override.by} asked for it: {problem}", now)
        flaps = {name: flap for name, flap in state.flaps.items() if not (override.home and name == primary.service)}
        override = replace(override, weights=weights)
        return with_state(group, failover=replace(state, override=override, flaps=flaps), step=None, step_at=None)
    weights = _without_bad(rule, override.weights, _named(override, primary), primary, secondaries)
    if weights == override.weights:
        return group
    return with_state(group, failover=replace(state, override=replace(override, weights=weights)))


def _asked(
    rule: TrafficFailover, override: Override, primary: BackendView, secondaries: Sequence[BackendView]
) -> tuple[Mapping[str, int] | None, str]:
    """Give the weights that a command comes to, or why it cannot be followed."""
    everyone = [primary, *secondaries]
    if override.home:
        chosen = [primary]
    elif override.to:
        if unknown := [name for name in override.to if name not in {backend.service for backend in everyone}]:
            return None, f"{unknown[0]} is none of the backends {', '.join(b.service for b in everyone)}"
        chosen = [backend for backend in everyone if backend.service in override.to]
    else:
        chosen = serving(secondaries) or [backend for backend in secondaries if backend.healthy_now]
        if not chosen:
            return None, f"no secondary is ready: {', '.join(map(detail_of, secondaries)) or 'there are none'}"
    bad = [backend for backend in chosen if not backend.healthy_now]
    if bad and not override.forced:
        return None, f"{detail_of(bad[0])}; traffic goes to what is not Healthy only with force"
    if chosen == [primary]:
        return everything(rule, primary, secondaries), ""
    return _all_of(everyone, shares_of(rule, chosen)), ""


def _all_of(everyone: Sequence[BackendView], shares: Mapping[str, int]) -> dict[str, int]:
    return {backend.service: shares.get(backend.service, 0) for backend in everyone}


def _named(override: Override, primary: BackendView) -> Sequence[str]:
    """The services that were named without proof: they are not left for being bad."""
    if not override.forced:
        return ()
    return (primary.service,) if override.home else override.to


def _without_bad(
    rule: TrafficFailover, weights: Mapping[str, int], named: Sequence[str], primary: BackendView,
    secondaries: Sequence[BackendView],
) -> Mapping[str, int]:  # fmt: skip
    """Give the weights without a backend that is settled as bad while another one is Healthy."""
    everyone = [primary, *secondaries]
    bad = {
        backend.service for backend in everyone
        if weights.get(backend.service, 0) and backend.settled is False and backend.service not in named
    }  # fmt: skip
    good = [one for one in everyone if one.service not in bad and one.settled is True and one.healthy_now]
    if not bad or not good:
        return weights
    rest = {service: 0 if service in bad else weight for service, weight in weights.items()}
    if any(rest.values()):
        return rest
    if primary in good:
        return everything(rule, primary, secondaries)
    lowest = min(backend.tier for backend in good)
    return _all_of(everyone, shares_of(rule, [backend for backend in good if backend.tier == lowest]))


def drifted(rule: TrafficFailover, group: TrafficGroup, before: Mapping[str, int], at: datetime) -> TrafficGroup:
    """Take note of weights that were changed, and not by us."""
    now = current_weights(group)
    asked = [entry.action.weights for entry in group.outbox if isinstance(entry.action, SetWeights)]
    state = group.state.failover or FailoverState()
    if rule.on_drift is not OnDrift.HOLD or now == before or now in asked or state.override is not None:
        return group
    if group.state.route is not None and group.state.route.lost is not None:  # forgotten by its balancer
        return group
    drift = state.drift or Drift(at, dict(before))
    put_back = now == drift.before
    return with_state(group, failover=replace(state, drift=None if put_back else drift))


def desired(
    rule: TrafficFailover, group: TrafficGroup, primary: BackendView, secondaries: Sequence[BackendView]
) -> DesiredWeights | None:
    """Weights that a person's override asks for; None: no override."""
    state = group.state.failover
    if state is None:
        return None
    if (override := state.override) is not None and override.weights is not None:
        until = f"until {override.until.isoformat()}" if override.until is not None else "until it is released"
        words = f"by {override.by} {until}: {override.reason}"
        settled = group.state.route is not None and group.state.route.written == override.weights
        because = Because.DRIFT if settled else Because.BY_HAND
        return DesiredWeights(
            weights=override.weights,
            because=because,
            detail=words,
            held=(Held.OVERRIDDEN, words),
            requeue_at=override.until,
        )
    if state.drift is not None:
        return _left(rule, group, state.drift, primary, secondaries)
    return None


def _left(
    rule: TrafficFailover, group: TrafficGroup, drift: Drift, primary: BackendView, secondaries: Sequence[BackendView]
) -> DesiredWeights:
    now = current_weights(group)
    text = ", ".join(f"{service}={weight}" for service, weight in now.items())
    held = (Held.DRIFTED_BY_HAND, f"{text} since {drift.since.isoformat()}; `reactor traffic release` ends it")
    weights = _without_bad(rule, now, (), primary, secondaries)
    if weights == now:
        return DesiredWeights(held=held)
    left = [backend for backend in [primary, *secondaries] if now.get(backend.service) and not weights[backend.service]]
    because = Because.PRIMARY_UNHEALTHY if primary in left else Because.SECONDARIES_CHANGED
    return DesiredWeights(weights=weights, because=because, detail=detail_of(left[0]), held=held)


def refused_command(group: TrafficGroup) -> tuple[Held, str] | None:
    """Reason and detail of the refused command; None: none was refused."""
    refused = group.state.failover.refused if group.state.failover is not None else None
    return (Held.CHANGE_REFUSED, refused.detail) if refused is not None else None
