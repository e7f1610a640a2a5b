"""The state of a group, in a few words that scripts and metrics may rely on: `reactor status` and the gauges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from bus.messages import Mode, SetWeights
from rules.core.group import Group
from rules.core.member import Member
from rules.core.reasons import Held
from rules.engine.deadlines import window_end
from rules.kinds.cluster_taint.state import TaintState
from rules.kinds.traffic.model import TrafficFailover
from rules.kinds.traffic.route_fleet import of_object
from rules.kinds.traffic.state import FailoverState, RouteState, TrafficState
from rules.kinds.workload.state import WorkloadState
from rules.kinds.zone.state import Isolation, ZoneState
from rules.rulefile.model import Rule


class GroupStatus(StrEnum):
    """In which state a group is: exactly one."""

    WATCHING = "Watching"
    """Known, and as it should be; or nothing was observed yet."""
    TOLERATING = "Tolerating"
    """A target is bad, and its toleration is not over."""
    RECOVERING = "Recovering"
    """A target is good again, and its recovery is not over."""
    ACTING = "Acting"
    """An action is asked for, and its outcome is not known."""
    ACTED = "Acted"
    """A target counts as bad, or a zone is isolated, and what had to be done is done."""
    HELD = "Held"
    """Something may have to be done and is not: the hold says why."""
    PAUSED = "Paused"
    """A person has paused the rule, and it wants nothing yet."""


TIMED = frozenset({
    Held.AWAITING_APPROVAL, Held.APPROVAL_EXPIRED, Held.REJECTED, Held.COOLDOWN, Held.IN_BLOCKED_WINDOW,
    Held.BACKING_OFF,
})  # fmt: skip
"""Holds that end, or change, at a moment that is known: the group's next look."""


@dataclass(frozen=True, slots=True)
class Summary:
    """One group."""

    state: GroupStatus
    since: datetime | None
    """Since when; None: nothing has happened yet."""
    ends_at: datetime | None
    """Time at which it changes without a new fact; None: not known."""
    detail: str


def summary(group: Group, rule: Rule | None = None) -> Summary:
    """Give the state of a group. `rule`: as the rule files here say; without it, when a window ends is a guess."""
    state, since, detail = _state(group)
    return Summary(state, since, _ends_at(group, state, rule), detail)


def state_of(group: Group) -> GroupStatus:
    """The state alone: metrics ask for it of all groups every few seconds."""
    if group.held is not None:
        return GroupStatus.HELD
    if group.paused is not None:
        return GroupStatus.PAUSED
    if group.outbox:
        return GroupStatus.ACTING
    windows = [member.window.healthy for member in group.members.values() if member.window is not None]
    if windows:
        return GroupStatus.RECOVERING if all(windows) else GroupStatus.TOLERATING
    if _isolation(group) is not None or any(member.settled is False for member in group.members.values()):
        return GroupStatus.ACTED
    return GroupStatus.WATCHING


def _isolation(group: Group) -> Isolation | None:
    return group.state.isolation if isinstance(group.state, ZoneState) else None


def _state(group: Group) -> tuple[GroupStatus, datetime | None, str]:
    state = state_of(group)
    if state is GroupStatus.HELD and group.held is not None:
        return state, group.held.since, f"{group.held.reason}: {group.held.detail}"
    if state is GroupStatus.PAUSED and group.paused is not None:
        return state, group.paused.since, f"by {group.paused.by}: {group.paused.reason}"
    if state is GroupStatus.ACTING:
        first = group.outbox[0]
        return state, first.action.decided_at, first.failed or first.action.id
    if state in (GroupStatus.TOLERATING, GroupStatus.RECOVERING):
        open_ = {name: member for name, member in group.members.items() if member.window is not None}
        since = min(member.window.since for member in open_.values() if member.window is not None)
        return state, since, ", ".join(f"{name}: {_status(member)}" for name, member in open_.items())
    if (isolation := _isolation(group)) is not None:
        return state, isolation.since, f"zone {isolation.zone}: {isolation.phase} {isolation.status}"
    bad = {name: member for name, member in group.members.items() if member.settled is False}
    if bad:
        return state, min(member.settled_at or member.since for member in bad.values()), ", ".join(bad)
    return state, max((member.settled_at or member.since for member in group.members.values()), default=None), ""


def _status(member: Member) -> str:
    """The status, and why its window began later than that."""
    return f"{member.status} ({member.restart.words})" if member.restart is not None else member.status


def _ends_at(group: Group, state: GroupStatus, rule: Rule | None) -> datetime | None:
    if group.paused is not None:
        return group.paused.until  # no window of a paused rule leads to anything before
    override = failover_of(group).override
    if group.held is not None and group.held.reason == Held.OVERRIDDEN and override is not None:
        return override.until
    if rule is not None and state in (GroupStatus.TOLERATING, GroupStatus.RECOVERING):
        # Not the next look: a signal that gets stale before is said again until then.
        ends = (window_end(member, rule) for member in group.members.values())
        return min((end for end in ends if end is not None), default=None)
    timed = group.held is not None and group.held.reason in TIMED
    windows = any(member.window is not None for member in group.members.values())
    return group.next_deadline if timed or (windows and state is not GroupStatus.ACTING) else None


def wanted_weights(group: Group) -> Mapping[str, int] | None:
    """The weights that are asked for, as far as the group itself knows; None: the current ones, or not decided."""
    flying = (entry.action.weights for entry in group.outbox if entry.wanted and isinstance(entry.action, SetWeights))
    override = failover_of(group).override
    asked = group.state.asked if isinstance(group.state, TrafficState) else None
    return next(flying, None) or (override.weights if override is not None else None) or asked


def route_of(group: Group) -> RouteState | None:
    """The route that the group is about; None: it is about none, or has not been listed yet."""
    return group.state.route if isinstance(group.state, TrafficState) else None


def failover_of(group: Group) -> FailoverState:
    """Progress of the traffic failover of a group's route; empty for other groups."""
    state = group.state
    return (state.failover if isinstance(state, TrafficState) else None) or FailoverState()


def standing_weights(group: Group) -> Mapping[str, int]:
    """The weights of the route, also in a dry run; a service that is given twice has its larger one."""
    out: dict[str, int] = {}
    route = route_of(group)
    for service, weight in route.backends if route is not None else ():
        out[service] = max(weight, out.get(service, 0))
    return out


MOVING = (TrafficState, WorkloadState, TaintState, ZoneState)
"""States of the kinds that act: each has a case in `is_failed_over`."""


def is_failed_over(group: Group, rule: Rule | None = None) -> bool:
    """True if traffic, a workload or a zone has been moved away and is not back; never in a dry run.

    A route: its primary has no weight, another has. A workload is leaving a cluster, or has; a cluster has taints of
    the rule; a zone is isolated, or on its way. `rule`: None where it is not known, so that the route has to say which
    its primary is.
    """
    if group.mode is Mode.DRY_RUN or not isinstance(group.state, MOVING):
        return False
    match group.state:
        case TrafficState(route=route):
            weights = standing_weights(group)
            named = _primary(rule, group) or (route.primary if route is not None else None) or next(iter(weights), "")
            return not weights.get(named) and any(weights.values())
        case WorkloadState(moves=moves, left=left):
            return bool(moves or left)
        case TaintState(taints=taints):
            return bool(taints)
        case ZoneState(isolation=isolation):
            return isolation is not None and bool(isolation.touched)


def _primary(rule: Rule | None, group: Group) -> str | None:
    """The primary that the rule names, or its first backend where it names none; None: it has no primary."""
    if not isinstance(rule, TrafficFailover):
        return None
    rule = of_object(rule, group.object)
    route = route_of(group)
    named = rule.primary or (route.primary if route is not None else None)
    return named or next((backend.service for backend in rule.backends or ()), None)
