"""Zones, as tests say them: the cluster `prod` with zones a, b and c; time as seconds from zero."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import TypeAdapter

from bus.messages import (
    Approve,
    FailbackZone,
    Health,
    Hold,
    IsolateZone,
    MarkedNodes,
    Observation,
    Outcome,
    Pause,
    Resume,
    RetryZone,
    ZoneInventory,
    Zones,
    ZoneStep,
)
from rules.core.group import Group
from rules.engine.group_codec import dump_group, load_group
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.kinds.zone.model import ZoneIsolation
from rules.rehearsal.simulation import Emitted, Simulator, play
from rules.rehearsal.simulation import at as at_
from tests.unit.rules.builders import Event

ZONES = ("a", "b", "c")
STEPS = ("Fence", "ShiftTraffic", "Evacuate", "CutNetwork", "Verify")
UNDONE = ("CutNetwork", "ShiftTraffic", "Fence")
FORWARD = [f"+{step}" for step in STEPS]
BACK = [f"-{step}" for step in UNDONE]


def zone_rule(**keys: Any) -> ZoneIsolation:
    """A ZoneIsolation of `prod` with short windows: 10 s of toleration, 20 s of recovery."""
    given = {
        "name": "zones", "kind": "ZoneIsolation", "mode": "Enforce", "cluster": "prod",
        "zones": [{"name": name, "id": f"euc1-az{index}"} for index, name in enumerate(ZONES, start=1)],
        "tolerationSeconds": 10, "recoverySeconds": 20,
    } | keys  # fmt: skip
    return TypeAdapter(ZoneIsolation).validate_json(TypeAdapter(dict[str, Any]).dump_json(given), by_name=False)


def seen(zone: str, status: str, *, at: float, signals: Iterable[str] = ("prom", "nodes"), **more: Any) -> list[Event]:
    """Observations of a zone by these signals."""
    target = zone if "/" in zone else f"zone/prod/{zone}"
    return [
        (at, Observation(target=target, status=Health(status), signal=name, observed_at=at_(at), **more))
        for name in signals
    ]


def healthy(*zones: str, at: float, **more: Any) -> list[Event]:
    return [event for zone in zones for event in seen(zone, "Healthy", at=at, **more)]


def unhealthy(*zones: str, at: float, **more: Any) -> list[Event]:
    return [event for zone in zones for event in seen(zone, "Unhealthy", at=at, **more)]


def unknown(*zones: str, at: float, **more: Any) -> list[Event]:
    return [event for zone in zones for event in seen(zone, "Unknown", at=at, **more)]


def marks(rule: str = "zones", nodes: int = 5, **more: Any) -> MarkedNodes:
    """Isolation in which the nodes of a zone say they are."""
    return MarkedNodes(rule=rule, nodes=nodes, **more)


def listed(
    *, at: float = 0, nodes: dict[str, tuple[int, int]] | None = None, marked: dict[str, MarkedNodes] | None = None,
    **more: Any,
) -> list[Event]:  # fmt: skip
    """The zones with their nodes and how many of them are healthy; five of five by default."""
    zones = {
        name: ZoneInventory(nodes=total, healthy_nodes=well, marked=(marked or {}).get(name))
        for name, (total, well) in (nodes or dict.fromkeys(ZONES, (5, 5))).items()
    }
    given: dict[str, Any] = {"demand_nodes": 8, "quorum_members": dict.fromkeys(zones, 1)} | more
    return [(at, Zones(cluster="prod", zones=zones, observed_at=at_(at), **given))]


def isolate(zone: str, *, at: float, by: str = "ann", **more: Any) -> list[Event]:
    fact = IsolateZone(rule="zones", zone=zone, by=by, reason="INC-7", observed_at=at_(at), **more)
    return [(at, fact)]


def failback(zone: str, *, at: float, by: str = "ann", **more: Any) -> list[Event]:
    return [(at, FailbackZone(rule="zones", zone=zone, by=by, reason="INC-7 over", observed_at=at_(at), **more))]


def retry(zone: str, *, at: float, by: str = "ann") -> list[Event]:
    return [(at, RetryZone(rule="zones", zone=zone, by=by, reason="again", observed_at=at_(at)))]


def answered(number: int, *, at: float, status: str = "Done", zone: str = "a", detail: str = "") -> list[Event]:
    """Outcome of the action of this generation."""
    given: dict[str, Any] = {
        "action": f"zones/prod/{zone}/{number}", "rule": "zones", "object": f"prod/{zone}", "status": status,
        "detail": detail,
    }  # fmt: skip
    return [(at, Outcome(**given, observed_at=at_(at)))]


def paused(*, at: float) -> list[Event]:
    return [(at, Pause(rule="*", by="bob", reason="upgrade", observed_at=at_(at)))]


def resumed(*, at: float) -> list[Event]:
    return [(at, Resume(rule="*", by="bob", observed_at=at_(at)))]


def approved(zone: str, *, at: float) -> list[Event]:
    return [(at, Approve(rule="zones", object=f"prod/{zone}", by="eve", reason="seen", observed_at=at_(at)))]


def said(rule: ZoneIsolation, *events: list[Event], until: float = 1000, outcomes: bool = True) -> list[Emitted]:
    history = sorted((event for some in events for event in some), key=lambda event: event[0])
    return list(play([rule], history, until=until, outcomes=outcomes))


def group_after(rule: ZoneIsolation, *events: list[Event], until: float) -> Group:
    """Give the rule's group at this second, as it is stored; each action is done at once."""
    store = GroupStore(Routing([rule]))
    simulator = Simulator(store, outcomes=True)
    for second, fact in sorted((event for some in events for event in some), key=lambda event: event[0]):
        list(simulator.until(at_(second)))
        list(simulator.take([fact], at_(second)))
    list(simulator.until(at_(until)))
    (group,) = store.groups.values()
    return load_group(dump_group(group))


def steps(things: Iterable[Emitted]) -> list[tuple[float, str, str, str, str]]:
    """Second, zone, phase, status and step of what was asked."""
    return [
        (one.at, one.what.zone, one.what.phase, one.what.status, one.what.step)
        for one in things
        if isinstance(one.what, ZoneStep)
    ]


def names(things: Iterable[Emitted]) -> list[str]:
    """The steps in short: `+Fence` done, `-Fence` undone."""
    return [("-" if s.what.undo else "+") + s.what.step for s in things if isinstance(s.what, ZoneStep)]


def holds(things: Iterable[Emitted]) -> list[tuple[float, str, str]]:
    """Second, object and reason of the holds that began."""
    return [(one.at, one.what.object, one.what.held) for one in things if isinstance(one.what, Hold)]
