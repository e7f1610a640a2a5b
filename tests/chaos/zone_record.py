"""Record of a cluster of zones: how it was at first, and, by its write log, what was done to it since."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from reactor.audit.spans import Span, merged
from reactor.demo.kube import WORLD, JsonObject, LoggedWrite
from reactor.demo.kube.patch import json_patch
from tests.chaos import zone
from tests.chaos.script import Plan
from tests.e2e.zone_objects import ZONE_LABEL, ZONES
from tests.e2e.zone_world import BALANCER_LABEL, SICK, ZoneWorld
from tests.judge.zone_history import CORDONED, EXCLUDED, FENCED, RELEASED, Marks, ZoneHistory, ZoneWrite

TAINT = {"key": "reactor/isolated-zone", "value": ZONES[SICK], "effect": "NoSchedule"}
NOTES = {
    FENCED: "reactor/isolated-by",
    CORDONED: "reactor/cordoned-by-isolation", EXCLUDED: "reactor/excluded-by-isolation",
    RELEASED: "reactor/isolation-released-at",
}  # fmt: skip
OK = range(200, 300)
Moved = Callable[[str, Sequence[Span]], tuple[Span, ...]]
"""Gives when the turns of a backend really came."""


def marks_of(node: JsonObject) -> Marks:
    """Give what an isolation has left on a node."""
    labels, notes, spec = _parts(node)
    there = {
        FENCED: NOTES[FENCED] in notes and TAINT in (spec.get("taints") or []),
        CORDONED: NOTES[CORDONED] in notes and spec.get("unschedulable") is True,
        EXCLUDED: NOTES[EXCLUDED] in notes and BALANCER_LABEL in labels,
        RELEASED: NOTES[RELEASED] in notes,
    }
    return frozenset(mark for mark, is_there in there.items() if is_there)


def without_marks(node: JsonObject) -> tuple[Any, Any, Any]:
    """Give labels, annotations and spec of a node without what an isolation has left on it."""
    marks = marks_of(node)
    labels, notes, spec = _parts(node)
    notes = {key: value for key, value in notes.items() if key not in [NOTES[mark] for mark in marks & set(NOTES)]}
    labels = {key: value for key, value in labels.items() if not (key == BALANCER_LABEL and EXCLUDED in marks)}
    taints = [one for one in spec.get("taints") or [] if not (one == TAINT and FENCED in marks)]
    rest = {key: value for key, value in spec.items() if key != "taints"}
    if CORDONED in marks:
        del rest["unschedulable"]
    return labels, notes, {**rest, "taints": taints}


def _parts(node: JsonObject) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    metadata = node["metadata"]
    return metadata.get("labels") or {}, metadata.get("annotations") or {}, node.get("spec") or {}


@dataclass(slots=True)
class _Pod:
    name: str
    node: str
    stays: bool
    """A DaemonSet's: no isolation moves it."""
    begin: float = -inf
    end: float = inf


@dataclass(slots=True)
class _Replay:
    """The cluster as it was at first, and as each write has left it."""

    nodes: dict[str, JsonObject]
    pods: dict[str, _Pod]
    all_pods: list[_Pod] = field(default_factory=list)

    def take(self, write: LoggedWrite) -> ZoneWrite | None:
        """Let a write happen; gives it if it is one of a reactor."""
        if write.resource == "pods":
            return self._pod(write)
        ours = write.manager != WORLD
        if not write.effective:
            words = f"{write.verb} {write.resource} {write.name}"
            node = self.nodes.get(write.name) if write.resource == "nodes" else None
            if node is None:
                return ZoneWrite(write.at, foreign=f"{words}, to no effect,") if ours else None
            return ZoneWrite(write.at, write.name, marks_of(node)) if ours else None
        if write.resource == "nodes" and write.verb == "patch" and not write.subresource and ours:
            return self._node(write)
        return ZoneWrite(write.at, foreign=f"{write.resource} {write.name}") if ours else None

    def _node(self, write: LoggedWrite) -> ZoneWrite:
        before = self.nodes[write.name]
        # What it was made from, as its `test` says, was right, or it would not have been carried out.
        operations = [one for one in write.body if one["op"] != "test"]
        after = self.nodes[write.name] = json_patch(before, operations)
        foreign = "" if without_marks(before) == without_marks(after) else f"something else on node {write.name}"
        return ZoneWrite(write.at, write.name, marks_of(after), foreign=foreign)

    def _pod(self, write: LoggedWrite) -> ZoneWrite | None:
        ours = write.manager != WORLD
        if write.verb == "create" and not write.subresource and not ours:
            self.pods[write.name] = pod = _pod(write.body, write.at)
            self.all_pods.append(pod)
            return None
        if write.subresource != "eviction" and write.verb != "delete":
            return ZoneWrite(write.at, foreign=f"pod {write.name}") if ours else None
        pod = self.pods[write.name]
        pod.end = write.at if write.effective else pod.end
        foreign = f"pod {write.name}, which stays on its node," if pod.stays else ""
        foreign = foreign or ("" if write.subresource else f"a deletion of pod {write.name}")
        return ZoneWrite(write.at, pod.node, pod=pod.name, foreign=foreign) if ours else None


def _pod(body: JsonObject, at: float) -> _Pod:
    owners = body["metadata"].get("ownerReferences") or []
    stays = any(owner["kind"] == "DaemonSet" for owner in owners)
    return _Pod(body["metadata"]["name"], body["spec"]["nodeName"], stays, at)


class ZoneRecord:
    """The cluster, as it was when this was made, and its log since."""

    def __init__(self, world: ZoneWorld) -> None:
        self.world = world
        self._nodes = {one["metadata"]["name"]: one for one in world.prod.list("nodes")}
        self._pods = [_pod(one, -inf) for one in world.prod.list("pods")]

    def history(self, plan: Plan, moved: Moved, **more: Any) -> ZoneHistory:
        """Give what the judge has to know. `more`: what hindered its sources when."""
        pods = [_Pod(one.name, one.node, one.stays) for one in self._pods]
        replay = _Replay(dict(self._nodes), {one.name: one for one in pods}, pods)
        sick = {name for name, one in self._nodes.items() if one["metadata"]["labels"][ZONE_LABEL] == SICK}
        writes = tuple(self._writes(replay))
        occupied = [Span(one.begin, one.end) for one in replay.all_pods if one.node in sick and not one.stays]
        now = {one["metadata"]["name"]: one for one in self.world.prod.list("nodes")}
        as_first = {name: without_marks(one) for name, one in self._nodes.items()}
        first, second, others = plan.backends
        return ZoneHistory(
            plan.name, plan.toleration, plan.recovery, {name: _wanted(self._nodes[name]) for name in sorted(sick)},
            {name: moved(name, plan.backends[name]) for name in (first, second)},
            moved(others, plan.backends[others]), writes, tuple(merged(occupied)),
            {name: marks_of(now[name]) for name in sorted(sick)},
            tuple(name for name, one in now.items() if without_marks(one) != as_first[name]),
            zone.BATCHES, zone.BAKE_SECONDS, zone.PROBE_SECONDS, **more,
        )  # fmt: skip

    def _writes(self, replay: _Replay) -> Iterator[ZoneWrite]:
        for write in self.world.emulator.writes:
            if write.cluster == zone.CLUSTER and write.code in OK:
                taken = replay.take(write)
                if taken is not None:
                    yield taken


def _wanted(node: JsonObject) -> Marks:
    """Give the marks of this node while its zone is isolated: what others have done before is theirs."""
    labels, _, spec = _parts(node)
    theirs: Mapping[str, object] = {CORDONED: spec.get("unschedulable"), EXCLUDED: labels.get(BALANCER_LABEL)}
    return frozenset((FENCED, *(mark for mark, there in theirs.items() if not there)))
