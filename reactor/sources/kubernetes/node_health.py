"""Health of a node by its conditions, and of a zone by its nodes: pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bus.messages import Health, MarkedNodes
from reactor.actions.zone.origin import ORIGIN_NOTES, IsolationOrigin, is_fence, origin_of
from reactor.actions.zone.zone_marks import RELEASED
from reactor.clients.changes import dict_of, list_of, metadata_of, state_of_objects, strings_of
from reactor.clients.kubernetes_port import JsonObject
from reactor.clients.object_fields import MalformedField, condition, get
from reactor.clients.quantities import quantity
from reactor.sources.kubernetes.workload_health import HealthVerdict

EXCLUDED = "node.kubernetes.io/exclude-disruption"
"""The label with which Kubernetes' own node lifecycle leaves a node out of its zone; its value does not matter."""
MAINTENANCE = "reactor/maintenance"
"""The annotation of any node by which people, or what upgrades a cluster, say that they are at it: who, and why."""
CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/etcd")
_NOTES = (MAINTENANCE, *ORIGIN_NOTES, RELEASED)
DISRUPTED_PERCENT, DISRUPTED_NODES = 55, 3
"""Kubernetes' --unhealthy-zone-threshold, and the least number of bad nodes for which it counts."""


class Node(NamedTuple):
    """One node, as far as it matters here."""

    name: str
    zone: str
    """Name of its zone; empty: it carries no such label."""
    counts: bool
    """True if it counts for the health of its zone."""
    control_plane: bool
    verdict: HealthVerdict
    room: Mapping[str, float]
    """Allocatable `cpu`, `memory` and `pods`; empty where it cannot be read."""
    version: str = ""
    """The state of the object."""
    maintenance: str = ""
    """Maintainer of the cluster, by this node's annotation; empty: it has none."""
    origin: IsolationOrigin | None = None
    """Isolation that has fenced it; None: none has, or it does not say which."""
    released: bool = False
    """True if the way back of an isolation has let it go, and has not come to its end."""

    @property
    def ready(self) -> bool:
        """True if it is Ready."""
        return self.verdict.status is Health.HEALTHY


class Tally(NamedTuple):
    """The nodes of one zone that count."""

    nodes: int
    ready: int


def project(found: JsonObject) -> JsonObject:
    """Keep of a node what is read here: its images and addresses are most of it."""
    metadata = metadata_of(found)
    status = found.get("status") if isinstance(found.get("status"), dict) else {}
    notes = strings_of(metadata.get("annotations"))
    kept = {key: metadata.get(key) for key in ("name", "labels", "uid", "resourceVersion")}
    spec = found.get("spec") if isinstance(found.get("spec"), dict) else {}
    fences = [taint for taint in list_of(spec.get("taints")) if is_fence(taint)] if isinstance(spec, dict) else []
    return {
        "metadata": kept | {"annotations": {key: notes[key] for key in _NOTES if key in notes}},
        "spec": {"taints": fences},
        "status": {key: status.get(key) for key in ("conditions", "allocatable")} if isinstance(status, dict) else {},
    }


def node_of(found: JsonObject, zone_label: str) -> Node:
    """Read a projected node."""
    metadata = metadata_of(found)
    labels, notes = strings_of(metadata.get("labels")), strings_of(metadata.get("annotations"))
    fenced = any(is_fence(taint) for taint in list_of(dict_of(found.get("spec")).get("taints")))
    return Node(
        str(metadata.get("name")), labels.get(zone_label, ""), EXCLUDED not in labels,
        any(role in labels for role in CONTROL_PLANE), verdict_of(found), _room(found),
        state_of_objects([found]), maintenance_of(found), origin_of(notes) if fenced else None, RELEASED in notes,
    )  # fmt: skip


def maintenance_of(found: JsonObject) -> str:
    """Maintainer of the cluster, by the annotation of a node; empty: it has none."""
    said = strings_of(metadata_of(found).get("annotations")).get(MAINTENANCE)
    return "" if said is None else f"node {metadata_of(found).get('name')}: {said or MAINTENANCE}"[:1000]


def verdict_of(found: JsonObject) -> HealthVerdict:
    """Ready True is Healthy, False Unhealthy; Unknown is what the node controller says of a kubelet that is silent."""
    try:
        ready = condition(found, "Ready")
    except MalformedField as error:
        return HealthVerdict(Health.UNKNOWN, str(error))
    status = {"True": Health.HEALTHY, "False": Health.UNHEALTHY}.get(ready or "", Health.UNKNOWN)
    return HealthVerdict(status, f"Ready is {ready}" if ready else "has no condition Ready")


def _room(found: JsonObject) -> Mapping[str, float]:
    try:
        allocatable = get(found, "status", "allocatable") or {}
        return {name: quantity(allocatable[name]) for name in ("cpu", "memory", "pods")}
    except (MalformedField, KeyError, TypeError):
        return {}


def tally(nodes: Iterable[Node]) -> dict[str, Tally]:
    """Count the nodes of each zone; nodes without a zone, and those that are excluded, are in none."""
    found: dict[str, Tally] = defaultdict(lambda: Tally(0, 0))
    for node in nodes:
        if node.zone and node.counts:
            before = found[node.zone]
            found[node.zone] = Tally(before.nodes + 1, before.ready + node.ready)
    return dict(found)


def marked(nodes: Iterable[Node]) -> dict[str, MarkedNodes]:
    """Give the isolation that the nodes of each zone name; of several the one that most of them name.

    One of them that names a person is enough for a person's isolation, and one that is no drill's for no drill.
    """
    by_zone: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        if node.zone:
            by_zone[node.zone].append(node)
    return {zone: said for zone, some in by_zone.items() if (said := _marked(some)) is not None}


def _marked(zone: Iterable[Node]) -> MarkedNodes | None:
    nodes = list(zone)
    origins = [node.origin for node in nodes if node.origin is not None]
    if not origins:
        return None
    counted = Counter(origin.rule for origin in origins)
    rule = min(counted, key=lambda name: (-counted[name], name))
    mine = [origin for origin in origins if origin.rule == rule]
    return MarkedNodes(
        rule=rule, nodes=len(mine), by=min((origin.by for origin in mine if origin.by), default=""),
        practice=all(origin.practice for origin in mine), released=sum(node.released for node in nodes),
    )  # fmt: skip


def zone_verdict(zone: Tally) -> HealthVerdict:
    """Unhealthy as soon as Kubernetes would call the zone disrupted.

    That is when no node is ready, or when at least three nodes and at least 55% are not. A percentage alone is of no
    use for small zones: of two nodes one is 50%, of one it is all. Not ready is False and Unknown alike: nodes of a
    zone without power are Unknown. Source: kubernetes pkg/controller/nodelifecycle, ComputeZoneState.
    """
    bad = zone.nodes - zone.ready
    full = zone.ready == 0 and bad > 0
    partial = bad >= DISRUPTED_NODES and 100 * bad >= DISRUPTED_PERCENT * zone.nodes
    status = Health.UNHEALTHY if full or partial else Health.HEALTHY
    return HealthVerdict(status, f"{zone.ready} of {zone.nodes} nodes are ready")
