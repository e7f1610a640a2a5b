"""A return in steps: which of them is due, and the weights of a percent."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rules.kinds.traffic import failback as traffic_failback
from rules.kinds.traffic.apportion import apportion
from rules.kinds.traffic.backends import BackendView, serving, shares_of
from rules.kinds.traffic.model import TrafficFailover
from rules.kinds.traffic.state import TrafficGroup


def due_step(
    rule: TrafficFailover, group: TrafficGroup, primary: BackendView, secondaries: Sequence[BackendView], now: datetime
) -> tuple[int | None, datetime | None]:
    """Give the step of a gradual return that is due, and when the next one is; None: everything, at once."""
    if group.state.step is None:
        first = _first_step(rule, group, primary)
        return (first, None) if first is not None and serving(secondaries) else (None, None)
    if group.state.step >= len(rule.steps) or not serving(secondaries):
        return None, None
    if group.state.step_at is None or not primary.healthy_now:
        return group.state.step, None  # not carried out yet, or no longer a moment to give it more
    next_at = group.state.step_at + rule.window(rule.steps[group.state.step].pause_seconds)
    if now < next_at:
        return group.state.step, next_at
    return (group.state.step + 1, None) if group.state.step + 1 < len(rule.steps) else (None, None)


def _first_step(rule: TrafficFailover, group: TrafficGroup, primary: BackendView) -> int | None:
    """With what a gradual return begins: after a trial, with the first step that is not below its percent."""
    trial = group.state.failover.trial if group.state.failover is not None else None
    least = traffic_failback.trial_of(rule).percent if trial is not None and trial.passed else 0
    if primary.weight and not least:
        return None
    return next((number for number, step in enumerate(rule.steps) if step.percent >= least), None)


def at_percent(
    rule: TrafficFailover, percent: int, primary: BackendView, secondaries: Sequence[BackendView]
) -> dict[str, int]:
    """Give the primary this percent, and divide the rest among the secondaries that serve."""
    serve = serving(secondaries)
    shares = shares_of(rule, serve)
    parts = apportion(100 - percent, [shares[backend.service] for backend in serve])
    rest = {backend.service: part for backend, part in zip(serve, parts, strict=True)}
    return {primary.service: percent} | {backend.service: rest.get(backend.service, 0) for backend in secondaries}
