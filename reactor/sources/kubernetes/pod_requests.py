"""Requests of pods for a cluster's nodes, and the pods that are members of a quorum: pure."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from reactor.clients.changes import metadata_of, strings_of
from reactor.clients.kubernetes_port import JsonObject
from reactor.clients.object_fields import MalformedField, condition, get
from reactor.clients.quantities import quantity
from reactor.sources.kubernetes.node_health import Node

MEMBER = "reactor/quorum-member"
"""The label, with the value `true`, of pods of which a majority has to stay."""
RESOURCES = ("cpu", "memory")


class Pod(NamedTuple):
    """One pod that takes room."""

    node: str
    """Name of its node; empty: it is not placed yet."""
    on_every_node: bool
    """True if it belongs to its node (a DaemonSet's, or a static pod) and moves nowhere."""
    member: bool
    """A quorum's member."""
    ready: bool
    requests: Mapping[str, float]
    """Requested `cpu` in cores, `memory` in bytes, `pods` always 1."""


def project(found: JsonObject) -> JsonObject:
    """Keep of a pod the little that is read here."""
    metadata = metadata_of(found)
    try:
        pod = _pod(found)
    except (MalformedField, AttributeError, TypeError):
        pod = None
    return {"metadata": {"namespace": metadata.get("namespace"), "name": metadata.get("name")}, "pod": pod}


def _pod(found: JsonObject) -> Pod | None:
    if get(found, "status", "phase") in ("Succeeded", "Failed"):
        return None
    metadata = metadata_of(found)
    owners = {owner.get("kind") for owner in metadata.get("ownerReferences") or ()}
    member = strings_of(metadata.get("labels")).get(MEMBER) == "true"
    return Pod(
        get(found, "spec", "nodeName") or "", bool(owners & {"DaemonSet", "Node"}), member,
        condition(found, "Ready") == "True", {**requests(get(found, "spec") or {}), "pods": 1.0},
    )  # fmt: skip


def requests(spec: Mapping[str, Any]) -> dict[str, float]:
    """Give what the scheduler reserves for a pod.

    The larger of what runs together (containers and sidecars) and what any init container needs beside the sidecars
    that were started before it, plus the overhead of its runtime class; or what is asked for the pod as a whole.
    """
    return {name: _request(spec, name) for name in RESOURCES}


def _request(spec: Mapping[str, Any], name: str) -> float:
    sidecars = most_at_start = 0.0
    for container in spec.get("initContainers") or ():
        asked = _asked(container, name)
        if container.get("restartPolicy") == "Always":
            sidecars += asked
            most_at_start = max(most_at_start, sidecars)
        else:
            most_at_start = max(most_at_start, sidecars + asked)
    together = sidecars + sum(_asked(container, name) for container in spec.get("containers") or ())
    overhead = quantity((spec.get("overhead") or {}).get(name, 0))
    return (_asked(spec, name) or max(together, most_at_start)) + overhead


def _asked(part: Mapping[str, Any], name: str) -> float:
    return quantity(((part.get("resources") or {}).get("requests") or {}).get(name, 0))


def demand(nodes: Iterable[Node], pods: Iterable[Pod]) -> int | None:
    """Give how many average nodes hold what is running and waiting; None where that cannot be known.

    A node's room is what is left of it beside the pods that belong to it, averaged over the nodes that are ready. What
    is lost to packing is not counted.
    """
    ready = [node for node in nodes if node.ready and node.counts]
    if not ready or not all(node.room for node in ready):
        return None
    own: dict[str, Counter[str]] = defaultdict(Counter)
    movable: Counter[str] = Counter()
    for pod in pods:
        (own[pod.node] if pod.on_every_node else movable).update(pod.requests)
    needed = 0
    for name, asked in movable.items():
        room = sum(node.room[name] - own[node.name][name] for node in ready) / len(ready)
        if asked and room <= 0:
            return None
        # Rounded before it is rounded up: a sum of floats is a hair above what it should be.
        needed = max(needed, math.ceil(round(asked / room, 6))) if asked else needed
    return needed


class Members(NamedTuple):
    """The members of a quorum."""

    ready: dict[str, int]
    """Number of ready members by zone."""
    size: int
    """Number of members, including those that are not ready, or not placed."""


def quorum_members(nodes: Collection[Node], pods: Iterable[Pod]) -> Members:
    """Count the pods with the label; in a cluster that has none, the nodes of the control plane, where etcd lives."""
    zones = {node.name: node.zone for node in nodes}
    members = [(zones.get(pod.node, ""), pod.ready) for pod in pods if pod.member]
    if not members:
        members = [(node.zone, node.ready) for node in nodes if node.control_plane]
    return Members(dict(Counter(zone for zone, ready in members if zone and ready)), len(members))
