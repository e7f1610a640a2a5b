"""An isolation whose record was lost with the store of the bus: taken up again by what its nodes say.

Only a group that has never seen the end of an isolation does so: a late inventory shows no zone as isolated that has
just been opened. What the rule itself has isolated begins as Pending: all of it may be in force, and nothing of it is
sure. So it goes on only where the guards would let it start, and comes back when the zone is proven healthy. What a
person has isolated is complete, and waits for a person. Where its nodes were being let go, or it was a drill, it is on
its way back.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from bus.messages import Mode
from rules.core.reasons import Because
from rules.core.values import replace
from rules.kinds.zone.machine import ISOLATED
from rules.kinds.zone.model import StepName, ZoneIsolation
from rules.kinds.zone.plan import in_order, mode_of
from rules.kinds.zone.record import FIRST_LOOK, place_of, zone_seen
from rules.kinds.zone.seen_zones import lost_zones
from rules.kinds.zone.state import Isolation, ZoneMarks, ZoneState
from rules.kinds.zone.zone_commands import over

CARRIED_OUT = (Mode.ENFORCE, Mode.APPROVE)


def taken_up(rule: ZoneIsolation, state: ZoneState, now: datetime) -> ZoneState:
    """Give the state with the isolation that was lost, if there is one, as of the newest inventory."""
    if rule.mode not in CARRIED_OUT or state.seen is None or not state.seen.api_reachable:
        return state
    isolation = state.isolation
    if isolation is not None and _is_unused(isolation, now) and isolation.zone in state.seen.zones:
        state = _as_nodes_say_now(state, isolation)
    if state.isolation is not None and not over(rule, state.isolation):
        return state
    lost = next(iter(lost_zones(rule, state).items()), None)
    if lost is None:
        return state
    return replace(state, isolation=_record(rule, state, *lost, now), refused=None)


def _is_unused(isolation: Isolation, now: datetime) -> bool:
    """True while nothing was done for one that is taken for a person's: an executor may still have been opening it."""
    return bool(isolation.found) and place_of(isolation) == ISOLATED and now < isolation.since + FIRST_LOOK


def _as_nodes_say_now(state: ZoneState, isolation: Isolation) -> ZoneState:
    seen = zone_seen(state, isolation.zone)
    marks = seen.marks if seen is not None else None
    return state if marks is not None and not marks.released else replace(state, isolation=None)


def _record(rule: ZoneIsolation, state: ZoneState, zone: str, marks: ZoneMarks, now: datetime) -> Isolation:
    mode, known = mode_of(zone_seen(state, zone), now), rule.zone(zone)
    steps = in_order((step.value for step in rule.steps), mode)
    place, because = _place(marks)
    complete = place["status"] == "Done"
    found = _in_words(rule, zone, marks)
    return Isolation(
        zone=zone, **place, because=because, began_at=now, since=now, by=marks.by, reason=found if marks.by else "",
        practice=marks.practice, mode=mode, steps=steps, done=steps if complete else (),
        touched=steps if StepName.FENCE in steps else (StepName.FENCE.value, *steps),
        look_at=now + FIRST_LOOK if complete else None,
        zone_id=(known.id if known else None) or "", targets=known.targets if known else (), found=found,
    )  # fmt: skip


def _place(marks: ZoneMarks) -> tuple[dict[Literal["phase", "status"], Any], Because]:
    because = Because.PRACTICE if marks.practice else Because.COMMANDED if marks.by else Because.ZONE_UNHEALTHY
    if marks.practice or marks.released:
        return {"phase": "Failback", "status": "Pending"}, because
    return {"phase": "Failover", "status": "Done" if marks.by else "Pending"}, because


def _in_words(rule: ZoneIsolation, zone: str, marks: ZoneMarks) -> str:
    who = "a drill" if marks.practice else marks.by or f"rule {rule.name}"
    count = f"{marks.nodes} nodes of {zone} say" if marks.nodes > 1 else f"1 node of {zone} says"
    back = f", and {marks.released} were let go" if marks.released else ""
    return f"its record was lost: {count} that {who} has isolated it{back}"
