"""Changes that each action makes to a binding's clusters and eviction tasks. Pure.

Karmada's scheduler answers each write, and what it takes out of `spec.clusters` is deleted at once. It keeps the
clusters that are listed, as long as they are no more than the policy allows, and fills the list up to that number. A
workload that is divided it leaves alone while the replicas of the clusters add up. So what is written here always is a
placement that it has nothing to take away from, and each copy that leaves is held by a task. Source: Karmada
pkg/scheduler/scheduler.go (doScheduleBinding), pkg/scheduler/core.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from reactor.actions.karmada.tasks import BindingPlacement
from reactor.actions.outcomes import Declined
from reactor.clients.kubernetes_port import JsonObject
from rules.kinds.workload.karmada_room import LeavingCopy, Limits, taken_back


def limits_of(binding: JsonObject) -> Limits:
    """Read the placement that Karmada has copied from the policy."""
    spec = binding.get("spec") or {}
    placement, replicas = spec.get("placement") or {}, spec.get("replicas") or None
    scheduling = placement.get("replicaScheduling") or {}
    divided = replicas is not None and scheduling.get("replicaSchedulingType") == "Divided"
    dynamic = (scheduling.get("weightPreference") or {}).get("dynamicWeight")
    static = divided and scheduling.get("replicaDivisionPreference") == "Weighted" and not dynamic
    spread = [] if static else placement.get("spreadConstraints") or []  # the scheduler ignores them there
    most = [one["maxGroups"] for one in spread if one.get("spreadByField") == "cluster" and one.get("maxGroups")]
    return Limits(min(most, default=None), None if divided else replicas, replicas if divided else None)


def moved(
    now: BindingPlacement, plan: Mapping[str, int], tasks: Sequence[JsonObject], limits: Limits
) -> BindingPlacement:
    """Let the tasks' clusters leave, and those of the plan hold the workload.

    A cluster that is in neither stays: another writer has put it there, and it comes before what is new. A task that is
    there already is not replaced: its time runs since it was made. Raises Declined (SchedulerBehind).
    """
    leaving = {task["fromCluster"] for task in tasks}
    left = {one["name"]: one for one in now.clusters if one["name"] in leaving}
    stay = [one for one in now.clusters if one["name"] not in left]
    there, room = {one["name"] for one in stay}, limits.room(stay)
    held = {task.get("fromCluster") for task in now.tasks}
    new = [name for name in sorted(plan) if name not in there | held | leaving]
    new = new if room is None else new[: max(room, 0)]
    clusters = _sized(stay, new, plan, limits)
    before = [one["name"] for one in now.clusters]
    made = [
        _made(task, left[task["fromCluster"]], before) for task in tasks if task["fromCluster"] in left.keys() - held
    ]
    after = BindingPlacement(clusters, [*now.tasks, *made])
    if after != now and room is not None and room < 0:
        text = f"{len(stay)} clusters hold it and the policy allows {limits.clusters_max}"
        raise Declined("SchedulerBehind", f"{text}: any write would let Karmada's scheduler choose which copies go")
    return after


def _sized(stay: Sequence[JsonObject], new: Sequence[str], plan: Mapping[str, int], limits: Limits) -> list[JsonObject]:
    if limits.total is None:
        return [*stay, *({"name": name, "replicas": limits.each} if limits.each else {"name": name} for name in new)]
    has = {one["name"]: one.get("replicas") or 0 for one in stay}
    lacks = limits.total - sum(has.values())
    for name in [*has, *new]:
        more = min(max(plan.get(name, 0) - has.get(name, 0), 0), max(lacks, 0))
        has[name] = has.get(name, 0) + more
        lacks -= more
    known = {one["name"]: one for one in stay}
    return [
        {**known.get(name, {"name": name}), "replicas": count} for name, count in has.items() if count or name in known
    ]


def _made(task: JsonObject, entry: JsonObject, before: list[str]) -> JsonObject:
    size = {"replicas": entry["replicas"]} if entry.get("replicas") is not None else {}
    # Karmada gives preserved state to a cluster that is none of these; a cancelled eviction takes back what is none.
    return {**task, **size, "clustersBeforeFailover": before}


def purged(now: BindingPlacement, name: str, healthy: Collection[str]) -> BindingPlacement:
    """Let the copy go: Karmada removes a copy for which there is neither a cluster nor a task.

    A cluster that is listed again stays: another writer wants it there. Raises Declined (LastHealthyCopy).
    """
    tasks = _without(now.tasks, name)
    if tasks != now.tasks and name in healthy and not any(_name(one) in healthy for one in now.clusters):
        raise Declined("LastHealthyCopy", f"Karmada finds the copy on {name} Healthy, and no other one")
    return BindingPlacement(now.clusters, tasks)


def cancelled(now: BindingPlacement, name: str, limits: Limits, healthy: Collection[str]) -> BindingPlacement:
    """Take the eviction back, so that the scheduler has nothing to take away.

    Without a task nothing leaves, and nothing comes back. Raises Declined (NoHealthyCopy).
    """
    task = next((one for one in now.tasks if one.get("fromCluster") == name), None)
    if task is None:
        return now
    tasks = _without(now.tasks, name)
    if name in map(_name, now.clusters):
        return BindingPlacement(now.clusters, tasks)
    left = LeavingCopy(name, task.get("replicas"), task.get("clustersBeforeFailover") or ())
    sizes = taken_back({_name(one): one.get("replicas") for one in now.clusters}, left, limits, healthy)
    if sizes is None:
        text = f"the policy has no room for both, and neither {name} nor another copy is Healthy yet"
        raise Declined("NoHealthyCopy", text)
    known = {_name(one): one for one in (*now.clusters, _back(task))}
    clusters = [known[one] if size is None else {**known[one], "replicas": size} for one, size in sizes.items()]
    return BindingPlacement(clusters, tasks)


def returned(now: BindingPlacement, name: str) -> BindingPlacement:
    """Let the cluster be back in the place of those that are there since it left, and the eviction be over."""
    task = next(one for one in now.tasks if one.get("fromCluster") == name)
    before = task.get("clustersBeforeFailover") or ()
    clusters = [*(one for one in now.clusters if _name(one) in before), _back(task)]
    return BindingPlacement(clusters, _without(now.tasks, name))


def _back(task: JsonObject) -> JsonObject:
    """Give the cluster in the size that it left with."""
    size = {"replicas": task["replicas"]} if task.get("replicas") is not None else {}
    return {"name": task["fromCluster"], **size}


def _without(tasks: Iterable[JsonObject], name: str) -> list[JsonObject]:
    return [task for task in tasks if task.get("fromCluster") != name]


def _name(one: JsonObject) -> str:
    return str(one.get("name"))
