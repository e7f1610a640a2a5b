"""One group as `reactor status -o json` and the API give it, with keys that stay."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rules.core.group import Group
from rules.core.reasons import SENTENCES, Held
from rules.core.remedies import REMEDIES
from rules.kinds.traffic.desired_weights import desire as traffic_desire
from rules.kinds.traffic.model import TrafficFailover
from rules.rulefile.model import Rule
from rules.summary import is_failed_over, route_of, standing_weights, summary, wanted_weights

RulesByName = Mapping[str, Rule]


def entry(group: Group, rules: RulesByName, now: datetime) -> dict[str, Any]:
    """One group, for scripts. What cannot be known is null, what cannot apply too; times are RFC 3339."""
    rule = rules.get(group.rule)
    summarized = summary(group, rule)
    weights = dict(standing_weights(group)) if route_of(group) is not None else None
    return {
        "rule": group.rule, "object": group.object, "mode": group.mode.value if group.mode is not None else None,
        "state": summarized.state.value, "since": _time(summarized.since),
        "secondsLeft": _left(summarized.ends_at, now), "failedOver": is_failed_over(group, rule),
        "weights": weights, "wantedWeights": _wanted(group, rule, now) if weights is not None else None,
        "hold": _hold(group), "pause": _pause(group), "actions": [entry.action.id for entry in group.outbox],
        "detail": summarized.detail,
        "targets": [
            {"target": name, "status": member.status.value, "since": _time(member.since), "healthy": member.settled}
            for name, member in group.members.items()
        ],
    }  # fmt: skip


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z") if moment is not None else None


def _left(until: datetime | None, now: datetime) -> float | None:
    return round(max((until - now).total_seconds(), 0.0), 1) if until is not None else None


def _wanted(group: Group, rule: Rule | None, now: datetime) -> dict[str, int] | None:
    """Weights that are asked for; else those that the rule wants now, by the rule files here; else the current
    weights."""
    wanted = wanted_weights(group)
    if wanted is None and isinstance(rule, TrafficFailover):
        wanted = traffic_desire(rule, group, None, now).weights
    return dict(standing_weights(group) if wanted is None else wanted)


def _hold(group: Group) -> dict[str, Any] | None:
    if group.held is None:
        return None
    reason = next((known for known in Held if known == group.held.reason), None)
    return {
        "reason": group.held.reason, "detail": group.held.detail, "since": _time(group.held.since),
        "about": group.held.about or group.object, "means": SENTENCES[reason] if reason is not None else "",
        "do": REMEDIES[reason] if reason is not None else "",
    }  # fmt: skip


def _pause(group: Group) -> dict[str, Any] | None:
    if group.paused is None:
        return None
    by, reason = group.paused.by, group.paused.reason
    return {"by": by, "reason": reason, "since": _time(group.paused.since), "until": _time(group.paused.until)}
