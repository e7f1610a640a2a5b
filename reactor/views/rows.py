"""One group and one action as the API gives them: plain values with keys that stay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from bus.messages import DecisionRecord, Mode, Outcome
from reactor.views.destination import destination
from reactor.views.group_view import RulesByName, entry
from reactor.views.hand_rows import by_hand
from reactor.views.pending import request_of
from rules.catalog import file_kind_of
from rules.core.group import Group
from rules.core.member import Member
from rules.core.reasons import sentence
from rules.engine.observe import NON_FAILURES
from rules.kinds.traffic.backend_backoff import target_of
from rules.kinds.traffic.model import TrafficFailover
from rules.kinds.traffic.route_fleet import of_object
from rules.kinds.zone.state import ZoneState
from rules.rulefile.model import Rule
from rules.summary import GroupStatus, route_of, standing_weights, summary

Row = dict[str, Any]


def group_row(group: Group, rules: RulesByName, now: datetime) -> Row:
    """Give what `reactor status -o json` gives, with what a page needs to draw it: whole windows, and what is next."""
    rule = rules.get(group.rule)
    about = summary(group, rule)
    windows = [window for name, member in group.members.items() for window in _window(name, member, rule)]
    return {
        **entry(group, rules, now), "key": key_of(group), "kind": getattr(rule, "kind", None),
        "endsAt": stamp(about.ends_at), "windows": windows, "next": _next(group, rule, about.state, now),
        "primary": _primary(group, rule), "backends": _backends(group, rule), "request": request_of(group),
        "actedAt": stamp(group.acted_at), "zone": _isolated(group), **by_hand(group),
    }  # fmt: skip


def key_of(group: Group) -> str:
    """Give what names a group: its rule and its object."""
    return f"{group.rule}/{group.object}"


def stamp(moment: datetime | None) -> str | None:
    """Give a moment as RFC 3339."""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z") if moment is not None else None


def _window(target: str, member: Member, rule: Rule | None) -> Iterator[Row]:
    if (window := member.window) is None:
        return
    length = None
    if rule is not None:
        length = rule.recovery_seconds if window.healthy else rule.toleration_seconds
    yield {
        "target": target, "towards": "Healthy" if window.healthy else "Unhealthy", "since": stamp(window.since),
        "seconds": length, "waitingSince": stamp(window.waiting_since), "detail": member.detail,
    }  # fmt: skip


def _next(group: Group, rule: Rule | None, state: GroupStatus, now: datetime) -> str:
    if rule is None or state not in (GroupStatus.TOLERATING, GroupStatus.RECOVERING):
        return ""
    bad, good = file_kind_of(rule).phrases
    recovering = state is GroupStatus.RECOVERING
    open_ = {name: one.window for name, one in group.members.items() if one.window is not None}
    targets = ", ".join(name for name, window in open_.items() if window.healthy == recovering)
    words = f"{rule.name} {good if recovering else bad} {targets}"
    if not recovering and (services := destination(group, rule, now)):
        words += f" to {', '.join(services)}"
    return f"{words} (mode DryRun: recorded, nothing is written)" if group.mode is Mode.DRY_RUN else words


def _isolated(group: Group) -> str | None:
    """Give the zone that is out of service, or is on its way out or back."""
    isolation = group.state.isolation if isinstance(group.state, ZoneState) else None
    return isolation.zone if isolation is not None and not isolation.rehearsed else None


def _primary(group: Group, rule: Rule | None) -> str | None:
    route = route_of(group)
    if route is None:
        return None
    named = of_object(rule, group.object).primary if isinstance(rule, TrafficFailover) else None
    return named or route.primary or next(iter(standing_weights(group)), None)


def _backends(group: Group, rule: Rule | None) -> list[Row]:
    """Give each backend of a route with its weight and the target whose health decides about it."""
    filled = of_object(rule, group.object) if isinstance(rule, TrafficFailover) else None
    return [
        {"service": service, "weight": weight, "target": target_of(filled, group, service) if filled else None}
        for service, weight in standing_weights(group).items()
    ]


def action_rows(record: DecisionRecord, outcomes: Mapping[str, Outcome]) -> Iterator[Row]:
    """Give a row for each action that a decision asked for."""
    for action in record.actions:
        reason = str(action.get("because", ""))
        outcome = outcomes.get(str(action.get("id", "")))
        yield {
            "id": action.get("id"), "action": action.get("action"), "rule": record.rule,
            "object": action.get("object") or record.object, "mode": action.get("mode"),
            "at": stamp(record.decided_at), "because": reason, "means": sentence(reason),
            "detail": action.get("detail") or "", "evidence": list(record.because), "weights": action.get("weights"),
            "before": action.get("remember"),
            "windows": [*_ended(record)],
            "step": action.get("step"), "undo": bool(action.get("undo")), "zone": action.get("zone"),
            "by": [str(fact["by"]) for fact in record.facts if fact.get("by")],
            "outcome": outcome_row(outcome) if outcome is not None else None,
        }  # fmt: skip


def _ended(record: DecisionRecord) -> Iterator[Row]:
    """Give the windows that were open when it was decided."""
    for target, member in sorted(((record.before or {}).get("members") or {}).items()):
        if window := member.get("window"):
            yield {"target": target, "towards": "Healthy" if window["healthy"] else "Unhealthy",
                   "since": stamp(datetime.fromisoformat(window["since"]))}  # fmt: skip


def outcome_row(outcome: Outcome) -> Row:
    """Give what became of an action. `goesOn`: it is not over, and has not failed."""
    return {
        "status": outcome.status, "reason": outcome.reason, "detail": outcome.detail, "wrote": outcome.wrote,
        "at": stamp(outcome.observed_at), "goesOn": (outcome.reason or "") in NON_FAILURES,
    }  # fmt: skip
