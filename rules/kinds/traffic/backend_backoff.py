"""Backoff of backends: the wait doubles with each failure soon after a return, up to a maximum, and is forgotten in
time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache

from bus.messages import Health, RouteRef
from rules.core.group import with_state
from rules.core.member import Member
from rules.core.values import replace
from rules.kinds.traffic.failback_policy import FailbackMode
from rules.kinds.traffic.model import TrafficFailover
from rules.kinds.traffic.route_state import route_ref
from rules.kinds.traffic.state import BackendStretch, FailoverState, Flap, TrafficGroup
from rules.limits.backoff import BASE_SECONDS, failures_with, longer, times
from rules.rulefile.targets import encode_segment


def wait_of(rule: TrafficFailover, failures: int) -> timedelta:
    """Give how long who has failed again so often has to be good, or not bad, before it gets traffic."""
    base = rule.recovery_seconds
    if rule.failback.mode is FailbackMode.TRIAL:
        base = max(base, rule.failback.trial.seconds)
    if not failures or not rule.backs_off:
        return rule.window(base)
    return rule.window(longer(rule.failback.backoff, base or BASE_SECONDS, failures, least=rule.recovery_seconds))


def waits_until(rule: TrafficFailover, flap: Flap, member: Member | None) -> datetime | None:
    """Give until when a backend has to stay away although it has recovered; None: as long as its window says."""
    if not flap.away or not flap.failures or member is None or member.settled is not True or member.settled_at is None:
        return None
    return member.settled_at + wait_of(rule, flap.failures) - rule.window(rule.recovery_seconds)


def why(service: str, flap: Flap, until: datetime) -> str:
    """Say until when it waits, and why."""
    return f"until {until.isoformat()}: {service} has failed again {times(flap.failures)} after it had got traffic back"


def failed_again(rule: TrafficFailover, flap: Flap | None, at: datetime) -> int:
    """Number of failures in a row soon after a return, with the one at `at`."""
    return failures_with(rule.failback.backoff, flap.failures, flap.returned_at, at) if flap is not None else 0


def stretches_of(rule: TrafficFailover, member: Member) -> Mapping[str, BackendStretch]:
    """Status of each signal and the time since which its source has seen it, by signal; of a silent one, its last
    status.

    Only where a trial waits for all signals: those of the way back, and windows, have their own times.
    """
    if rule.failback.mode is not FailbackMode.TRIAL or rule.failback.signals is not None:
        return {}
    return {
        name: BackendStretch(one.status_before or one.status, one.begun)
        for name, one in member.signals.items()
        if one.proven_until is not None
    }


def moved(
    rule: TrafficFailover, before: TrafficGroup, group: TrafficGroup, primary: str, at: datetime, *, own: bool
) -> TrafficGroup:
    """Take note of who was left for being bad, and who has got traffic back by our own hand (`own`)."""
    state = group.state.failover or FailoverState()
    flaps, was = dict(state.flaps), weights_of(before)
    tried = rule.failback.mode is FailbackMode.TRIAL and state.override is None
    back = []
    for service, weight in weights_of(group).items():
        flap = flaps.get(service)
        if was.get(service) and not weight and not (flap is not None and flap.away):
            member = group.members.get(target_of(rule, group, service))
            if member is not None and member.settled is False:
                good_since = None if member.status is Health.UNHEALTHY else at
                failures, seen = failed_again(rule, flap, at), stretches_of(rule, member)
                flaps[service] = Flap(True, at, failures, good_since=good_since, seen=seen)
        elif own and not was.get(service) and weight and flap is not None and flap.away:
            if service == primary and tried:
                continue  # a trial's percent is no return
            flaps[service] = replace(flap, away=False, returned_at=at)
            back += [service] if service == primary and rule.own_way_back else []
    if flaps == state.flaps:
        return group
    group = with_state(group, failover=replace(state, flaps=flaps))
    return trusted(group, target_of(rule, group, primary), at) if back else group


def left(group: TrafficGroup, service: str, at: datetime) -> TrafficGroup:
    """Take note that traffic has left a backend, by our hand or another's."""
    state = group.state.failover or FailoverState()
    return with_state(group, failover=replace(state, flaps={**state.flaps, service: Flap(True, at)}))


def trusted(group: TrafficGroup, target: str, at: datetime) -> TrafficGroup:
    """Take the backend as healthy: what it was found by counts more than the window of all signals."""
    member = group.members.get(target)
    if member is None or member.settled is True or member.status is Health.UNHEALTHY:
        return group
    member = replace(member, settled=True, settled_at=at, unproven=False, window=None)
    return replace(group, members={**group.members, target: member})


def weights_of(group: TrafficGroup) -> Mapping[str, int]:
    """The current weights, or in a dry run as they would. A service that is given twice has its larger one."""
    if group.state.asked is not None:
        return group.state.asked
    out: dict[str, int] = {}
    for service, weight in group.state.route.backends if group.state.route else ():
        out[service] = max(weight, out.get(service, 0))
    return out


def service_target(route: RouteRef, service: str) -> str:
    """`service/<cluster>/<namespace>/<service>`, for `namespace/service` too."""
    return _service_target(route.cluster, route.namespace, service)


@lru_cache(maxsize=65_536)
def _service_target(cluster: str, home: str, service: str) -> str:
    """Made once, as every decision asks for it."""
    namespace, _, name = service.rpartition("/")
    return "/".join(("service", encode_segment(cluster), namespace or home, encode_segment(name)))


def target_of(rule: TrafficFailover, group: TrafficGroup, service: str) -> str:
    """Give whose health speaks for a backend."""
    own = next((backend.target for backend in rule.backends or () if backend.service == service), None)
    return own or service_target(route_ref(rule, group.object), service)
