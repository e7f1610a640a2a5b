"""Weights of routes, the plan of a person's command, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bus.messages import SetWeights, TrafficCommand
from rules.core.group import Group
from rules.engine.decide import decide
from rules.kinds.traffic.backend_backoff import weights_of
from rules.rulefile.model import Rule
from rules.summary import failover_of

REFUSED = "would be refused"


def in_words(weights: Mapping[str, int]) -> str:
    """Give weights in one line."""
    return " ".join(f"{service}={weight}" for service, weight in weights.items())


def state_of(group: Group, now: datetime) -> dict[str, Any]:
    """One row: where the traffic of a route is, and why."""
    state, since, detail = "Home", None, ""
    traffic = failover_of(group)
    away = [flap for flap in traffic.flaps.values() if flap.away]
    if (override := traffic.override) is not None:
        state, since = "Overridden", override.since
        detail = f"by {override.by}: {override.reason}"
    elif traffic.drift is not None:
        state, since = "DriftedByHand", traffic.drift.since
    elif traffic.trial is not None:
        state, since = "Trial", traffic.trial.began_at
    elif any(member.settled is False for member in group.members.values()) or away:
        bad = [target for target, member in group.members.items() if member.settled is False]
        state, detail = ("FailedOver" if away else "Bad"), ", ".join(bad)
        since = min((flap.left_at for flap in away), default=None)
    if group.held is not None:
        detail = f"{group.held.reason}: {group.held.detail}"
    until = traffic.override.until if traffic.override is not None else None
    return {
        "rule": group.rule, "object": group.object, "mode": group.mode.value if group.mode else "",
        "state": state, "since": since.isoformat(timespec="seconds") if since else None,
        "secondsLeft": round((until - now).total_seconds(), 1) if until is not None else None,
        "weights": dict(weights_of(group)), "detail": detail,
    }  # fmt: skip


def planned(rule: Rule | None, group: Group, command: TrafficCommand, now: datetime) -> str:
    """Say what a command would do to one route, as the rule would decide it now."""
    current = in_words(weights_of(group))
    if rule is None:
        return f"{group.object}: {current} → as the reactor's own rules say"
    decision = decide(rule, group, [command], now)
    state = failover_of(decision.group)
    if state.refused is not None:
        return f"{group.object}: {current}, {REFUSED}: {state.refused.detail}"
    wanted = next((in_words(one.weights) for one in decision.actions if isinstance(one, SetWeights)), None)
    if wanted is None and state.override is not None and state.override.weights is not None:
        wanted = in_words(state.override.weights)
    asks = f"; {decision.group.held.reason}" if wanted is None and decision.group.held is not None else ""
    return f"{group.object}: {current} → {wanted or 'nothing changes'}{asks}"


def followed(group: Group, at: datetime) -> str | None:
    """Say what became of a command of this moment on one route; None: no reactor has heard it."""
    state = failover_of(group)
    if state.commanded_at is None or state.commanded_at < at:
        return None
    if state.refused is not None:
        return f"refused: {state.refused.detail}"
    if state.override is not None:
        until = f"until {state.override.until.isoformat()}" if state.override.until else "until it is released"
        return f"followed, {until}"
    return "the rule decides"
