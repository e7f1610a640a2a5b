"""Destination of the traffic when the windows that are open now have run out."""

from __future__ import annotations

from datetime import datetime

from bus.messages import Health
from rules.core.group import Group
from rules.core.member import Member
from rules.core.values import replace
from rules.kinds.traffic.desired_weights import desire
from rules.kinds.traffic.model import TrafficFailover
from rules.rulefile.model import Rule
from rules.summary import route_of


def destination(group: Group, rule: Rule | None, now: datetime) -> tuple[str, ...]:
    """Give the services that get traffic when each open toleration has ended as it looks now; none where it stays."""
    if not isinstance(rule, TrafficFailover) or route_of(group) is None:
        return ()
    members = {name: _bad(member) for name, member in group.members.items()}
    weights = desire(rule, replace(group, members=members), None, now).weights or {}
    return tuple(service for service, weight in weights.items() if weight > 0)


def _bad(member: Member) -> Member:
    window = member.window
    if window is None or window.healthy:
        return member
    return replace(member, status=Health.UNHEALTHY, settled=False, settled_at=window.since, window=None)
