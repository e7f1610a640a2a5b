"""Origin of an isolation, written on each node that it fences: so it is known again where its record is lost.

The annotations come and go with the taint, in the same write. A node whose taint was taken off by hand is in no
isolation, whatever its annotations say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bus.characters import unseen
from reactor.actions.zone.zone_marks import BY_HAND, IN_PRACTICE, ISOLATED, ISOLATED_BY
from reactor.runtime.visible import visible

NAME_MAX = 253
"""Characters of a name in a message."""
ORIGIN_NOTES = (ISOLATED_BY, BY_HAND, IN_PRACTICE)


class IsolationOrigin(NamedTuple):
    """The rule that isolates a zone, and on whose word."""

    rule: str
    by: str = ""
    """Person who has asked for it; empty: the rule itself."""
    practice: bool = False

    @property
    def notes(self) -> Mapping[str, str]:
        """Annotations of a node in this isolation."""
        said = {ISOLATED_BY: self.rule, BY_HAND: self.by, IN_PRACTICE: "true" if self.practice else ""}
        return {key: value for key, value in said.items() if value}


def is_fence(taint: Mapping[str, object]) -> bool:
    """True for the taint by which an isolation fences a node."""
    return (taint.get("key"), taint.get("effect")) == (ISOLATED, "NoSchedule")


def origin_of(notes: Mapping[str, str]) -> IsolationOrigin | None:
    """Give the origin that the annotations of a fenced node name; None: they name none, or what is no rule's name.

    Anyone who may write nodes may have edited them: a person's name is made fit for a message.
    """
    rule = notes.get(ISOLATED_BY, "")
    if not 0 < len(rule) <= NAME_MAX or unseen(rule) is not None:
        return None
    return IsolationOrigin(rule, visible(notes.get(BY_HAND, ""))[:NAME_MAX], IN_PRACTICE in notes)
