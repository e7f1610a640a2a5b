"""What `reactor status` shows of each group: for scripts with keys that stay, for people as a table."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from reactor.cli.shared.printing import duration
from reactor.runtime.visible import visible
from rules.core.group import Group
from rules.core.reasons import SENTENCES, Held
from rules.core.remedies import REMEDIES
from rules.kinds.traffic.desire import desire as traffic_desire
from rules.rulefile.model import Rule, TrafficFailover
from rules.summary import is_failed_over, standing_weights, summary, wanted_weights

Rules = Mapping[str, Rule]


def entry(group: Group, rules: Rules, now: datetime) -> dict[str, Any]:
    """One group, for scripts. What cannot be known is null, what cannot apply too; times are RFC 3339."""
    stands, rule = summary(group), rules.get(group.rule)
    weights = dict(standing_weights(group)) if group.route is not None else None
    return {
        "rule": group.rule, "object": group.object, "mode": group.mode.value if group.mode is not None else None,
        "state": stands.state.value, "since": _time(stands.since),
        "secondsLeft": _left(stands.ends_at, now), "failedOver": is_failed_over(group, rule),
        "weights": weights, "wantedWeights": _wanted(group, rule, now) if weights is not None else None,
        "hold": _hold(group), "pause": _pause(group), "actions": [entry.action.id for entry in group.outbox],
        "detail": stands.detail,
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
    """What is asked for; else what the rule wants now, as the rule files here say; else what stands."""
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


def row(group: Group, now: datetime) -> dict[str, str]:
    """One group as a line of the table."""
    stands = summary(group)
    left = ""
    if stands.ends_at is not None:
        seconds = max((stands.ends_at - now).total_seconds(), 0)
        left = f"{seconds:.1f}s" if seconds < 60 else duration(seconds)
    weights = " ".join(f"{service}={weight}" for service, weight in (group.route.backends if group.route else ()))
    return {
        "RULE": group.rule, "OBJECT": group.object, "STATE": stands.state.value, "LEFT": left,
        "MODE": group.mode.value if group.mode is not None else "", "WEIGHTS": weights,
        "DETAIL": visible(stands.detail),
    }  # fmt: skip


def table(groups: Sequence[Group], now: datetime, width: int | None = None) -> list[str]:
    """Give the lines of the table. `width`: none is longer; where a line would be, each group has several."""
    return laid_out([row(group, now) for group in groups], width) or ["no rule has anything yet"]


def laid_out(rows: Sequence[Mapping[str, str]], width: int | None) -> list[str]:
    """Give one line for each row, or several where one would be longer than `width`. Keys as `row` has them."""
    if not rows:
        return []
    widths = {key: max(len(key), *(len(line[key]) for line in rows)) for key in rows[0]}
    lines = [
        "  ".join(text.ljust(widths[key]) for key, text in line.items()).rstrip()
        for line in [{key: key for key in rows[0]}, *rows]
    ]
    if width is None or all(len(line) <= width for line in lines):
        return lines
    return [line for one in rows for line in _stacked(one, width)]


def _stacked(one: Mapping[str, str], width: int) -> list[str]:
    """One group on lines of its own: what it stands at first, what it is about below."""
    left = f", {one['LEFT']} left" if one["LEFT"] else ""
    lines = [f"{one['RULE']}  {one['STATE']}{left}  {one['MODE']}".rstrip()]
    lines += [f"  {one[key]}" for key in ("OBJECT", "WEIGHTS", "DETAIL") if one[key]]
    return [part for line in lines for part in textwrap.wrap(
        line.strip(), width, subsequent_indent="    ", break_on_hyphens=False,
        initial_indent="  " if line.startswith("  ") else "",
    )]  # fmt: skip
