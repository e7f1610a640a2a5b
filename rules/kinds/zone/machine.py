"""The whole life of a zone's isolation as one table: where it is, what happens, where it goes, and what is to be done.

Grown from GEP-21, which names the phases, the statuses and the annotation; what it leaves open is decided here. Every
state answers every event: what is not in the table changes nothing. What stands in the world decides in a few places
(`Extent`), because a record that goes away while a step stands would leave the zone cut off for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """Which way it goes."""

    FAILOVER = "Failover"
    FAILBACK = "Failback"


class Status(StrEnum):
    """How far it is."""

    PENDING = "Pending"
    IN_PROGRESS = "InProgress"
    ABORTING = "Aborting"
    DONE = "Done"
    FAILED = "Failed"


class IsolationEvent(StrEnum):
    """What can happen to an isolation. The annotation stands for whatever asks for one: a command, or the rule."""

    ADDED = "annotation_added"
    SAME_ADDED = "annotation_added_same_zone"
    OTHER_ADDED = "annotation_added_other_zone"
    CHANGED = "annotation_value_changed"
    REMOVED = "annotation_removed"
    GUARDS_PASS = "guards_pass"  # noqa: S105
    GUARD_FAILS = "guard_fails"
    DEADLINE = "pending_deadline"
    STEP_DONE = "step_done"
    ALL_STEPS_DONE = "all_steps_done"
    STEP_TIMEOUT = "step_timeout"
    UNDO_FINISHED = "undo_finished"
    UNDO_TIMEOUT = "undo_timeout"
    RETRY = "retry"
    EXPIRY = "expiry"
    EXPIRY_FAILBACK = "expiry_failback"
    """The same where the rule says `onExpiry: Failback`."""
    CLUSTER_DELETED = "cluster_deleted"
    RESTARTED = "crash_restart"


class Do(StrEnum):
    """What follows from a move."""

    NOTHING = "none"
    ADMIT = "admit"
    FIRST_STEP = "step:evacuate"
    """The first step of the plan, which is there to empty the zone."""
    OPEN_NETWORK = "step:open_network"
    NEXT_STEP = "next_step"
    RESUME = "resume_first_unfinished_step"
    UNDO = "undo_started_steps"
    CLEAR = "clear"
    CLEAR_AND_RECORD = "clear_and_record"
    START_EXPIRY = "start_expiry_timer"
    ALERT = "alert"
    ALERT_EXPIRED = "alert_expired"
    REISOLATE = "reisolate"
    DENY = "deny"
    HOLD = "hold"
    """Not now: look again when something is heard, and every 30 s."""
    REMOVE_NETWORK = "remove_network_isolation"
    REPROBE = "reprobe_current_step"


class Extent(StrEnum):
    """How much of the plan is in force in the world, as far as is known."""

    NOTHING = "nothing"
    SOME = "some"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class IsolationState:
    """Where an isolation is. Without a phase there is none."""

    phase: Phase | None = None
    status: Status | None = None


@dataclass(frozen=True, slots=True)
class Transition:
    """Where it goes, and what is to be done."""

    to: IsolationState
    do: Do = Do.NOTHING


NONE = IsolationState()
PENDING = IsolationState(Phase.FAILOVER, Status.PENDING)
RUNNING = IsolationState(Phase.FAILOVER, Status.IN_PROGRESS)
ABORTING = IsolationState(Phase.FAILOVER, Status.ABORTING)
ISOLATED = IsolationState(Phase.FAILOVER, Status.DONE)
FAILED = IsolationState(Phase.FAILOVER, Status.FAILED)
BACK_PENDING = IsolationState(Phase.FAILBACK, Status.PENDING)
BACK_RUNNING = IsolationState(Phase.FAILBACK, Status.IN_PROGRESS)
BACK_FAILED = IsolationState(Phase.FAILBACK, Status.FAILED)
PLACES = (NONE, PENDING, RUNNING, ABORTING, ISOLATED, FAILED, BACK_PENDING, BACK_RUNNING, BACK_FAILED)

TABLE: dict[tuple[IsolationState, IsolationEvent], Transition] = {
    (NONE, IsolationEvent.ADDED): Transition(PENDING, Do.ADMIT),
    (NONE, IsolationEvent.SAME_ADDED): Transition(PENDING, Do.ADMIT),
    (NONE, IsolationEvent.OTHER_ADDED): Transition(PENDING, Do.ADMIT),
    (NONE, IsolationEvent.CHANGED): Transition(PENDING, Do.ADMIT),
    (PENDING, IsolationEvent.GUARDS_PASS): Transition(RUNNING, Do.FIRST_STEP),
    (PENDING, IsolationEvent.GUARD_FAILS): Transition(PENDING, Do.HOLD),
    (PENDING, IsolationEvent.DEADLINE): Transition(FAILED, Do.ALERT),
    (PENDING, IsolationEvent.REMOVED): Transition(NONE),
    (RUNNING, IsolationEvent.STEP_DONE): Transition(RUNNING, Do.NEXT_STEP),
    (RUNNING, IsolationEvent.ALL_STEPS_DONE): Transition(ISOLATED, Do.START_EXPIRY),
    (RUNNING, IsolationEvent.STEP_TIMEOUT): Transition(FAILED, Do.ALERT),  # no automatic undo: the zone is bad
    (RUNNING, IsolationEvent.REMOVED): Transition(ABORTING, Do.UNDO),
    (ABORTING, IsolationEvent.STEP_DONE): Transition(ABORTING, Do.NEXT_STEP),
    (ABORTING, IsolationEvent.UNDO_FINISHED): Transition(NONE, Do.CLEAR),
    (ABORTING, IsolationEvent.UNDO_TIMEOUT): Transition(FAILED, Do.ALERT),
    (ABORTING, IsolationEvent.STEP_TIMEOUT): Transition(FAILED, Do.ALERT),
    (ABORTING, IsolationEvent.SAME_ADDED): Transition(RUNNING, Do.RESUME),
    (FAILED, IsolationEvent.RETRY): Transition(RUNNING, Do.RESUME),
    (FAILED, IsolationEvent.REMOVED): Transition(BACK_PENDING),
    (ISOLATED, IsolationEvent.REMOVED): Transition(BACK_PENDING),
    (ISOLATED, IsolationEvent.EXPIRY): Transition(ISOLATED, Do.ALERT_EXPIRED),  # never open a zone by a timer alone
    (ISOLATED, IsolationEvent.EXPIRY_FAILBACK): Transition(BACK_PENDING),  # which still waits for the zone's health
    (BACK_PENDING, IsolationEvent.GUARDS_PASS): Transition(BACK_RUNNING, Do.OPEN_NETWORK),
    (BACK_PENDING, IsolationEvent.GUARD_FAILS): Transition(BACK_PENDING, Do.HOLD),
    (BACK_PENDING, IsolationEvent.SAME_ADDED): Transition(PENDING, Do.REISOLATE),
    (BACK_RUNNING, IsolationEvent.STEP_DONE): Transition(BACK_RUNNING, Do.NEXT_STEP),
    (BACK_RUNNING, IsolationEvent.ALL_STEPS_DONE): Transition(NONE, Do.CLEAR_AND_RECORD),
    (BACK_RUNNING, IsolationEvent.UNDO_FINISHED): Transition(NONE, Do.CLEAR_AND_RECORD),
    (BACK_RUNNING, IsolationEvent.STEP_TIMEOUT): Transition(BACK_FAILED, Do.ALERT),
    (BACK_RUNNING, IsolationEvent.UNDO_TIMEOUT): Transition(BACK_FAILED, Do.ALERT),
    (BACK_RUNNING, IsolationEvent.SAME_ADDED): Transition(PENDING, Do.REISOLATE),
    (BACK_FAILED, IsolationEvent.RETRY): Transition(BACK_RUNNING, Do.RESUME),
    (BACK_FAILED, IsolationEvent.SAME_ADDED): Transition(PENDING, Do.REISOLATE),
}
"""Every change. What holds for all states that have a record is in `_anywhere`."""

OPENING: dict[tuple[IsolationState, IsolationEvent, Extent], Transition] = {
    # Pending after a failback was called off: what stands is kept, so the record must not go away with it.
    (PENDING, IsolationEvent.REMOVED, Extent.SOME): Transition(BACK_PENDING),
    (PENDING, IsolationEvent.REMOVED, Extent.ALL): Transition(BACK_PENDING),
    (PENDING, IsolationEvent.GUARDS_PASS, Extent.SOME): Transition(RUNNING, Do.RESUME),
    (PENDING, IsolationEvent.GUARDS_PASS, Extent.ALL): Transition(ISOLATED, Do.START_EXPIRY),
    (RUNNING, IsolationEvent.REMOVED, Extent.NOTHING): Transition(NONE, Do.CLEAR),
    # Failed while it was pending: nothing was touched, so a second try passes the guards like the first.
    (FAILED, IsolationEvent.RETRY, Extent.NOTHING): Transition(PENDING, Do.ADMIT),
    (FAILED, IsolationEvent.SAME_ADDED, Extent.NOTHING): Transition(PENDING, Do.ADMIT),
    (FAILED, IsolationEvent.REMOVED, Extent.NOTHING): Transition(NONE, Do.CLEAR),
    (BACK_PENDING, IsolationEvent.GUARDS_PASS, Extent.NOTHING): Transition(NONE, Do.CLEAR_AND_RECORD),
}
"""Where what stands in the world changes the answer."""

UNDOING: dict[tuple[IsolationState, IsolationEvent], Transition] = {
    (FAILED, IsolationEvent.RETRY): Transition(ABORTING, Do.UNDO),
    (FAILED, IsolationEvent.SAME_ADDED): Transition(RUNNING, Do.RESUME),
}
"""Failed while it was being aborted: nobody wants this zone isolated, so a retry goes on undoing."""


def move(
    place: IsolationState, event: IsolationEvent, *, standing: Extent | None = None, undoing: bool = False
) -> Transition:
    """Give the answer of a state to an event. `standing`: None takes what usually stands in that state.

    `undoing`: whether a Failover/Failed comes from an abort.
    """
    if place.phase is None:
        return TABLE.get((place, event), Transition(place))
    if (always := _anywhere(place, event)) is not None:
        return always
    if undoing and place == FAILED and (place, event) in UNDOING:
        return UNDOING[place, event]
    if standing is not None and (place, event, standing) in OPENING:
        return OPENING[place, event, standing]
    return TABLE.get((place, event), Transition(place))


def _anywhere(place: IsolationState, event: IsolationEvent) -> Transition | None:
    """What every state with a record answers alike."""
    if event in (IsolationEvent.OTHER_ADDED, IsolationEvent.CHANGED, IsolationEvent.ADDED):
        return Transition(place, Do.DENY)  # GEP-21: one zone at a time; remove first, then add
    if event is IsolationEvent.CLUSTER_DELETED:
        return Transition(place, Do.REMOVE_NETWORK)  # else its subnets stay in use, and the deletion hangs
    if event is IsolationEvent.RESTARTED:
        return Transition(place, Do.REPROBE)  # the truth is the record and a look at the world
    return None


def edges() -> Iterator[tuple[IsolationState, IsolationEvent, Extent, bool, Transition]]:
    """Give every answer of every state: what a check of the whole table walks over."""
    for place in PLACES:
        for event in IsolationEvent:
            for standing in Extent:
                for undoing in (False, True):
                    yield place, event, standing, undoing, move(place, event, standing=standing, undoing=undoing)
