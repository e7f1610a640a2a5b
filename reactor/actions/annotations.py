"""Annotations on a route: the decision that its weights follow, and the weights when all was well.

So an older action is refused even by a process that has just started, and ratios survive a wiped bus.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from bus.json_text import parsed
from bus.messages import SetWeights
from bus.messages.routes import WEIGHT_MAX
from reactor.clients.kubernetes_port import JsonObject
from rules.kinds.traffic.route_state import DECISION_ANNOTATION, HEALTHY_ANNOTATION

EPOCH_ANNOTATION = "reactor/epoch"


@dataclass(frozen=True, slots=True)
class Stamp:
    """The decision that an object's weights follow."""

    group: str
    """Rule and object: decisions of other groups say nothing about ours."""
    generation: int
    epoch: int

    def overrules(self, other: Stamp) -> bool:
        """True if this is a newer decision of the same group.

        The generation comes first. While a bus lives both numbers move forward together, so the order does not matter;
        after its store was wiped the epoch starts again from below while the generation goes on from this very
        annotation, and epoch first would refuse every action without end.
        """
        return self.group == other.group and (self.generation, self.epoch) > (other.generation, other.epoch)

    def is_same_decision(self, other: Stamp) -> bool:
        """True if both are one decision, whichever process published it (again)."""
        return (self.group, self.generation) == (other.group, other.generation)


def notes_of(obj: JsonObject) -> Mapping[str, str]:
    """Give the object's annotations; none where it has none."""
    return obj.get("metadata", {}).get("annotations") or {}


def stamp_of(action: SetWeights) -> Stamp:
    """Give what the action will leave on the object."""
    return Stamp(action.id.rpartition("/")[0], action.generation, action.epoch)


def stamp_on(obj: JsonObject) -> Stamp | None:
    """Read the decision on the object. None: there is none, or it is not one of ours (a person has edited it)."""
    notes = notes_of(obj)
    group, _, generation = notes.get(DECISION_ANNOTATION, "").rpartition("/")
    epoch = notes.get(EPOCH_ANNOTATION, "0")
    if not (group and _is_number(generation) and _is_number(epoch)):
        return None
    return Stamp(group, int(generation), int(epoch))


def _is_number(text: str) -> bool:
    return (
        text.isascii() and text.isdecimal() and len(text) < 19
    )  # int() takes superscripts, and minutes for a megabyte


def healthy_weights(obj: JsonObject) -> dict[str, int]:
    """Read the remembered healthy weights; empty where there are none or they are not readable."""
    try:
        value = parsed(notes_of(obj).get(HEALTHY_ANNOTATION, "{}"))
    except ValueError:
        return {}
    if not isinstance(value, dict):
        return {}
    return {name: weight for name, weight in value.items() if type(weight) is int and 0 <= weight <= WEIGHT_MAX}


def stamps(obj: JsonObject, action: SetWeights) -> dict[str, str]:
    """Give the annotations to write beside the weights.

    What is remembered is merged into the value that is already there: two rules of one HTTPRoute share the annotation,
    and neither may forget what the other one needs to come back.
    """
    written = {DECISION_ANNOTATION: action.id, EPOCH_ANNOTATION: str(action.epoch)}
    known = healthy_weights(obj)
    merged = {**known, **action.remember}
    if merged != known:
        written[HEALTHY_ANNOTATION] = weights_text(merged)
    return written


def weights_text(weights: Mapping[str, int]) -> str:
    """Write weights as an annotation holds them: sorted, so that equal weights are equal text."""
    return json.dumps(weights, sort_keys=True, separators=(",", ":"))
