"""Evidence that weights need: a backend that is left for being bad is bad, and one that gets traffic is healthy."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from bus.messages import RouteRef
from rules.core.desired import Evidence
from rules.core.reasons import Because
from rules.kinds.traffic import failback as traffic_failback
from rules.kinds.traffic import overflow as traffic_overflow
from rules.kinds.traffic.backends import BackendView, backends_of, primary_name
from rules.kinds.traffic.model import TrafficFailover
from rules.kinds.traffic.state import Flap, TrafficGroup
from rules.kinds.traffic.wanted_weights import DesiredWeights

HOME = (Because.PRIMARY_HEALTHY, Because.RETURNING, Because.DRIFT)
"""Reasons that return traffic to a healthy primary: no guard stops that."""


def evidence(
    rule: TrafficFailover, group: TrafficGroup, desired: DesiredWeights, ref: RouteRef, now: datetime
) -> Iterator[Evidence]:
    """Evidence for desired weights: backends that are left are bad now, and those that get traffic are healthy now.

    Undoing another writer's change, and a person's command, need none: neither was decided by health. Nor does the end
    of a trial that has proven nothing. A return to the primary leaves the others for its sake, whatever their health.
    """
    if desired.because in (Because.DRIFT, Because.TRIAL_FAILED, Because.BY_HAND):
        return
    if desired.weights is None or group.state.route is None:
        return
    backends = backends_of(rule, group, group.state.route, ref, now)
    home = primary_name(rule, group.state.route, [backend.service for backend in backends])
    if rule.overflow is not None:
        yield from traffic_overflow.evidence(rule, group, backends, desired.weights, home, now)
        return
    flap = traffic_failback.is_away(group, home) if rule.own_way_back else None
    for backend in backends:
        member, wanted = backend.member, desired.weights.get(backend.service, 0)
        if member is None or (backend.assumed is not None and wanted):
            continue
        target = backend.target
        has = 0 if backend.taken and backend.service != home else backend.weight
        last = desired.because == Because.ALL_DOWN and not backend.healthy_now
        if flap is not None and backend.service == home and wanted > backend.weight and not last:
            yield from _of_way_back(rule, group, backend, flap, now)
        elif backend.weight > 0 and wanted == 0 and member.settled is False and desired.because not in HOME:
            yield Evidence(target, healthy=False, since=member.settled_at or member.since)
        elif wanted > has == 0 and backend.given and not backend.healthy_now:
            continue  # it may have traffic by now, and keeps it for its toleration
        elif wanted > has == 0 and (backend.healthy_now or desired.because != Because.ALL_DOWN):
            # After a time without a look at it, what is left has to be seen as late as the first look.
            # What replaces a primary that is bad need not have been good for the recovery, what is returned to need.
            settled_at = member.settled_at if backend.service == home else None
            yield Evidence(target, healthy=True, since=max(settled_at or member.since, member.since))
        elif wanted > backend.weight and group.state.step is not None and group.state.step_at is not None:
            # The next step of a gradual return, or all of it: due when the pause of the current one is over.
            over = desired.step != group.state.step and group.state.step < len(rule.steps)
            pause = rule.window(rule.steps[group.state.step].pause_seconds if over else 0)
            yield Evidence(target, healthy=True, since=group.state.step_at + pause)


def _of_way_back(
    rule: TrafficFailover, group: TrafficGroup, primary: BackendView, flap: Flap, now: datetime
) -> Iterator[Evidence]:
    """After a trial the signals that it was made for have to be Healthy at its end or later."""
    trial = group.state.failover.trial if group.state.failover is not None else None
    if trial is not None:
        yield Evidence(primary.target, healthy=True, since=traffic_failback.ends(rule, trial))
        return
    if primary.member is None:
        return
    way = traffic_failback.way_back(rule, primary, flap, now)
    yield from traffic_failback.needs(rule, primary.target, primary.member, way.since or now)
