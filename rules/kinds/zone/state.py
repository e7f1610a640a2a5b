"""State of the zones of one cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from rules.core.group import Group
from rules.core.member import LONG_AGO
from rules.core.timers import Stopwatch
from rules.core.values import replace


@dataclass(frozen=True, slots=True)
class ZoneMarks:
    """Isolation by this rule, as the nodes of a zone say it."""

    nodes: int
    """Number of fenced nodes."""
    by: str = ""
    """Person who has asked for it; empty: the rule itself."""
    practice: bool = False
    released: int = 0
    """Number of nodes that its way back has let go."""


@dataclass(frozen=True, slots=True)
class ZoneNodes:
    """One zone as it was last seen."""

    nodes: int
    healthy: int
    dark_since: datetime | None = None
    """Since when none of its nodes is healthy."""
    marks: ZoneMarks | None = None
    """Isolation by this rule in which they say they are; None: none."""


@dataclass(frozen=True, slots=True)
class ZonesSeen:
    """The cluster's zones as they were last seen."""

    observed_at: datetime
    zones: Mapping[str, ZoneNodes]
    demand_nodes: int | None = None
    quorum_members: Mapping[str, int] = field(default_factory=dict)
    quorum_size: int | None = None
    single_zone_services: tuple[str, ...] = ()
    leases_expired: Mapping[str, float] = field(default_factory=dict)
    api_reachable: bool = True
    maintenance: str = ""


@dataclass(frozen=True, slots=True)
class Isolation:
    """The record of one zone's isolation: what is wanted, how far it is, and what is in force in the world."""

    zone: str
    phase: Literal["Failover", "Failback"]
    status: Literal["Pending", "InProgress", "Aborting", "Done", "Failed"]
    because: str
    """Reason for its start."""
    began_at: datetime
    since: datetime
    """Start of this status, or of the current step."""
    by: str = ""
    """Person who asked for it; empty: the rule itself."""
    reason: str = ""
    force: bool = False
    allowed: tuple[str, ...] = ()
    """Services that may go down with the zone."""
    practice: bool = False
    mode: Literal["degraded", "dead"] = "degraded"
    """dead: the control plane had lost the zone, so its network is cut before pods are forced."""
    steps: tuple[str, ...] = ()
    """The plan, in its order."""
    done: tuple[str, ...] = ()
    """Steps that are surely done, in the order in which they were done."""
    touched: tuple[str, ...] = ()
    """Steps that may be done, if only in part: whatever was begun and has not been undone."""
    asked_at: datetime | None = None
    """Time at which the current step was asked for; None: not yet."""
    tries: int = 0
    """Number of tries of the current step that were not done in time."""
    trouble: str = ""
    """Newest message of the carrier about the current step: not done yet, and why."""
    failure: str = ""
    """Failure of a step: while it is Failed, and while it is tried again by itself."""
    undoing: bool = False
    """Failed while it was being aborted."""
    rehearsed: bool = False
    """In mode DryRun: nothing of it has happened."""
    nodes: int | None = None
    """Nodes of the zone when it was fenced, or the least that were seen since: more than these have joined."""
    look_at: datetime | None = None
    """Done: from when on it is gone over for what has come late, again and again; None: it is not."""
    back_by: str = ""
    """Person who asked for its return; empty: the rule itself."""
    waived: str = ""
    """Reason why the return needs no proof that the zone is healthy; empty: it does."""
    zone_id: str = ""
    """The provider's id and the traffic targets of the zone, in case it is taken out of the rule meanwhile."""
    targets: tuple[str, ...] = ()
    failures: int = 0
    """Number of failures of the zone soon after a return, this one included."""
    recovered_since: datetime | None = None
    """failback.signals: since when they all call it healthy."""
    witnessed: bool = False
    """failback.signals: whether one of them has seen the zone bad. One that has not proves nothing by itself."""
    found: str = ""
    """Sentence that says by which nodes it was found, after its record was lost; empty: its record is its own."""


@dataclass(frozen=True, slots=True)
class RefusedZoneCommand:
    """A command that was not followed."""

    zone: str
    reason: str
    detail: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ZoneReturn:
    """A zone has come back from an isolation by the rule itself."""

    at: datetime
    failures: int
    """Number of failures soon after a return by then."""


@dataclass(frozen=True, slots=True)
class ZoneState:
    """The zones of a cluster, and the isolation of one of them."""

    seen: ZonesSeen | None = None
    isolation: Isolation | None = None
    ended_at: datetime | None = None
    """Time at which the last isolation ended: undone, aborted, or never begun."""
    refused: RefusedZoneCommand | None = None
    commanded_at: datetime | None = None
    """Time of the newest command."""
    commands: tuple[str, ...] = ()
    """The last commands, by which one that comes twice is known."""
    practised_at: datetime | None = None
    """The last moment of the practice schedule that was taken, or skipped."""
    practice_outcome: str = ""
    """Its result."""
    bad: Mapping[str, Mapping[str, Stopwatch]] = field(default_factory=dict)
    """Zone to signal to how long this signal has called the zone bad."""
    returns: Mapping[str, ZoneReturn] = field(default_factory=dict)
    """The last return of each zone; none of one that a person has brought back."""
    left_open: Mapping[str, str] = field(default_factory=dict)
    """Zones that a person has brought back, and who: the rule isolates none of them before it was well once."""
    has_ended: bool = False
    """True once an isolation or a drill of this group has ended: what its nodes say is no isolation that was lost."""


def without_dates(state: ZoneState) -> ZoneState:
    """Give the state without the date at which the zones were last seen."""
    return state if state.seen is None else replace(state, seen=replace(state.seen, observed_at=LONG_AGO))


ZoneGroup: TypeAlias = Group[ZoneState]
