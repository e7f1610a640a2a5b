"""Zones, plans and what became of a command, in words and rows for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from bus.messages import Mode
from reactor.runtime.visible import visible
from rules.catalog import is_kept
from rules.core.group import Group, Holding
from rules.core.member import Member
from rules.core.reasons import Held
from rules.kinds.zone.machine import PENDING
from rules.kinds.zone.model import Zone, ZoneIsolation
from rules.kinds.zone.plan import IsolationPlan, Planned, mode_of, plan
from rules.kinds.zone.practice import next_run, turn_of
from rules.kinds.zone.progress import PENDING_MAX
from rules.kinds.zone.record import place_of
from rules.kinds.zone.request import request_for
from rules.kinds.zone.return_evidence import way_back
from rules.kinds.zone.state import Isolation, ZoneGroup, ZoneState


def group_of(groups: Iterable[Group], rule: ZoneIsolation) -> ZoneGroup:
    """The rule's group as it is stored; one that knows nothing where there is none yet."""
    mine = (group for group in groups if group.rule == rule.name and isinstance(group.state, ZoneState))
    return next(mine, Group(rule.name, rule.object, ZoneState()))


def planned(
    rule: ZoneIsolation,
    group: ZoneGroup,
    zone: str,
    now: datetime,
    *,
    force: bool = False,
    allowed: tuple[str, ...] = (),
) -> IsolationPlan:
    """Give the plan for a zone as if it were asked for by hand now, and what each guard says of it."""
    seen = group.state.seen
    mode = mode_of(seen.zones.get(zone) if seen is not None else None, now)
    request = request_for(rule, group, zone, now, by_hand=True, force=force, allowed=allowed)
    return replace(plan(rule, request, mode), way_back=way_back(rule, group, zone))


def in_words(rule: ZoneIsolation, shown: IsolationPlan) -> str:
    """The plan for people: guards first, then what is done, and how it is undone."""
    lines = [f"{rule.name}: isolate {shown.zone} of {rule.object} ({rule.carrier}, {shown.mode}, mode {rule.mode})"]
    if rule.mode in (Mode.DRY_RUN, Mode.OFF):
        lines.append(f"mode {rule.mode}: nothing of this is carried out")
    lines += ["guards:"]
    lines += [f"  {'passes' if check.passed else 'REFUSES'}  {check.reason}: {check.detail}" for check in shown.guards]
    for title, steps in (("steps:", shown.failover), ("and back:", shown.failback)):
        lines.append(title)
        lines += [f"  {'undo ' if one.undo else ''}{one.step} (within {one.timeout_seconds:g} s)" for one in steps]
    lines.append(f"comes back: {shown.way_back}")
    return "\n".join(map(visible, lines))


def as_data(shown: IsolationPlan) -> dict[str, object]:
    """Give a plan as plain values, for `-o json` and `-o yaml`."""

    def steps(of: Sequence[Planned]) -> list[dict[str, object]]:
        return [
            {"step": one.step, "undo": one.undo, "timeoutSeconds": one.timeout_seconds, "settings": one.settings}
            for one in of
        ]

    guards = [{"guard": str(one.reason), "passed": one.passed, "detail": one.detail} for one in shown.guards]
    return {
        "zone": shown.zone, "mode": shown.mode, "admitted": shown.admitted, "guards": guards,
        "failover": steps(shown.failover), "failback": steps(shown.failback),
        "comesBack": shown.way_back,
    }  # fmt: skip


def rows_of(rule: ZoneIsolation, group: ZoneGroup) -> list[dict[str, object]]:
    """Give one row for each zone of a rule: its health, and how far its isolation is."""
    state = group.state
    gone = state.isolation.zone if state.isolation is not None and rule.zone(state.isolation.zone) is None else None
    there = (*rule.zones, *([Zone(name=gone)] if gone is not None else []))
    return [_row(group, zone.name, zone.id, group.members.get(rule.target(zone.name))) for zone in there]


def _row(group: ZoneGroup, zone: str, id_: str | None, member: Member | None) -> dict[str, object]:
    state = group.state
    nodes = state.seen.zones.get(zone) if state.seen is not None else None
    mine = state.isolation if state.isolation is not None and state.isolation.zone == zone else None
    said = _said(mine) if mine is not None else ""
    held = group.held if group.held is not None and _is_about(group.held, zone, mine) else None
    return {
        "rule": group.rule, "zone": f"{group.object}/{zone}", "id": id_,
        "health": str(member.status) if member is not None else "no observation",
        "nodes": f"{nodes.healthy}/{nodes.nodes}" if nodes is not None else "",
        "phase": mine.phase if mine else "", "status": mine.status if mine else "",
        "done": list(mine.done) if mine else [], "since": mine.since.isoformat(timespec="seconds") if mine else "",
        "detail": said or (f"{held.reason}: {held.detail}" if held else ""),
    }  # fmt: skip


def drill_row(rule: ZoneIsolation, group: ZoneGroup, now: datetime) -> dict[str, object]:
    """Give the drills of a rule that has `practice`: schedule, next, running, and the result of the last one."""
    if rule.practice is None:
        raise ValueError(f"{rule.name} has no drills")
    state = group.state
    begin = next_run(rule.practice, now)
    running = state.isolation is not None and state.isolation.practice
    refused = state.refused if state.refused is not None and state.refused.reason == Held.PRACTICE_BLOCKED else None
    last = state.practised_at
    zone = turn_of(rule, rule.practice, begin) if begin is not None else ""
    away = state.isolation.zone if state.isolation is not None and running else ""
    ends = f"after {rule.practice.duration_seconds:g} s"
    return {
        "rule": rule.name, "schedule": f"{rule.practice.cron} {rule.practice.timezone}",
        "next": begin.isoformat(timespec="seconds") if begin is not None else "",
        "zone": zone, "running": away,
        "last": last.isoformat(timespec="seconds") if last is not None else "", "outcome": state.practice_outcome,
        "comesBack": way_back(rule, group, away or zone, ends) if away or zone else "",
        "detail": refused.detail if refused is not None else "",
    }  # fmt: skip


def stored_rows(groups: Iterable[Group], known: Iterable[ZoneIsolation]) -> list[dict[str, object]]:
    """Give one row for each zone of the rules that cannot be read: by what is stored of them."""
    names = {rule.name for rule in known}
    out: list[dict[str, object]] = []
    for group in groups:
        if group.rule in names or not isinstance(group.state, ZoneState):
            continue
        seen, isolation = group.state.seen, group.state.isolation
        mine = {isolation.zone} if isolation is not None else set()
        for zone in sorted({*(seen.zones if seen is not None else ()), *mine}):
            ends = f"/{group.object}/{zone}"
            member = next((one for target, one in group.members.items() if target.endswith(ends)), None)
            out.append(_row(group, zone, None, member))
    return out


def left_behind(groups: Iterable[Group], rules: Iterable[ZoneIsolation]) -> list[dict[str, object]]:
    """Give one row for each zone that is isolated by a rule that is in no file."""
    known = {(rule.name, rule.object) for rule in rules}
    out: list[dict[str, object]] = []
    for group in groups:
        if (group.rule, group.object) in known or not is_kept(group) or not isinstance(group.state, ZoneState):
            continue
        if (mine := group.state.isolation) is not None:
            name = group.rule
            detail = (
                f"isolated by {name}, which is in no rule file any more: reactor zone failback {name} brings it back"
            )
            out.append({
                "rule": group.rule, "zone": f"{group.object}/{mine.zone}", "id": mine.zone_id or None,
                "health": "", "nodes": "", "phase": mine.phase, "status": mine.status, "done": list(mine.done),
                "since": mine.since.isoformat(timespec="seconds"), "detail": detail,
            })  # fmt: skip
    return out


def _is_about(held: Holding, zone: str, mine: Isolation | None) -> bool:
    """True if a hold is this zone's: by name, or because all that the rule does is about this zone."""
    return held.about.endswith(f"/{zone}") if held.about is not None else mine is not None


def _said(isolation: Isolation) -> str:
    """Trouble of an isolation: why it has failed, else how far its step is."""
    if isolation.status == "Failed":
        return isolation.failure
    return isolation.trouble or isolation.failure


def effect(asked: Group, zone: str) -> Callable[[Sequence[Group], datetime], str | None]:
    """Function for the result of a command given at a moment, from the stored state of its rule."""

    def seen(groups: Sequence[Group], at: datetime) -> str | None:
        group = next((one for one in groups if (one.rule, one.object) == (asked.rule, asked.object)), asked)
        state = group.state
        if not isinstance(state, ZoneState) or state.commanded_at is None or state.commanded_at < at:
            return None
        if state.refused is not None and state.refused.at >= at:
            return f"refused: {state.refused.reason}: {state.refused.detail}"
        isolation = state.isolation
        if isolation is None:
            return f"{zone} is not isolated"
        waits = f"{group.held.reason}: {group.held.detail}" if group.held is not None else ""
        if waits and place_of(isolation) == PENDING:
            minutes = PENDING_MAX.total_seconds() / 60
            return f"refused for now: {waits} (asked again for {minutes:g} minutes; reactor zone abort takes it back)"
        if place_of(isolation) == PENDING:
            return f"Failover of {isolation.zone} begins"
        return f"{isolation.phase} of {isolation.zone} is {isolation.status}" + (f", held: {waits}" if waits else "")

    return seen
