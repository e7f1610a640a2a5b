"""`spec.clusters` and `spec.gracefulEvictionTasks` of a binding, and what each action makes of them. Pure.

Lists in, lists out; what is given back equals what was given where nothing has to change.
Source: Karmada pkg/apis/work/v1alpha2/binding_types_helper.go and pkg/controllers/gracefuleviction/evictiontask.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import NamedTuple

from bus.messages import Evict
from reactor.actions.events import CONTROLLER
from reactor.actions.outcomes import Unfit
from reactor.clients.port import JsonObject

_REASON_MAX = 32  # the CRD's own limits
_MESSAGE_MAX = 1024
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
SEED_WORDS: Mapping[str, str] = {"Directly": "Immediately", "Gracefully": "Graciously", "Never": "Never"}
"""The purge modes as Karmada called them before 1.15; it has refused them since 1.19."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What the served definition of bindings knows of eviction tasks."""

    modes: frozenset[str] | None = frozenset(SEED_WORDS)
    """The enum of `purgeMode`; None: tasks have no such field (before 1.6)."""
    suppresses: bool = True
    """Whether a task can be told to wait for us (`suppressDeletion`)."""
    preserves: bool = True
    """Whether a task can carry state (`preservedLabelState`)."""

    def word(self, mode: str) -> str | None:
        """Give the purge mode as this control plane calls it; None: it is not to be said."""
        if self.modes is None:
            return None
        return mode if mode in self.modes else SEED_WORDS[mode]


class Placement(NamedTuple):
    """Where a binding's copies are wanted, and which are on their way out."""

    clusters: list[JsonObject]
    tasks: list[JsonObject]


def placement_of(binding: JsonObject) -> Placement:
    """Read a binding."""
    spec = binding.get("spec") or {}
    return Placement([*(spec.get("clusters") or [])], [*(spec.get("gracefulEvictionTasks") or [])])


def task_for(action: Evict, dialect: Dialect) -> JsonObject:
    """Give the task that lets the copy leave.

    A grace period is Karmada's own timer: at its end it removes the copy, be it the last one. So it is only given where
    `onGraceExpired` is Purge. Everywhere else `suppressDeletion` holds the task until our Purge, as with Never: without
    either Karmada's limit of ten minutes would do the same. The two cannot stand together.
    Raises Unfit (CannotSuppress, CannotPreserve) where the control plane is too old to be told so.
    """
    task: JsonObject = {
        "fromCluster": action.from_,
        "reason": action.because[:_REASON_MAX] if _REASON.fullmatch(action.because[:_REASON_MAX]) else "Evicted",
        "message": (action.detail or f"decision {action.id}")[:_MESSAGE_MAX],
        "producer": CONTROLLER,
        "creationTimestamp": action.decided_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    if word := dialect.word(action.purge_mode):
        task["purgeMode"] = word
    if action.preserved:
        if not dialect.preserves:
            text = "this Karmada carries no state over (preservedLabelState)"
            raise Unfit("CannotPreserve", f"{text}: upgrade it, or remove statePreservation")
        task["preservedLabelState"] = dict(action.preserved)
    if action.purge_mode == "Directly":
        return task
    if action.purge_mode == "Gracefully" and action.on_grace_expired == "Purge" and action.grace_period_seconds:
        return task | {"gracePeriodSeconds": action.grace_period_seconds}
    if not dialect.suppresses:
        text = "this Karmada knows no suppressDeletion and would remove the old copy after ten minutes in any case"
        raise Unfit("CannotSuppress", f"{text}: upgrade it, or write onGraceExpired: Purge")
    return task | {"suppressDeletion": True}


def evicted(now: Placement, task: JsonObject) -> Placement:
    """Take the task's cluster out, and let the task stand for it. A cluster that holds nothing: nothing changes.

    A task that is there already is not replaced: its time runs since it was made.
    """
    name = task["fromCluster"]
    leaving = [one for one in now.clusters if one.get("name") == name]
    if not leaving:
        return now
    clusters = [one for one in now.clusters if one.get("name") != name]
    if _open(now.tasks, name):
        return Placement(clusters, now.tasks)
    size = {"replicas": leaving[0]["replicas"]} if leaving[0].get("replicas") is not None else {}
    # Karmada gives the state to a cluster that is none of these.
    before = {"clustersBeforeFailover": [one["name"] for one in now.clusters]} if "preservedLabelState" in task else {}
    return Placement(clusters, [*now.tasks, {**task, **size, **before}])


def placed(now: Placement, wanted: Mapping[str, int], *, sized: bool) -> Placement:
    """Let these clusters hold the workload. None is taken out: the copy would go at once, and that is for Evict to say.

    `sized`: the kind has replicas.
    """

    def entry(name: str, before: JsonObject) -> JsonObject:
        if not sized or before.get("replicas") == wanted[name]:
            return before or {"name": name}
        return {"name": name, "replicas": wanted[name]}

    kept = [entry(one["name"], one) if one["name"] in wanted else one for one in now.clusters]
    there = {one["name"] for one in kept}
    return Placement([*kept, *(entry(name, {}) for name in sorted(wanted) if name not in there)], now.tasks)


def purged(now: Placement, name: str) -> Placement:
    """Let the copy go at once: what neither a cluster nor a task stands for, Karmada removes."""
    tasks = [task for task in now.tasks if task.get("fromCluster") != name]
    return Placement([one for one in now.clusters if one.get("name") != name], tasks)


def cancelled(now: Placement, name: str) -> Placement:
    """Put the cluster back in the size that it left with. Without a task nothing leaves, and nothing comes back."""
    task = _open(now.tasks, name)
    if task is None:
        return now
    tasks = [one for one in now.tasks if one.get("fromCluster") != name]
    if any(one.get("name") == name for one in now.clusters):
        return Placement(now.clusters, tasks)
    size = {"replicas": task["replicas"]} if task.get("replicas") is not None else {}
    return Placement([*now.clusters, {"name": name, **size}], tasks)


def copies(spec: JsonObject) -> frozenset[str]:
    """Give the clusters that should still hold a copy: placed, required by others, or leaving but not directly."""
    directly = ("Directly", SEED_WORDS["Directly"])
    required = (one for other in _dicts(spec.get("requiredBy")) for one in _dicts(other.get("clusters")))
    leaving = (one for one in _dicts(spec.get("gracefulEvictionTasks")) if one.get("purgeMode") not in directly)
    names = (*(one.get("name") for one in (*_dicts(spec.get("clusters")), *required)),)
    return frozenset(str(name) for name in (*names, *(task.get("fromCluster") for task in leaving)) if name)


def _dicts(found: object) -> list[JsonObject]:
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _open(tasks: Sequence[JsonObject], name: str) -> JsonObject | None:
    return next((task for task in tasks if task.get("fromCluster") == name), None)
