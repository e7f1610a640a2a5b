"""Acceptance of desired weights: those that are never carried out, and the finished steps of a gradual return."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from bus.messages import Action, Mode
from rules.core.desired import DesiredState
from rules.core.group import with_state
from rules.core.reasons import Held
from rules.core.values import replace
from rules.kinds.traffic.model import TrafficFailover
from rules.kinds.traffic.route_state import may_be_zero
from rules.kinds.traffic.state import TrafficGroup
from rules.kinds.traffic.wanted_weights import DesiredWeights
from rules.rulefile.route_kinds import described


def forbids(rule: TrafficFailover, group: TrafficGroup, desired: DesiredState) -> tuple[Held, str] | None:
    """All weights zero, where the route does not allow it."""
    if (
        group.state.route is not None
        and not may_be_zero(rule.route.kind, group.state.route)
        and isinstance(desired, DesiredWeights)
        and desired.weights is not None
        and not any(desired.weights.values())
    ):
        return Held.ALL_ZERO, f"{described(rule.route.called)} is never left with all weights zero"
    return None


def reschedules(before: TrafficGroup, after: TrafficGroup) -> bool:
    """A step of a gradual return is done, so only now is it known when the next one is due."""
    return before.state.step_at != after.state.step_at


def requested(
    rule: TrafficFailover, group: TrafficGroup, desired: DesiredState, fresh: Sequence[Action], now: datetime
) -> TrafficGroup:
    """A gradual return: which step is asked for, and since when it is done."""
    if not isinstance(desired, DesiredWeights) or desired.withheld or desired.weights is None:
        return group
    if fresh:
        group = (
            with_state(group, route=replace(group.state.route, written=None))
            if group.state.route is not None
            else group
        )
        rehearsed = rule.mode is Mode.DRY_RUN and desired.step is not None
        return with_state(group, step=desired.step, step_at=now if rehearsed else None)
    if desired.acts:
        return with_state(group, step=desired.step)
    step_at = group.state.step_at if group.state.step == desired.step else None
    return with_state(group, step=desired.step, step_at=(step_at or now) if desired.step is not None else None)
