"""Annotations on the copies of a workload: the decision that put it there, and whether it is on its way out. Pure.

So a late action is refused even by a process that has just started, people see with `kubectl` who moved what, and a
move is known again where its record is lost (`copy_record`).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from bus.messages import ActionMessage, Evict, iso
from reactor.actions.annotations import EPOCH_ANNOTATION, notes_of
from reactor.actions.events import CONTROLLER
from reactor.actions.outcomes import Declined
from reactor.clients.kubernetes_port import JsonObject
from rules.kinds.traffic.route_state import DECISION_ANNOTATION

DECIDED_ANNOTATION = "reactor/decided-at"
EVICTING_ANNOTATION = "reactor/evicting"
"""The decision by which this copy leaves its cluster; nothing is removed while it is only recorded here."""
LEAVES_ANNOTATION = "reactor/evicting-because"
"""Beside it: why, as `TolerationElapsed`, or `Recovered` of a copy that is one too many."""
STAYS_ANNOTATION = "reactor/evicting-for"
"""Beside it: the clusters whose copies are to stay, as `m2,m3`."""
EVICTING_ANNOTATIONS = (EVICTING_ANNOTATION, LEAVES_ANNOTATION, STAYS_ANNOTATION)
PLACED_FOR_ANNOTATION = "reactor/placed-for"
"""Clusters for whose copies this one was made, as `m1`."""


def decision_of(action: ActionMessage) -> str:
    """`rule/object/generation`: the same for all lanes of a group."""
    return f"{action.rule}/{action.object}/{action.generation}"


def stamps(action: ActionMessage) -> Mapping[str, str]:
    """Give the annotations that say which decision an object follows."""
    return {
        DECISION_ANNOTATION: decision_of(action),
        EPOCH_ANNOTATION: str(action.epoch),
        DECIDED_ANNOTATION: iso(action.decided_at),
    }


def mark_of(action: Evict) -> Mapping[str, str]:
    """Give the annotations of a copy that leaves: enough to know the move again where its record is lost."""
    mark = {**stamps(action), EVICTING_ANNOTATION: decision_of(action), LEAVES_ANNOTATION: action.because}
    return mark | ({STAYS_ANNOTATION: ",".join(action.targets)} if action.targets else {})


def follows(obj: JsonObject, action: ActionMessage) -> bool:
    """True if the object was last written by this decision."""
    return notes_of(obj).get(DECISION_ANNOTATION) == decision_of(action)


def is_ours(obj: JsonObject) -> bool:
    """True if we put this object there: then it may be overwritten, by force where needed.

    Field ownership says it, not our annotations: those are also on copies that we only mark or scale.
    """
    entries = obj.get("metadata", {}).get("managedFields") or []
    return any((one.get("manager"), one.get("operation")) == (CONTROLLER, "Apply") for one in entries)


def is_marked(obj: JsonObject) -> bool:
    """True if the copy is on its way out."""
    return EVICTING_ANNOTATION in notes_of(obj)


def refuse_if_stale(obj: JsonObject, action: ActionMessage) -> None:
    """Raise Declined (Stale) where the object follows a newer decision of the same group.

    Newer is a higher generation that was also decided later. After its store was wiped a group counts from 1 again,
    below the generation on its copies; its decisions are later all the same, and must not be refused without end. And a
    clock that was set back must not make a decision look old.
    """
    notes = notes_of(obj)
    group, _, generation = notes.get(DECISION_ANNOTATION, "").rpartition("/")
    decided = notes.get(DECIDED_ANNOTATION, "")
    if group != f"{action.rule}/{action.object}" or not generation.isdecimal() or len(generation) > 18:
        return
    try:
        later = datetime.fromisoformat(decided) > action.decided_at
    except (ValueError, TypeError):  # a person has edited it: then it says nothing
        return
    if int(generation) > action.generation and later:
        raise Declined(
            "Stale", f"the copy follows generation {generation}, decided {decided}; this is {action.generation}"
        )
