"""Karmada's scheduler as far as it decides what becomes of a binding that we write. `tests/contract/karmada` asks the
same of it and of the real one.

Source: Karmada pkg/scheduler (scheduler.go, core/generic_scheduler.go, core/assignment.go, core/division_algorithm.go,
core/spreadconstraint, framework/plugins). Not here: groups of affinities, estimators, quotas.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from reactor.demo.kube import EmulatedCluster, JsonObject
from tests.karmada.regions import Offer, Wanted, chosen

APPLIED = "policy.karmada.io/applied-placement"
_EFFECTS = ("NoSchedule", "NoExecute")
_PROPERTIES = {"provider": "provider", "region": "region", "zone": "zones"}
"""Property of a cluster by the field that a policy spreads by."""
_ROOM = 200
"""The replicas for which each cluster has room, besides those that it has."""
Sizes = dict[str, int]


class Unschedulable(Exception):
    """No placement was found, and the binding stays as it is; its words are the condition's reason and message."""


class NoClusterFits(Exception):
    """No cluster fits: the binding is emptied."""


class Scheduler:
    """Answers each generation of each binding once, like its queue does."""

    def __init__(self, plane: EmulatedCluster) -> None:
        self.plane = plane
        self.silent = False
        self._seen: dict[tuple[str, str, str], int] = {}

    def work(self) -> None:
        """Answer what has changed."""
        if self.silent:
            return
        for plural in ("resourcebindings", "clusterresourcebindings"):
            for binding in self.plane.list(plural):
                metadata = binding["metadata"]
                key = (plural, metadata.get("namespace", ""), metadata["name"])
                if self._seen.get(key) != metadata["generation"]:
                    self._seen[key] = metadata["generation"]
                    self._answer(plural, binding)

    def _answer(self, plural: str, binding: JsonObject) -> None:
        metadata, spec = binding["metadata"], binding["spec"]
        placement = spec.get("placement")
        if placement is None or (spec.get("suspension") or {}).get("scheduling"):
            return
        applied = (metadata.get("annotations") or {}).get(APPLIED)
        condition = {"type": "Scheduled", "status": "True", "reason": "Success", "message": "scheduled"}
        if applied is None or json.loads(applied) != placement or must_schedule(spec):
            try:
                self._place(plural, metadata, placement, [*spread(spec, self.plane.list("clusters")).items()])
            except NoClusterFits as error:
                self._place(plural, metadata, placement, [])
                condition |= {"status": "False", "reason": "NoClusterFit", "message": str(error)}
            except Unschedulable as error:
                condition |= {"status": "False", "reason": "SchedulerError", "message": str(error)}
        self._note(plural, binding, condition)

    def _place(self, plural: str, metadata: Any, placement: Any, found: Sequence[tuple[str, int]]) -> None:
        clusters = [{"name": name, **({"replicas": count} if count else {})} for name, count in found]
        change = {"metadata": {"annotations": {APPLIED: json.dumps(placement)}}, "spec": {"clusters": clusters or None}}
        self.plane.patch(plural, metadata["name"], change, metadata.get("namespace"))

    def _note(self, plural: str, binding: JsonObject, condition: JsonObject) -> None:
        metadata, status = binding["metadata"], binding.get("status") or {}
        others = [one for one in status.get("conditions") or [] if one["type"] != "Scheduled"]
        change: JsonObject = {"conditions": [*others, condition]}
        if condition["status"] == "True":
            change["schedulerObservedGeneration"] = metadata["generation"]
        self.plane.patch(plural, metadata["name"], {"status": change}, metadata.get("namespace"), status=True)


def must_schedule(spec: Mapping[str, Any]) -> bool:
    """True if a binding whose placement is applied is scheduled again: all that is not divided, and divided ones whose
    sum is another."""
    replicas, scheduling = spec.get("replicas") or 0, spec["placement"].get("replicaScheduling") or {}
    if not replicas or scheduling.get("replicaSchedulingType") != "Divided":
        return True
    return bool(replicas != sum(one.get("replicas", 0) for one in spec.get("clusters") or []))


def spread(spec: Mapping[str, Any], clusters: Sequence[JsonObject]) -> Sizes:
    """Give the placement that a binding gets. Raises Unschedulable and NoClusterFits."""
    placement = spec["placement"]
    held = {one["name"]: one.get("replicas", 0) for one in spec.get("clusters") or []}
    leaving = {one["fromCluster"] for one in spec.get("gracefulEvictionTasks") or []}
    fit = [one for one in clusters if _fits(one, placement, held, leaving)]
    if not fit:
        raise NoClusterFits(f"0/{len(clusters)} clusters are available")
    replicas, scheduling = spec.get("replicas") or 0, placement.get("replicaScheduling") or {}
    names = [one["metadata"]["name"] for one in fit]
    names.sort(key=lambda name: (name not in held, -held.get(name, 0), name))
    divided = bool(replicas) and scheduling.get("replicaSchedulingType") == "Divided"
    weighted = divided and scheduling.get("replicaDivisionPreference") == "Weighted"
    dynamic = weighted and (scheduling.get("weightPreference") or {}).get("dynamicWeight")
    if not weighted or dynamic:
        regions = {one["metadata"]["name"]: one["spec"].get("region", "") for one in fit}
        offers = [Offer(name, 100 * (name in held), _ROOM + held.get(name, 0)) for name in names]
        names = _within(offers, placement.get("spreadConstraints") or [], replicas, divided, regions)
    if not divided:
        return dict.fromkeys(names, replicas)
    if weighted and not dynamic:
        return _shares(replicas, _weights(names, scheduling))
    before = {name: held[name] for name in names if name in held}
    lacks = replicas - sum(before.values())
    if lacks <= 0:
        return _shares(replicas, before) if lacks else before
    if not dynamic:  # aggregated: as few clusters as have room, and each has
        return before | {names[0]: before.get(names[0], 0) + lacks}
    more = _shares(lacks, dict.fromkeys(sorted(names), 1))
    return {name: before.get(name, 0) + more.get(name, 0) for name in {**before, **more}}


def _fits(cluster: JsonObject, placement: Mapping[str, Any], held: Sizes, leaving: set[str]) -> bool:
    name = cluster["metadata"]["name"]
    if name in leaving or not _affine(name, placement.get("clusterAffinity")):
        return False
    fields = [one.get("spreadByField") for one in placement.get("spreadConstraints") or []]
    if not all(cluster["spec"].get(_PROPERTIES[field]) for field in fields if field in _PROPERTIES):
        return False
    if name in held:
        return True
    taints = [one for one in cluster["spec"].get("taints") or [] if one["effect"] in _EFFECTS]
    return all(any(_tolerates(one, taint) for one in placement.get("clusterTolerations") or []) for taint in taints)


def _affine(name: str, affinity: Mapping[str, Any] | None) -> bool:
    affinity = affinity or {}
    return name not in affinity.get("exclude", ()) and name in (affinity.get("clusterNames") or [name])


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return bool((toleration.get("key"), toleration.get("value", "")) == (taint["key"], taint.get("value", "")))


def _within(
    offers: Sequence[Offer], constraints: Sequence[Mapping[str, Any]], replicas: int, divided: bool, regions: Any
) -> list[str]:
    """Choose from these, best first. Zones, providers and labels are not looked at."""
    limits = {one.get("spreadByField"): (one.get("minGroups", 1), one.get("maxGroups", 0)) for one in constraints}
    least, most = limits.get("cluster", (0, 0))
    if not limits:
        return [one.name for one in offers]
    if "region" in limits:
        groups: dict[str, list[Offer]] = {}
        for one in offers:
            groups.setdefault(regions[one.name], []).append(one)
        if len(groups) < limits["region"][0]:
            raise Unschedulable("the number of feasible region is less than spreadConstraint.MinGroups")
        found = chosen(groups, Wanted(replicas, divided, limits["region"], (least, most)))
        if not found:
            raise Unschedulable("the number of clusters is less than the cluster spreadConstraint.MinGroups")
        return found
    if "cluster" not in limits:
        raise Unschedulable("just support cluster and region spread constraint")
    if len(offers) < least:
        raise Unschedulable("the number of feasible clusters is less than spreadConstraint.MinGroups")
    if not most:
        raise Unschedulable("no clusters available to schedule")
    return [one.name for one in offers[:most]]


def _weights(names: Sequence[str], scheduling: Mapping[str, Any]) -> Sizes:
    listed = (scheduling.get("weightPreference") or {}).get("staticWeightList") or []
    weights = {
        name: max((one["weight"] for one in listed if _affine(name, one["targetCluster"])), default=0) for name in names
    }
    return {name: weight for name, weight in weights.items() if weight} or dict.fromkeys(names, 1)


def _shares(replicas: int, weights: Sizes) -> Sizes:
    """Largest weights first get what is left over, and who gets none is no target."""
    whole = sum(weights.values())
    shares = {name: replicas * weight // whole for name, weight in weights.items()}
    for name in sorted(weights, key=lambda name: (-weights[name], name))[: replicas - sum(shares.values())]:
        shares[name] += 1
    return {name: count for name, count in shares.items() if count}
