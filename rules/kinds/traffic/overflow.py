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
from rules.core.group import with_state
from rules.core.member import Member
from rules.core.reasons import Because
from rules.core.values import replace
from rules.kinds.traffic import failback as traffic_failback
from rules.kinds.traffic.backends import BackendView, backends_of, primary_name
from rules.kinds.traffic.model import TrafficFailover
from rules.kinds.traffic.state import BackendStretch, FailoverState, RouteState, Spill, TrafficGroup
from rules.kinds.traffic.tier_loads import healthy_percent, in_percent, wanted, way_of
from rules.kinds.traffic.wanted_weights import DesiredWeights

FULL = 100.0
LEAST_POINTS = 5
"""A smaller change of any backend's percent writes nothing."""


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
    percents_now = in_percent({one.service: standing.get(one.service, 0) for one in backends})
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
    percents_now = in_percent({name: standing.get(name, 0) for name in percents})[primary.service]
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
    percents_now = in_percent({one.service: one.weight for one in backends})
    asked = in_percent(weights)
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
