"""Holds on each node of a zone, put on and taken off: pure functions from a node to one JSON Patch.

A merge patch on `spec.taints` would replace the whole list (seen: it wiped the cordon's own taint), so taints are added
and removed behind a `test` of the list as it was read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from reactor.actions.annotations import notes_of
from reactor.actions.outcomes import Declined
from reactor.actions.patches import escape
from reactor.actions.zone.origin import ORIGIN_NOTES, IsolationOrigin, is_fence
from reactor.actions.zone.zone_marks import BALANCER_LABEL, CORDONED, EXCLUDED, ISOLATED, OUT_OF_SERVICE
from reactor.actions.zone.zone_nodes import drop, drop_note, name_of, put_note, put_notes
from reactor.clients.kubernetes_port import JsonObject

OFF = "isolated-zone"
"""The value of an out-of-service taint that we have put there."""


@dataclass(frozen=True, slots=True)
class NodeHold:
    """One thing that is kept up on every node of an isolated zone."""

    take: Callable[[JsonObject, str], list[JsonObject] | None]
    """Gives the patch that puts the hold on a node for this zone's ID; None: it is on. Raises Declined."""
    give: Callable[[JsonObject], list[JsonObject] | None]
    """The patch that takes back what we did, and nothing else; None: there is nothing of ours. Whatever ID we wrote:
    a rule whose zones were corrected meanwhile still gives everything back."""
    word: str
    """Word for a node with this hold: `fenced`."""


def _taints(node: JsonObject) -> list[JsonObject]:
    return (node.get("spec") or {}).get("taints") or []


def _tested(node: JsonObject) -> JsonObject:
    # Missing equals null in a `test`: evanphx/json-patch, which the API server uses.
    return {"op": "test", "path": "/spec/taints", "value": (node.get("spec") or {}).get("taints")}


def _add_taint(node: JsonObject, taint: JsonObject) -> list[JsonObject]:
    if _taints(node):
        return [_tested(node), {"op": "add", "path": "/spec/taints/-", "value": taint}]
    return [_tested(node), {"op": "add", "path": "/spec/taints", "value": [taint]}]


def _fenced(node: JsonObject, mark: str) -> bool:
    fences = [taint for taint in _taints(node) if is_fence(taint)]
    if others := [taint for taint in fences if taint.get("value") != mark]:
        raise Declined("ChangeRefused", f"node {name_of(node)} is fenced for zone {others[0].get('value')}, not {mark}")
    return bool(fences)


def _fence(origin: IsolationOrigin, node: JsonObject, mark: str) -> list[JsonObject] | None:
    operations: list[JsonObject] = []
    notes = dict(origin.notes)
    if not _fenced(node, mark):
        operations += _add_taint(node, {"key": ISOLATED, "value": mark, "effect": "NoSchedule"})
    if not (node.get("spec") or {}).get("unschedulable"):
        now = (node.get("spec") or {}).get("unschedulable")
        operations += [
            {"op": "test", "path": "/spec/unschedulable", "value": now},
            {"op": "add", "path": "/spec/unschedulable", "value": True},
        ]
        notes[CORDONED] = mark  # with the change: who finds the cordon finds whose it is
    operations += put_notes(node, notes)
    for key in ORIGIN_NOTES:
        operations += drop_note(node, key) if key not in notes else []
    return operations or None


def unfence(node: JsonObject) -> list[JsonObject] | None:
    """Give the patch that takes our fence off, that of another rule too, and nothing else; None: there is none."""
    kept = [taint for taint in _taints(node) if not is_fence(taint)]
    operations = _keep(node, kept) if kept != _taints(node) else []
    if CORDONED in notes_of(node):
        operations += drop("/spec/unschedulable", (node.get("spec") or {}).get("unschedulable"))
        operations += drop_note(node, CORDONED)
    for key in ORIGIN_NOTES:
        operations += drop_note(node, key)
    return operations or None


def fence_by(origin: IsolationOrigin) -> NodeHold:
    """Give the hold that fences nodes, and says on each of them on whose word."""
    return NodeHold(partial(_fence, origin), unfence, "fenced")


def _keep(node: JsonObject, taints: list[JsonObject]) -> list[JsonObject]:
    if taints:
        return [_tested(node), {"op": "replace", "path": "/spec/taints", "value": taints}]
    return [_tested(node), {"op": "remove", "path": "/spec/taints"}]  # as it was before there was any


def _exclude(node: JsonObject, mark: str) -> list[JsonObject] | None:
    if BALANCER_LABEL in (node["metadata"].get("labels") or {}):
        return None
    at = f"/metadata/labels/{escape(BALANCER_LABEL)}"
    tested = {"op": "test", "path": at, "value": None}
    return [tested, *put_note(node, EXCLUDED, mark), {"op": "add", "path": at, "value": "true"}]


def _include(node: JsonObject) -> list[JsonObject] | None:
    if EXCLUDED not in notes_of(node):
        return None
    label = (node["metadata"].get("labels") or {}).get(BALANCER_LABEL)
    return [*drop(f"/metadata/labels/{escape(BALANCER_LABEL)}", label), *drop_note(node, EXCLUDED)]


def _call_off(node: JsonObject, _: str) -> list[JsonObject] | None:
    """Say of a node that it is off for certain, so that its pods and volumes are given away.

    Only with proof: where the machine still runs, two would write to one volume.
    """
    if any(taint.get("key") == OUT_OF_SERVICE for taint in _taints(node)):
        return None
    return _add_taint(node, {"key": OUT_OF_SERVICE, "value": OFF, "effect": "NoExecute"})


def _call_on(node: JsonObject) -> list[JsonObject] | None:
    kept = [taint for taint in _taints(node) if (taint.get("key"), taint.get("value")) != (OUT_OF_SERVICE, OFF)]
    return None if kept == _taints(node) else _keep(node, kept)


BALANCERS = NodeHold(_exclude, _include, "out of the load balancers")
OUT = NodeHold(_call_off, _call_on, "out of service")
