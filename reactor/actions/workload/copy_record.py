"""Record that a copy of a workload carries: by it a move is known again where the bus has lost it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from bus.characters import unseen
from bus.messages import CopyRecord
from reactor.actions.workload.marks import (
    DECIDED_ANNOTATION,
    EVICTING_ANNOTATION,
    LEAVES_ANNOTATION,
    PLACED_FOR_ANNOTATION,
    STAYS_ANNOTATION,
)
from rules.core.reasons import Because
from rules.kinds.traffic.route_state import DECISION_ANNOTATION

NAME_MAX = 253
NAMES_MAX = 100
"""Clusters that are read of one annotation."""


def record_of(created_at: object, notes: Mapping[str, str]) -> CopyRecord:
    """Read its time of creation and its annotations. Anyone who may write it may have edited them: what is no name, or
    no time, is left out."""
    rule = _names(notes.get(DECISION_ANNOTATION, "").partition("/")[0])
    leaves = _names(notes.get(LEAVES_ANNOTATION, "")) or (Because.TOLERATION_ELAPSED.value,)
    return CopyRecord(
        created_at=_moment(created_at), rule=rule[0] if rule else "",
        decided_at=_moment(notes.get(DECIDED_ANNOTATION)),
        placed_for=_names(notes.get(PLACED_FOR_ANNOTATION, "")),
        leaves=leaves[0] if EVICTING_ANNOTATION in notes else "", stays=_names(notes.get(STAYS_ANNOTATION, "")),
    )  # fmt: skip


def _names(text: str) -> tuple[str, ...]:
    names = text.split(",")[:NAMES_MAX]
    return tuple(name for name in names if 0 < len(name) <= NAME_MAX and unseen(name) is None)


def _moment(text: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
