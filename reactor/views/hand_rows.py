"""Rows of the API for what people did to a group by hand: the override of a route, the isolation of a zone."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from reactor.views.traffic_plan import followed
from reactor.views.zone_words import effect
from rules.core.group import Group
from rules.kinds.zone.state import ZoneState
from rules.summary import failover_of, route_of


def by_hand(group: Group) -> dict[str, Any]:
    """Give `override`, `isolation`, and `command`: when the newest command was given, and what became of it."""
    if isinstance(group.state, ZoneState):
        return {"override": None, "isolation": _isolation(group.state), "command": _zone_command(group, group.state)}
    if route_of(group) is None:
        return {"override": None, "isolation": None, "command": None}
    state = failover_of(group)
    override, at = state.override, state.commanded_at
    return {
        "override": None if override is None else {
            "by": override.by, "reason": override.reason, "since": _time(override.since),
            "until": _time(override.until), "home": override.home,
        },
        "isolation": None,
        "command": None if at is None else {"at": _time(at), "answer": followed(group, at)},
    }  # fmt: skip


def _isolation(state: ZoneState) -> dict[str, Any] | None:
    if (one := state.isolation) is None:
        return None
    return {"zone": one.zone, "phase": one.phase, "status": one.status, "failure": one.failure,
            "since": _time(one.since)}  # fmt: skip


def _zone_command(group: Group, state: ZoneState) -> dict[str, Any] | None:
    if (at := state.commanded_at) is None:
        return None
    zone = state.isolation.zone if state.isolation is not None else "the zone"
    return {"at": _time(at), "answer": effect(group, zone)([group], at)}


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z") if moment is not None else None
