"""What becomes of desired weights: which are never carried out, and which step of a gradual return stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from bus.messages import Action, Mode
from rules.core.desired import DesiredState
from rules.core.group import Group, updated
from rules.core.reasons import Held
from rules.kinds.traffic.route_state import may_be_zero
from rules.rulefile.model import TrafficFailover
from rules.rulefile.route_kinds import described


def forbids(rule: TrafficFailover, group: Group, desired: DesiredState) -> tuple[Held, str] | None:
    """All weights zero, where the route does not allow it."""
    if (
        group.route is not None
        and not may_be_zero(rule.route.kind, group.route)
        and desired.weights is not None
        and not any(desired.weights.values())
    ):
        return Held.ALL_ZERO, f"{described(rule.route.called)} is never left with all weights zero"
    return None


def requested(
    rule: TrafficFailover, group: Group, desired: DesiredState, fresh: Sequence[Action], now: datetime
) -> Group:
    """A gradual return: which step is asked for, and since when it stands."""
    if desired.weights is None:
        return group
    if fresh:
        group = replace(group, route=replace(group.route, written=None)) if group.route is not None else group
        rehearsed = rule.mode is Mode.DRY_RUN and desired.step is not None
        return replace(group, step=desired.step, step_at=now if rehearsed else None)
    if desired.acts:
        return updated(group, step=desired.step)
    step_at = group.step_at if group.step == desired.step else None
    return updated(group, step=desired.step, step_at=(step_at or now) if desired.step is not None else None)
