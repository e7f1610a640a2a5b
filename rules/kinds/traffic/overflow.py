"""Overflow between tiers, as Envoy's priority levels: a tier that is partly healthy keeps what it can bear.

Tiers in order, the primary a tier of its own before tier 1. A tier bears min(100, factor × healthy %) of the load; what
it does not bear spills to the next. Where all together bear less than 100, they share it as they bear (Envoy's
"normalized total health"). https://www.envoyproxy.io/docs/envoy/latest/intro/arch_overview/upstream/load_balancing/priority
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime

from bus.messages import Health, RouteRef, SetWeights
from rules.core.desired import Evidence
from rules.core.group import Member, Signal, with_state
from rules.core.reasons import Because
from rules.core.values import replace
from rules.kinds.traffic import failback as traffic_failback
from rules.kinds.traffic.apportion import apportion
from rules.kinds.traffic.backends import BackendView, backends_of, primary_name, serving, shares_of
from rules.kinds.traffic.failback import Way
from rules.kinds.traffic.failback_policy import FailbackMode
from rules.kinds.traffic.model import TrafficFailover
from rules.kinds.traffic.state import BackendStretch, FailoverState, RouteState, Spill, TrafficGroup
from rules.kinds.traffic.wanted_weights import DesiredWeights
from rules.rulefile.model import UnknownAs

FULL = 100.0
LEAST_POINTS = 5
"""A smaller change of any backend's percent writes nothing."""


def loads(health: Sequence[float], factor: int, first_at_most: int = 100) -> list[int] | None:
    """Give what each tier gets of 100, by its healthy percent; `factor` in percent.

    `first_at_most`: what the first tier does not get beyond, the others have among themselves. None: who could get it
    bears nothing.
    """
    bears = [min(100, int(factor * percent // 100)) for percent in health]
    if not any(bears):
        return None
    out = _shared(100, bears)
    if out[0] <= first_at_most:
        return out
    return [first_at_most, *_shared(100 - first_at_most, bears[1:])] if any(bears[1:]) else None


def _shared(load: int, bears: Sequence[int]) -> list[int]:
    if sum(bears) < load:
        return apportion(load, bears)
    left, out = load, []
    for most in bears:
        out.append(min(left, most))
        left -= out[-1]
    return out


def healthy_percent(rule: TrafficFailover, backend: BackendView) -> float | None:
    """Give how much of a backend is healthy by the worst of its signals: what each says, else 100 or 0 by its status.

    Who does not know now counts with what it said last, and by then the backend is no better than it was settled; one
    that does not serve and of which a signal does not know gets nothing. None: it was never known.
    """
    member = backend.member
    if backend.assumed is not None:
        return 100.0 if backend.assumed else 0.0
    if member is None:
        return None
    signals = [signal for name, signal in member.signals.items() if rule.signals is None or name in rule.signals]
    unseen = member.status is Health.UNKNOWN or any(
        signal.status is Health.UNKNOWN and not _is_replaced(rule, member, signal) for signal in signals
    )
    if not backend.weight and (backend.waits_until is not None or unseen):
        return None if member.settled is None else 0.0
    said = [_said(rule, member, signal) for signal in signals]
    if not said or any(signal.status is Health.UNKNOWN for signal in signals):
        said.append(None if member.settled is None else 100.0 * member.settled)
    return min((percent for percent in said if percent is not None), default=None)


def _said(rule: TrafficFailover, member: Member, signal: Signal) -> float | None:
    if signal.status is Health.UNKNOWN and rule.treat_unknown_as is UnknownAs.UNHEALTHY:
        return 0.0
    if _is_replaced(rule, member, signal):
        return _by_way_back(rule, member)
    if signal.healthy_percent is not None or signal.status is Health.UNKNOWN:
        return signal.healthy_percent
    return 100.0 if signal.status is Health.HEALTHY else 0.0


def way_of(
    rule: TrafficFailover, group: TrafficGroup, primary: BackendView, secondaries: Sequence[BackendView], now: datetime
) -> Way | None:
    """Give how far a primary that is away is on its way back by signals of its own; None: it is not, or has no such."""
    flap = traffic_failback.is_away(group, primary.service)
    if flap is None or rule.failback.signals is None:
        return None
    # A backend that no other waits for does not wait for having failed again.
    flap = flap if serving(secondaries) else replace(flap, failures=0)
    return traffic_failback.way_back(rule, primary, flap, now)


def _is_replaced(rule: TrafficFailover, member: Member, signal: Signal) -> bool:
    """True if the signal fell silent without traffic, and the signals of the way back have found the backend healthy
    since."""
    since = member.settled_at if member.settled else None
    if rule.failback.signals is None or since is None or signal.status is not Health.UNKNOWN:
        return False
    healthy = {name for name, one in member.signals.items() if one.status is Health.HEALTHY}
    return signal.observed_at < since and healthy.issuperset(rule.failback.signals)


def wanted(
    rule: TrafficFailover, primary: BackendView, secondaries: Sequence[BackendView], standing: Mapping[str, int],
    way: Way | None,
) -> dict[str, int] | None:  # fmt: skip
    """Give each backend's percent as the health is at this moment; None: none bears anything.

    `standing`: the weights now. The primary gets no more than its part of them by itself where it comes back by hand
    alone, or is away and `way` is not due yet; once that is due, its signals say how much of the primary is healthy.
    """
    if rule.overflow is None:
        return None
    tiers = [[primary], *([one for one in secondaries if one.tier == tier] for tier in _tiers(secondaries))]
    health = {one.service: healthy_percent(rule, one) or 0.0 for tier in tiers for one in tier}
    waits = rule.failback.mode is FailbackMode.MANUAL or (way is not None and not way.due)
    if way is not None and way.due:
        health[primary.service] = _by_way_back(rule, primary.member)
    most = int(_in_percent({one: standing.get(one, 0) for one in health})[primary.service]) if waits else 100
    shared = loads([_of_tier(tier, health) for tier in tiers], rule.overflow.overprovisioning_factor, most)
    if shared is None:
        return None
    out = dict.fromkeys(health, 0)
    for tier, load in zip(tiers, shared, strict=True):
        bearing = [one for one in tier if health[one.service]]
        parts = apportion(load, [*shares_of(rule, bearing).values()])
        out |= {one.service: part for one, part in zip(bearing, parts, strict=True)}
    return out


def _by_way_back(rule: TrafficFailover, member: Member | None) -> float:
    """Healthy percent of a backend by the signals of the way back, where the others are silent without traffic."""
    signals = member.signals if member is not None else {}
    percents = [signals[name].healthy_percent for name in rule.failback.signals or () if name in signals]
    return min((percent for percent in percents if percent is not None), default=100.0)


def _tiers(secondaries: Sequence[BackendView]) -> list[int]:
    return sorted({one.tier for one in secondaries})


def _of_tier(tier: Sequence[BackendView], health: Mapping[str, float]) -> float:
    shares = [one.share or 1 for one in tier]
    return sum(health[one.service] * share for one, share in zip(tier, shares, strict=True)) / sum(shares)


def _in_percent(weights: Mapping[str, int]) -> dict[str, float]:
    whole = sum(weights.values())
    return {service: 100 * weight / whole if whole else 0.0 for service, weight in weights.items()}


def base(group: TrafficGroup, route: RouteState) -> Mapping[str, int]:
    """Give the weights that a change is measured against: those asked for, else our last, else the current ones."""
    for entry in group.outbox:
        if isinstance(entry.action, SetWeights) and entry.wanted:
            return entry.action.weights
    if group.state.asked is not None:
        return group.state.asked
    return route.written if route.written is not None else dict(route.backends)


def watched(rule: TrafficFailover, group: TrafficGroup, ref: RouteRef, now: datetime) -> TrafficGroup:
    """Remember since when the health calls for other weights: a change that is over sooner writes nothing."""
    route = group.state.route
    if route is None or not route.exists or route.problem:
        return group
    backends = backends_of(rule, group, route, ref, now)
    if not backends or {one.service for one in backends} - {*dict(route.backends)}:
        return group
    name = primary_name(rule, route, [one.service for one in backends])
    primary = next((one for one in backends if one.service == name), None)
    if primary is None:
        return group
    standing = base(group, route)
    secondaries = [one for one in backends if one is not primary]
    percents = wanted(rule, primary, secondaries, standing, way_of(rule, group, primary, secondaries, now))
    state = group.state.failover or FailoverState()
    unwell = {one.service for one in backends if healthy_percent(rule, one) != FULL}
    spill = _spill(state.spill, name, percents, standing, backends, unwell, now)
    return group if spill == state.spill else with_state(group, failover=replace(state, spill=spill))


def _spill(
    before: Spill | None, primary: str, percents: Mapping[str, int] | None, standing: Mapping[str, int],
    backends: Sequence[BackendView], unwell: Collection[str], now: datetime,
) -> Spill | None:  # fmt: skip
    if percents is None:
        return None
    percents_now = _in_percent({one.service: standing.get(one.service, 0) for one in backends})
    much = any(abs(percents[name] - percents_now[name]) >= LEAST_POINTS for name in percents)
    dead = any(one.settled is False and percents_now[one.service] and not percents[one.service] for one in backends)
    if not much and not dead:
        return None
    rising = percents[primary] > percents_now[primary]
    losing = [one for one in backends if percents[one.service] < percents_now[one.service] and one.service in unwell]
    causes = losing or [one for one in backends if percents[one.service] > percents_now[one.service]]
    if before is None or before.rising is not rising:
        return Spill(now, rising, _stretches({}, causes))
    return _unbroken(before, causes)


def _stretches(before: Mapping[str, BackendStretch], causes: Sequence[BackendView]) -> Mapping[str, BackendStretch]:
    """Since when these are as they are, by service; while one is Unknown, how it was before."""
    members = {one.service: one.member for one in causes if one.member is not None}
    known = {name: one for name, one in members.items() if one.status is not Health.UNKNOWN}
    return {**before, **{name: BackendStretch(one.status, _since(one)) for name, one in known.items()}}


def _since(member: Member) -> datetime:
    """By its window, where it has one: that follows which of its signals have seen it so, one after the other."""
    window, healthy = member.window, member.status is Health.HEALTHY
    return window.since if window is not None and window.healthy is healthy else member.since


def _unbroken(before: Spill, causes: Sequence[BackendView]) -> Spill:
    """Restart the spill's time where no look shows that its causes have lasted without a break."""
    after = _stretches(before.stretches, causes)
    known = [(before.stretches.get(one.service), after.get(one.service)) for one in causes]
    begun = [earlier.restarted_at(later) if earlier is not None else None for earlier, later in known]
    anew = [at for at in begun if at is not None]
    since = max(before.since, min(anew)) if anew and len(anew) == len(begun) else before.since
    return before if (since, after) == (before.since, before.stretches) else Spill(since, before.rising, after)


def due_at(rule: TrafficFailover, spill: Spill) -> datetime:
    """Time at which the change has lasted for long enough: traffic returns to the primary only after its
    recovery, too."""
    toleration, recovery = rule.window(rule.toleration_seconds), rule.window(rule.recovery_seconds)
    return spill.since + (max(toleration, recovery) if spill.rising else toleration)


def desired(
    rule: TrafficFailover, group: TrafficGroup, primary: BackendView, secondaries: Sequence[BackendView], now: datetime
) -> DesiredWeights | None:
    """Give the weights by what each tier bears; None: no tier bears anything."""
    route = group.state.route
    if route is None:
        return None
    standing = base(group, route)
    way = way_of(rule, group, primary, secondaries, now)
    percents = wanted(rule, primary, secondaries, standing, way)
    if percents is None:
        return None
    percents_now = _in_percent({name: standing.get(name, 0) for name in percents})[primary.service]
    because = _because(percents[primary.service], percents_now)
    spill = group.state.failover.spill if group.state.failover is not None else None
    held = way.held if way is not None else None
    due = due_at(rule, spill) if spill is not None else None
    if due is not None and (now >= due or (way is not None and way.due)):  # it has waited on its way back
        detail = ", ".join(_health_of(rule, one) for one in (primary, *secondaries))
        return DesiredWeights(weights=percents, because=because, detail=detail, held=held)
    # What is asked for, or was written and is no more, is kept up until the change has lasted for long enough.
    ours = standing != dict(route.backends) and standing.keys() >= percents.keys()
    weights = {name: standing[name] for name in percents} if ours else None
    moments = [moment for moment in (due, way.since if way is not None and not way.due else None) if moment is not None]
    return DesiredWeights(weights=weights, because=because, held=held, requeue_at=min(moments, default=None))


def _because(percent: int, percents_now: float) -> str:
    """By what becomes of the primary."""
    if percent == percents_now:
        return Because.SECONDARIES_CHANGED
    return Because.PRIMARY_HEALTHY if percent > percents_now else Because.PRIMARY_UNHEALTHY


def _health_of(rule: TrafficFailover, backend: BackendView) -> str:
    percent = healthy_percent(rule, backend)
    return (
        f"{backend.service}: without an observation" if percent is None else f"{backend.service}: {percent:g} % healthy"
    )


def evidence(
    rule: TrafficFailover, group: TrafficGroup, backends: Sequence[BackendView], weights: Mapping[str, int], home: str,
    now: datetime,
) -> Iterator[Evidence]:  # fmt: skip
    """Evidence for each backend whose share changes: its health once the change has lasted for long enough.

    `home`: the primary. Where it returns by signals of its own, these have to be seen once its return is due.
    """
    spill = group.state.failover.spill if group.state.failover is not None else None
    if spill is None or group.state.route is None:
        return
    primary = next((one for one in backends if one.service == home), None)
    others = [one for one in backends if one is not primary]
    way = way_of(rule, group, primary, others, now) if primary is not None else None
    due = way.since if way is not None and way.due and way.since is not None else due_at(rule, spill)
    percents_now = _in_percent({one.service: one.weight for one in backends})
    asked = _in_percent(weights)
    for backend in backends:
        member = backend.member
        if member is None or backend.assumed is not None or asked.get(backend.service) == percents_now[backend.service]:
            continue
        if backend is primary and way is not None and way.due:
            yield from traffic_failback.needs(rule, backend.target, member, due)
        elif member.status is not Health.UNKNOWN:
            healthy = member.status is Health.HEALTHY
            yield Evidence(backend.target, healthy=healthy, since=max(due, _tolerated_until(rule, member)))


def _tolerated_until(rule: TrafficFailover, member: Member) -> datetime:
    """End of the toleration of a backend that turned bad while another change was waited for: it has its whole
    toleration."""
    window = member.window
    if window is None or window.healthy or member.status is Health.HEALTHY:
        return member.since
    return max(member.since, window.since + rule.window(rule.toleration_seconds))
