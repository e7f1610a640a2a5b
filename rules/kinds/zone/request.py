"""Admission request from a group's state: may a zone be isolated, and may it return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from bus.messages import Health
from rules.core.member import Member
from rules.core.timers import runs
from rules.kinds.zone.admission import SOURCES_MIN
from rules.kinds.zone.model import ZoneIsolation
from rules.kinds.zone.question import AdmissionLimits, AdmissionRequest, Nodes, expired_share
from rules.kinds.zone.seen_zones import lost_zones
from rules.kinds.zone.state import Isolation, ZoneGroup, ZonesSeen, ZoneState
from rules.limits.backoff import BASE_SECONDS, longer, times
from rules.rulefile.model import UnknownAs


def limits_of(rule: ZoneIsolation) -> AdmissionLimits:
    """Give the rule's limits."""
    return AdmissionLimits(
        toleration=rule.window(rule.toleration_seconds), toleration_seconds=rule.toleration_seconds,
        cooldown=timedelta(seconds=rule.cooldown_seconds),
        expired_lease_fraction=rule.expired_lease_fraction, healthy_share=rule.healthy_share,
        demand_share=rule.demand_share, quorum_share=rule.quorum_share,
    )  # fmt: skip


def bad_zones(rule: ZoneIsolation, group: ZoneGroup) -> list[str]:
    """Give the zones that have been bad for tolerationSeconds and still are, the first to fail first."""
    found = [
        (member.since, zone.name)
        for zone in rule.zones
        if (member := group.members.get(rule.target(zone.name))) is not None
        and member.settled is False
        and is_bad(rule, member.status)
    ]
    return [name for _, name in sorted(found)]


def is_bad(rule: ZoneIsolation, status: Health) -> bool:
    """True if this status counts as bad for the rule."""
    return status is Health.UNHEALTHY or (status is Health.UNKNOWN and rule.treat_unknown_as is UnknownAs.UNHEALTHY)


def request_for(
    rule: ZoneIsolation, group: ZoneGroup, zone: str, now: datetime, *, by_hand: bool = False, force: bool = False,
    allowed: tuple[str, ...] = (),
) -> AdmissionRequest:  # fmt: skip
    """Give all that is known about taking this zone out of service."""
    state = group.state
    seen, isolation = state.seen, state.isolation
    member = group.members.get(rule.target(zone))
    seconds_bad = _seconds_bad(rule, member, now)
    agreed = now if seconds_bad >= _tolerated(rule) else None  # before that it is too early for all of them
    share, what = _expired(seen, zone)
    other = isolation is not None and isolation.zone != zone
    lost = tuple(name for name in lost_zones(rule, state) if name != zone)
    is_isolated = isolation is not None and (isolation.phase, isolation.status) == ("Failover", "Done")
    return AdmissionRequest(
        zone=zone,
        zones={name: Nodes(one.nodes, one.healthy) for name, one in seen.zones.items()} if seen else {},
        isolated=((isolation.zone,) if isolation is not None and is_isolated else ()) + lost,
        in_progress=isolation.zone if isolation is not None and other and not is_isolated else None,
        since_last_ended=now - state.ended_at if state.ended_at is not None else None,
        paused=group.paused.words if group.paused is not None else "",
        maintenance=seen.maintenance if seen else "", api_reachable=seen.api_reachable if seen else True,
        expired_elsewhere=share, expired_what=what, bad_elsewhere=_bad_elsewhere(rule, group, zone),
        seconds_bad=seconds_bad, sources_bad=_saying_bad(rule, state, zone, member, agreed),
        sources_new=_saying_bad(rule, state, zone, member, None),
        demand_nodes=seen.demand_nodes if seen else None, quorum_members=seen.quorum_members if seen else {},
        quorum_size=seen.quorum_size if seen else None,
        single_zone_services=_only_there(seen, zone, allowed), by_hand=by_hand, force=force,
    )  # fmt: skip


def _bad_elsewhere(rule: ZoneIsolation, group: ZoneGroup, zone: str) -> tuple[str, ...]:
    """Other zones that are bad, were bad and are not proven well, or Unknown by now.

    A zone of which nothing was ever heard is known by its nodes, in the inventory.
    """
    out = []
    for other in rule.zones:
        member = group.members.get(rule.target(other.name))
        if other.name == zone or member is None:
            continue
        if member.status is not Health.HEALTHY:
            out.append(f"{other.name} is {member.status} too")
        elif member.settled is False:
            out.append(f"{other.name} was bad and has not been healthy for recoverySeconds")
    return tuple(out)


def _expired(seen: ZonesSeen | None, zone: str) -> tuple[float, str]:
    """Give the share of expired leases elsewhere; where leases are not counted, of nodes that are not healthy."""
    if seen is None:
        return 0.0, ""
    others = {name: one for name, one in seen.zones.items() if name != zone}
    nodes = sum(one.nodes for one in others.values())
    if seen.leases_expired:
        expired = sum(seen.leases_expired.get(name, 0.0) * one.nodes for name, one in others.items())
        return expired_share(nodes, expired), "leases elsewhere have expired"
    unwell = sum(one.nodes - one.healthy for one in others.values())
    return expired_share(nodes, unwell), "nodes elsewhere are not healthy"


def _seconds_bad(rule: ZoneIsolation, member: Member | None, now: datetime) -> float:
    """Since the zone counts as bad. One that has been considered unhealthy has been so for its toleration, however
    often its window waited."""
    if member is None or not is_bad(rule, member.status):
        return 0.0
    since = member.window.since if member.window is not None and not member.window.healthy else member.since
    seconds = (now - since).total_seconds()
    return max(seconds, _tolerated(rule)) if member.settled is False else seconds


def _tolerated(rule: ZoneIsolation) -> float:
    return rule.window(rule.toleration_seconds).total_seconds()


def _saying_bad(
    rule: ZoneIsolation, state: ZoneState, zone: str, member: Member | None, now: datetime | None
) -> tuple[str, ...]:
    """The signals that have called the zone bad for tolerationSeconds, without a break; `now` None: that say so."""
    saying = (name for name, said in counting(rule.signals, member).items() if is_bad(rule, said))
    agreed = agreed_at(rule, state, zone)
    return tuple(name for name in saying if now is None or (name in agreed and agreed[name] <= now))


def agreed_at(rule: ZoneIsolation, state: ZoneState, zone: str) -> Mapping[str, datetime]:
    """Give when each signal that calls the zone bad has done so for tolerationSeconds."""
    later = rule.window(rule.toleration_seconds)
    clocks = state.bad.get(rule.target(zone), {})
    return {name: clock.since + later for name, clock in clocks.items() if runs(clock)}


def counting(names: tuple[str, ...] | None, member: Member | None) -> Mapping[str, Health]:
    """Health by signal, of the signals with these names; None: of all."""
    if member is None:
        return {}
    return {name: one.status for name, one in member.signals.items() if names is None or name in names}


def _only_there(seen: ZonesSeen | None, zone: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
    """Services that would go down with the zone, but for those that may. `zone:namespace/name` says which zone."""
    out = []
    for service in seen.single_zone_services if seen else ():
        where, _, name = service.rpartition(":")
        if where in ("", zone) and name not in allowed:
            out.append(name)
    return tuple(sorted(out))


@dataclass(frozen=True, slots=True)
class Recovery:
    """Answer to the question whether a zone is proven healthy."""

    proven: bool
    detail: str
    at: datetime | None = None
    """Time at which it will be proven, if nothing changes; None: not known."""
    since: datetime | None = None
    """Since when it is."""
    backs_off: bool = False
    """True if it has been healthy for recoverySeconds, and waits for its backoff after failures soon after
    its return."""


def recovery_of(rule: ZoneIsolation, group: ZoneGroup, isolation: Isolation, now: datetime) -> Recovery:
    """Say whether two signals have called the zone healthy for recoverySeconds, without a break and without dissent."""
    target = rule.target(isolation.zone)
    member = group.members.get(target)
    if member is None:
        return Recovery(proven=False, detail=f"{target}: no observation: only `reactor zone failback --force` opens it")
    least = 1 if isolation.back_by else SOURCES_MIN  # the person who asks for it back is the second witness
    if (dissent := dissent_on(rule, member, least)) is not None:
        return Recovery(proven=False, detail=f"{target}: {dissent}")
    since = member.since if rule.failback.signals is None else isolation.recovered_since
    healthy_at = (since or now) + rule.window(rule.recovery_seconds)
    due = healthy_at if isolation.back_by else (since or now) + wait_of(rule, isolation.failures)
    if now >= due:
        return Recovery(proven=True, detail=f"{target}: healthy since {(since or now).isoformat()}", since=due)
    if now >= healthy_at:
        again = f"{isolation.zone} has failed again {times(isolation.failures)} after its return"
        return Recovery(proven=False, detail=f"until {due.isoformat()}: {again}", at=due, backs_off=True)
    left = (healthy_at - now).total_seconds()
    return Recovery(proven=False, detail=f"{target}: healthy, {left:g} s of recoverySeconds are left", at=healthy_at)


def wait_of(rule: ZoneIsolation, failures: int) -> timedelta:
    """Time for which a zone with this number of failures has to be healthy before it returns by itself."""
    if not failures or not rule.backs_off:
        return rule.window(rule.recovery_seconds)
    seconds = rule.recovery_seconds
    return rule.window(longer(rule.failback.backoff, seconds or BASE_SECONDS, failures, least=seconds))


def dissent_on(rule: ZoneIsolation, member: Member, least: int = SOURCES_MIN) -> str | None:
    """Reason why the signals do not prove that a zone is healthy now; None: they do."""
    names = rule.failback.signals
    said = counting(names or rule.signals, member)
    if names is not None and (missing := [name for name in names if name not in said]):
        return f"{', '.join(missing)} without an observation"
    if other := [f"{name} says {status}" for name, status in said.items() if status is not Health.HEALTHY]:
        return ", ".join(other)
    if len(said) < least:
        who = f"{', '.join(said)} alone says" if said else "no signal says"
        return f"{who} that it is healthy; {least} {'is' if least == 1 else 'are'} needed"
    return None
