"""The whole life of a zone's isolation as one table: where it is, what happens, and where it goes.

Grown from GEP-21, which names the phases, the statuses and the annotation; what it leaves open is decided here. Every
state answers every event: what is not in the table changes nothing. What is in force in the world decides in a few
places (`Extent`), because a record that goes away while a step is in force would leave the zone cut off for good.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """Direction of an isolation."""

    FAILOVER = "Failover"
    FAILBACK = "Failback"


class Status(StrEnum):
    """Progress of the current phase (GEP-21 status)."""

    PENDING = "Pending"
    IN_PROGRESS = "InProgress"
    ABORTING = "Aborting"
    DONE = "Done"
    FAILED = "Failed"


class IsolationEvent(StrEnum):
    """Event of an isolation. The annotation is a request for one: a command, or the rule."""

    SAME_ADDED = "annotation_added_same_zone"
    REMOVED = "annotation_removed"
    GUARDS_PASS = "guards_pass"  # noqa: S105 - no password
    CALLED_OFF = "called_off"
    """The zone is well again before all steps are done; or bad again while it is opened."""
    PROVEN_WELL = "proven_well"
    """Those who may open the zone have proven it healthy before all steps are done, whatever other signals say."""
    DEADLINE = "pending_deadline"
    ALL_STEPS_DONE = "all_steps_done"
    STEP_TIMEOUT = "step_timeout"
    UNDO_FINISHED = "undo_finished"
    UNDO_TIMEOUT = "undo_timeout"
    RETRY = "retry"
    EXPIRY_FAILBACK = "expiry_failback"
    """`expirySeconds` are over and the rule says `onExpiry: Failback`; else a timer alone opens no zone."""


class Extent(StrEnum):
    """Part of the plan that is in force in the world, as far as is known."""

    NOTHING = "nothing"
    SOME = "some"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class IsolationState:
    """Phase and status of an isolation; without a phase there is none."""

    phase: Phase | None = None
    status: Status | None = None


NONE = IsolationState()
PENDING = IsolationState(Phase.FAILOVER, Status.PENDING)
RUNNING = IsolationState(Phase.FAILOVER, Status.IN_PROGRESS)
ABORTING = IsolationState(Phase.FAILOVER, Status.ABORTING)
ISOLATED = IsolationState(Phase.FAILOVER, Status.DONE)
FAILED = IsolationState(Phase.FAILOVER, Status.FAILED)
BACK_PENDING = IsolationState(Phase.FAILBACK, Status.PENDING)
BACK_RUNNING = IsolationState(Phase.FAILBACK, Status.IN_PROGRESS)
BACK_FAILED = IsolationState(Phase.FAILBACK, Status.FAILED)

TABLE: dict[tuple[IsolationState, IsolationEvent], IsolationState] = {
    (NONE, IsolationEvent.SAME_ADDED): PENDING,
    (PENDING, IsolationEvent.GUARDS_PASS): RUNNING,
    (PENDING, IsolationEvent.DEADLINE): FAILED,
    (PENDING, IsolationEvent.REMOVED): NONE,
    (RUNNING, IsolationEvent.ALL_STEPS_DONE): ISOLATED,
    (RUNNING, IsolationEvent.STEP_TIMEOUT): FAILED,  # no automatic undo: the zone is bad
    (RUNNING, IsolationEvent.CALLED_OFF): PENDING,
    (RUNNING, IsolationEvent.PROVEN_WELL): BACK_PENDING,
    (RUNNING, IsolationEvent.REMOVED): ABORTING,
    (ABORTING, IsolationEvent.UNDO_FINISHED): NONE,
    (ABORTING, IsolationEvent.UNDO_TIMEOUT): FAILED,
    (ABORTING, IsolationEvent.STEP_TIMEOUT): FAILED,
    (ABORTING, IsolationEvent.SAME_ADDED): RUNNING,
    (FAILED, IsolationEvent.RETRY): RUNNING,
    (FAILED, IsolationEvent.CALLED_OFF): PENDING,
    (FAILED, IsolationEvent.REMOVED): BACK_PENDING,
    (ISOLATED, IsolationEvent.REMOVED): BACK_PENDING,
    (ISOLATED, IsolationEvent.EXPIRY_FAILBACK): BACK_PENDING,  # which still waits for the zone's health
    (BACK_PENDING, IsolationEvent.GUARDS_PASS): BACK_RUNNING,
    (BACK_PENDING, IsolationEvent.SAME_ADDED): PENDING,
    (BACK_RUNNING, IsolationEvent.ALL_STEPS_DONE): NONE,
    (BACK_RUNNING, IsolationEvent.UNDO_FINISHED): NONE,
    (BACK_RUNNING, IsolationEvent.STEP_TIMEOUT): BACK_FAILED,
    (BACK_RUNNING, IsolationEvent.UNDO_TIMEOUT): BACK_FAILED,
    (BACK_RUNNING, IsolationEvent.CALLED_OFF): BACK_PENDING,
    (BACK_RUNNING, IsolationEvent.SAME_ADDED): PENDING,
    (BACK_FAILED, IsolationEvent.RETRY): BACK_RUNNING,
    (BACK_FAILED, IsolationEvent.SAME_ADDED): PENDING,
}
"""Every change. Another zone, another value of the annotation and a restart change nothing: GEP-21 has one zone at a
time, and the truth is the record and a look at the world."""

OPENING: dict[tuple[IsolationState, IsolationEvent, Extent], IsolationState] = {
    # Pending after a failback was called off: what is in force is kept, so the record must not go away with it.
    (PENDING, IsolationEvent.REMOVED, Extent.SOME): BACK_PENDING,
    (PENDING, IsolationEvent.REMOVED, Extent.ALL): BACK_PENDING,
    (PENDING, IsolationEvent.GUARDS_PASS, Extent.ALL): ISOLATED,
    (RUNNING, IsolationEvent.REMOVED, Extent.NOTHING): NONE,
    # Failed while it was pending: nothing was touched, so a second try passes the guards like the first.
    (FAILED, IsolationEvent.RETRY, Extent.NOTHING): PENDING,
    (FAILED, IsolationEvent.SAME_ADDED, Extent.NOTHING): PENDING,
    (FAILED, IsolationEvent.REMOVED, Extent.NOTHING): NONE,
    (BACK_PENDING, IsolationEvent.GUARDS_PASS, Extent.NOTHING): NONE,
}
"""Transitions that depend on what is in force in the world."""

UNDOING: dict[tuple[IsolationState, IsolationEvent], IsolationState] = {
    (FAILED, IsolationEvent.RETRY): ABORTING,
    (FAILED, IsolationEvent.SAME_ADDED): RUNNING,
}
"""Failed while it was being aborted: the abort is still wanted, so a retry goes on undoing."""


def move(
    place: IsolationState, event: IsolationEvent, *, extent: Extent | None = None, undoing: bool = False
) -> IsolationState:
    """Give the answer of a state to an event. `extent`: None takes what usually is in force in that state.

    `undoing`: whether a Failover/Failed comes from an abort.
    """
    if undoing and place == FAILED and (place, event) in UNDOING:
        return UNDOING[place, event]
    if extent is not None and (place, event, extent) in OPENING:
        return OPENING[place, event, extent]
    return TABLE.get((place, event), place)
