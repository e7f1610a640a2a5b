"""May this zone be taken out of service? The guards in their order; the first that fails is the answer.

A refusal names the zones, the workloads and the numbers that it rests on. A manual start skips the toleration and
the second source only: a person knows what they see, not what the rest of the cluster can carry. `force` skips
what is a matter of comfort; never over what would leave nothing standing, nor over a view that may be blind.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from rules.core.reasons import Held
from rules.kinds.zone.question import AdmissionLimits, AdmissionRequest

FORCEABLE = frozenset({Held.COOLDOWN, Held.REMAINING_ZONES_UNHEALTHY, Held.INSUFFICIENT_CAPACITY})
"""Never two zones, never the last, never a service's only zone, never blind: those cannot be forced."""
SKIPPED_BY_HAND = frozenset({Held.TOLERATION_NOT_ELAPSED, Held.ONE_SOURCE_ONLY})
MAJORITY = 0.5
SOURCES_MIN = 2
"""Independent signals that an automatic start needs."""


@dataclass(frozen=True, slots=True)
class AdmissionResponse:
    """Admitted, admitted because there is nothing to do, or refused with a reason."""

    admit: bool
    reason: Held | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one guard, as the plan of a drill shows it."""

    reason: Held
    passed: bool
    detail: str


Failing = str | None
"""Reason why a guard refuses; None: it does not."""


def admit(request: AdmissionRequest, limits: AdmissionLimits) -> AdmissionResponse:
    """Give the answer to a request."""
    if request.paused:
        return AdmissionResponse(admit=False, reason=Held.PAUSED, detail=request.paused)
    if request.zone in request.isolated:
        return AdmissionResponse(admit=True, detail=f"{request.zone} is isolated already")
    for check in checks(request, limits):
        if not check.passed:
            return AdmissionResponse(admit=False, reason=check.reason, detail=check.detail)
    return AdmissionResponse(admit=True)


def checks(request: AdmissionRequest, limits: AdmissionLimits) -> list[Check]:
    """Give what every guard says, in their order. What is skipped says so."""
    found: list[tuple[Held, Failing, str]] = [
        (Held.PAUSED, request.paused or None, "the rule is not paused"),
        (Held.CONTROL_PLANE_UNREACHABLE, _reachable(request), "the cluster's API server answers"),
        (Held.ZONES_UNKNOWN, _heard(request), "the cluster's zones are known"),
        (Held.ZONE_NOT_FOUND, _known(request), f"nodes carry {request.zone}"),
        (Held.SINGLE_ZONE, _others(request), f"{len(_with_nodes(request))} zones have nodes"),
        (Held.MAX_ISOLATED_ZONES, _isolated(request), "no zone is isolated"),
        (Held.ANOTHER_IN_PROGRESS, _busy(request), "nothing else is in progress"),
        (Held.COOLDOWN, _cooling(request, limits), "the last isolation ended long enough ago, or there was none"),
        (Held.WIDESPREAD_FAILURE, _widespread(request, limits), "the other zones are well"),
        (Held.TOLERATION_NOT_ELAPSED, _too_early(request, limits), f"bad for {request.seconds_bad:g} s"),
        (Held.ONE_SOURCE_ONLY, _one_source(request), f"{', '.join(request.sources_bad)} say so"),
        (Held.SINGLE_ZONE_SERVICES, _only_here(request), "no service has all its copies in one zone"),
        (Held.QUORUM_AT_RISK, _quorum(request, limits), "a majority of the members stays"),
        (Held.REMAINING_ZONES_UNHEALTHY, _remaining(request, limits), "enough of the remaining nodes are healthy"),
        (Held.INSUFFICIENT_CAPACITY, _capacity(request, limits), "the remaining nodes carry what is needed"),
    ]
    return [_check(request, reason, failing, fine) for reason, failing, fine in found]


def _check(request: AdmissionRequest, reason: Held, failing: Failing, fine: str) -> Check:
    if failing is None:
        return Check(reason, passed=True, detail=fine)
    if request.by_hand and reason in SKIPPED_BY_HAND:
        return Check(reason, passed=True, detail=f"skipped, started by hand: {failing}")
    if request.force and reason in FORCEABLE:
        return Check(reason, passed=True, detail=f"forced: {failing}")
    return Check(reason, passed=False, detail=failing)


def _reachable(request: AdmissionRequest) -> Failing:
    return None if request.api_reachable else "the cluster's API server cannot be asked, so nothing is known of it"


def _heard(request: AdmissionRequest) -> Failing:
    return None if request.zones else "no inventory of the cluster's zones was heard: what the others carry is unknown"


def _known(request: AdmissionRequest) -> Failing:
    if request.zone in _with_nodes(request):
        return None
    known = ", ".join(_with_nodes(request)) or "none"
    return f"no node carries {request.zone}; zones with nodes: {known}"


def _with_nodes(request: AdmissionRequest) -> list[str]:
    return sorted(name for name, zone in request.zones.items() if zone.nodes)


def _elsewhere(request: AdmissionRequest) -> list[str]:
    return [name for name in _with_nodes(request) if name != request.zone]


def _others(request: AdmissionRequest) -> Failing:
    return None if _elsewhere(request) else f"{request.zone} is the only zone with nodes"


def _isolated(request: AdmissionRequest) -> Failing:
    others = sorted(set(request.isolated) - {request.zone})
    return f"{', '.join(others)} is isolated already, and one at a time is the limit" if others else None


def _busy(request: AdmissionRequest) -> Failing:
    if request.maintenance:
        return f"maintenance of the cluster is in progress: {request.maintenance}"
    if request.in_progress is not None and request.in_progress != request.zone:
        return f"an operation on {request.in_progress} is in progress"
    return None


def _cooling(request: AdmissionRequest, limits: AdmissionLimits) -> Failing:
    since = request.since_last_ended
    if since is None or since >= limits.cooldown:
        return None
    ago, quiet = since.total_seconds(), limits.cooldown.total_seconds()
    return f"the last isolation ended {ago:g} s ago; cooldownSeconds is {quiet:g}"


def _widespread(request: AdmissionRequest, limits: AdmissionLimits) -> Failing:
    if request.expired_elsewhere >= limits.expired_lease_fraction:
        return f"{100 * request.expired_elsewhere:g}% of {request.expired_what}"
    return "; ".join(request.bad_elsewhere) or None


def _too_early(request: AdmissionRequest, limits: AdmissionLimits) -> Failing:
    if request.seconds_bad >= limits.toleration.total_seconds():
        return None
    return f"bad for {request.seconds_bad:g} s; tolerationSeconds is {limits.toleration_seconds:g}"


def _one_source(request: AdmissionRequest) -> Failing:
    if len(request.sources_bad) >= SOURCES_MIN:
        return None
    said = f"{', '.join(request.sources_bad)} alone says so" if request.sources_bad else "no signal says so"
    new = [name for name in request.sources_new if name not in request.sources_bad]
    not_yet = f" ({', '.join(new)} not for tolerationSeconds yet)" if new and request.sources_bad else ""
    return f"{said}{not_yet}; {SOURCES_MIN} are needed"


def _only_here(request: AdmissionRequest) -> Failing:
    services = ", ".join(request.single_zone_services)
    return f"all copies in one zone: {services}" if services else None


def _quorum(request: AdmissionRequest, limits: AdmissionLimits) -> Failing:
    """A member that is not ready votes no more than one that is gone, but the majority is one of all."""
    ready = sum(request.quorum_members.values())
    members = max(ready, request.quorum_size or 0)
    left = ready - request.quorum_members.get(request.zone, 0)
    if not members or left > members * Fraction(str(limits.quorum_share)):
        return None
    down = f" ({members - ready} are not ready now)" if members > ready else ""
    more = f"more than {100 * limits.quorum_share:g}% have to stay"
    least = "no majority" if limits.quorum_share == MAJORITY else more
    return f"{left} of {members} members would be left{down}, {least}"


def _remaining(request: AdmissionRequest, limits: AdmissionLimits) -> Failing:
    nodes = sum(request.zones[name].nodes for name in _elsewhere(request))
    healthy = _healthy_elsewhere(request)
    if healthy >= nodes * Fraction(str(limits.healthy_share)):
        return None
    unwell = [name for name in _elsewhere(request) if request.zones[name].healthy < request.zones[name].nodes]
    return (
        f"{healthy} of {nodes} remaining nodes are healthy ({', '.join(unwell)} lack some); "
        f"{100 * limits.healthy_share:g}% are needed"
    )


def _healthy_elsewhere(request: AdmissionRequest) -> int:
    return sum(request.zones[name].healthy for name in _elsewhere(request))


def _capacity(request: AdmissionRequest, limits: AdmissionLimits) -> Failing:
    healthy = _healthy_elsewhere(request)
    if request.demand_nodes is None or healthy >= request.demand_nodes * Fraction(str(limits.demand_share)):
        return None
    share = "" if limits.demand_share == 1 else f"{100 * limits.demand_share:g}% of "
    where = ", ".join(_elsewhere(request))
    return f"{healthy} healthy nodes would be left in {where}; {share}{request.demand_nodes} needed"
