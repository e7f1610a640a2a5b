"""Predicts the placement by Karmada's scheduler of a workload that is spread by region, before anything is written.
Pure.

At every change of a binding whose copies are full ones it chooses regions again, and a region with more clusters that
have room for the whole workload comes before the one in which it runs. What it then takes out of `spec.clusters` is
deleted at once. Spread by clusters alone it keeps what is listed, and divided replicas that add up it leaves alone:
`moves` counts on both. Source: Karmada pkg/scheduler/core/spreadconstraint, pkg/scheduler/framework/plugins.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain

from pydantic import TypeAdapter, ValidationError

from bus.messages import Taint
from reactor.actions.karmada.tasks import BindingPlacement, placement_of
from reactor.actions.outcomes import Declined
from reactor.clients.kubernetes_port import JsonObject
from reactor.clients.object_fields import MalformedField
from reactor.clients.quantities import quantity
from rules.kinds.workload.affinity import affine
from rules.kinds.workload.placement import ClusterAffinity, Toleration
from rules.kinds.workload.spread import Bounds, Insufficient, Option, by_group, group_score
from rules.kinds.workload.tolerations import may_come

_ENOUGH = 2**31 - 1
_LISTED = 100
"""The score of a cluster that is listed."""
_TAINTS = TypeAdapter(tuple[Taint, ...])
_TOLERATIONS = TypeAdapter(tuple[Toleration, ...])


class WouldMove(Declined):
    """The scheduler would take the last healthy copy away."""

    def __init__(self, to: Collection[str]) -> None:
        text = f"Karmada's scheduler would take it to {', '.join(sorted(to))}, by its regions"
        super().__init__("SchedulerWouldMove", f"{text}, and delete the last copy that is Healthy: nothing is written")


def spread_by_region(binding: JsonObject) -> bool:
    """True if regions count for this binding: they do not for replicas that are divided."""
    return "region" in _bounds(binding) and not _divided(binding)


def refuse_if_lost(
    binding: JsonObject, after: BindingPlacement, clusters: Sequence[JsonObject], healthy: Collection[str]
) -> BindingPlacement:
    """Give what is to be written. `clusters`: all Cluster objects.

    Raises WouldMove where the scheduler, in its answer, would take away the last copy that is Healthy now.
    """
    if after == placement_of(binding) or not spread_by_region(binding):
        return after
    held = {str(task.get("fromCluster")) for task in after.tasks if task.get("suppressDeletion")}
    kept = {str(one.get("name")) for one in after.clusters} | held
    would = _answer(binding, after, clusters) if kept & {*healthy} else None
    if would is None or (would | held) & {*healthy}:
        return after
    raise WouldMove(would)


def _answer(binding: JsonObject, after: BindingPlacement, clusters: Sequence[JsonObject]) -> set[str] | None:
    """Give the clusters that it would choose; None: it would choose none, and leave everything as it is."""
    spec, bounds = binding.get("spec") or {}, _bounds(binding)
    listed = {str(one.get("name")) for one in after.clusters}
    evicted = {str(task.get("fromCluster")) for task in after.tasks}
    needs, requests = spec.get("replicas") or 0, (spec.get("replicaRequirements") or {}).get("resourceRequest") or {}
    regions: dict[str, list[Option]] = {}
    for one in clusters:
        name, region = one["metadata"]["name"], (one.get("spec") or {}).get("region")
        if (
            region
            and name not in evicted
            and _knows(binding, one, name in listed)
            and _may(binding, one, name in listed)
        ):
            room = _room(one, requests) + (needs if name in listed else 0)
            regions.setdefault(region, []).append(Option(name, _LISTED * (name in listed), room))
    for options in regions.values():
        options.sort(key=lambda one: (-one.score, -one.available, one.name))
    scores = {region: group_score(options, needs) for region, options in regions.items()}
    try:
        return {one.name for one in by_group(regions, scores, bounds["region"], bounds.get("cluster", Bounds()))}
    except Insufficient:
        return None


def _bounds(binding: JsonObject) -> Mapping[str, Bounds]:
    constraints = ((binding.get("spec") or {}).get("placement") or {}).get("spreadConstraints") or []
    return {
        one["spreadByField"]: Bounds(one.get("minGroups") or 0, one.get("maxGroups") or None)
        for one in constraints
        if one.get("spreadByField")
    }


def _divided(binding: JsonObject) -> bool:
    spec = binding.get("spec") or {}
    scheduling = (spec.get("placement") or {}).get("replicaScheduling") or {}
    return bool(spec.get("replicas")) and scheduling.get("replicaSchedulingType") == "Divided"


def _knows(binding: JsonObject, cluster: JsonObject, listed: bool) -> bool:
    """True if the cluster serves the workload's kind (Karmada's APIEnablement); one that says nothing may."""
    resource, served = (binding.get("spec") or {}).get("resource"), (cluster.get("status") or {}).get("apiEnablements")
    if listed or not resource or not served:
        return True
    kinds = [one.get("resources") or () for one in served if one.get("groupVersion") == resource.get("apiVersion")]
    return any(one.get("kind") == resource.get("kind") for one in chain.from_iterable(kinds))


def _may(binding: JsonObject, cluster: JsonObject, listed: bool) -> bool:
    """True if the cluster is a candidate. A part of a policy that we cannot read is assumed to allow everything."""
    placement, spec, metadata = binding["spec"]["placement"], cluster.get("spec") or {}, cluster["metadata"]
    fields = {key: spec[key] for key in ("provider", "region", "zone") if spec.get(key)}
    terms = placement.get("clusterAffinities") or [placement.get("clusterAffinity") or {}]
    observed = (binding.get("status") or {}).get("schedulerObservingAffinityName")
    term = next((one for one in terms if one.get("affinityName") == observed), terms[0])
    try:
        keys = {key: value for key, value in term.items() if key not in ("affinityName", "overflowAffinities")}
        affinity = ClusterAffinity.model_validate(keys, strict=False)
        if not affine(affinity, metadata["name"], metadata.get("labels") or {}, fields):
            return False
        taints = _TAINTS.validate_python(_known(spec.get("taints"), "key", "value", "effect"))
        tolerations = _TOLERATIONS.validate_python(placement.get("clusterTolerations") or (), strict=False)
    except ValidationError:
        return True
    return listed or may_come(taints, tolerations)


def _known(found: Iterable[JsonObject] | None, *keys: str) -> list[JsonObject]:
    return [{key: one[key] for key in keys if key in one} for one in found or ()]


def _room(cluster: JsonObject, requests: Mapping[str, str]) -> int:
    """Give for how many more replicas there is room, by the cluster's own summary; one that says nothing has room."""
    summary = (cluster.get("status") or {}).get("resourceSummary") or {}
    room = _ENOUGH
    for resource, each in {"pods": "1", **requests}.items():
        try:
            has = quantity((summary.get("allocatable") or {})[resource])
            used = [(summary.get(part) or {}).get(resource, 0) for part in ("allocated", "allocating")]
            room = min(room, int((has - sum(map(quantity, used))) / quantity(each)))
        except (KeyError, MalformedField, ZeroDivisionError):
            continue
    return max(room, 0)
