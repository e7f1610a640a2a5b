"""`spec.clusters` and `spec.gracefulEvictionTasks` of a binding, and the tasks that we write. Pure.

Source: Karmada pkg/apis/work/v1alpha2/binding_types_helper.go and pkg/controllers/gracefuleviction/evictiontask.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import NamedTuple

from bus.messages import Evict, Eviction, Place
from reactor.actions.events import CONTROLLER
from reactor.actions.outcomes import Declined
from reactor.clients.kubernetes_port import JsonObject
from rules.core.reasons import Because

_REASON_MAX = 32  # the CRD's own limits
_MESSAGE_MAX = 1024
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
SEED_WORDS: Mapping[str, str] = {"Directly": "Immediately", "Gracefully": "Graciously", "Never": "Never"}
"""The purge modes as Karmada called them before 1.15; it has refused them since 1.19."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """Fields and words for eviction tasks in the served definition of bindings."""

    modes: frozenset[str] | None = frozenset(SEED_WORDS)
    """The enum of `purgeMode`; None: tasks have no such field (before 1.6)."""
    suppresses: bool = True
    """True if a task can be told to wait for us (`suppressDeletion`)."""
    preserves: bool = True
    """True if a task can carry state (`preservedLabelState`)."""

    def word(self, mode: str) -> str | None:
        """Give the purge mode as this control plane calls it; None: it is not to be said."""
        if self.modes is None:
            return None
        return mode if mode in self.modes else SEED_WORDS[mode]


class BindingPlacement(NamedTuple):
    """Clusters in which a binding's copies are wanted, and the tasks of the copies on their way out."""

    clusters: list[JsonObject]
    tasks: list[JsonObject]


def placement_of(binding: JsonObject) -> BindingPlacement:
    """Read a binding."""
    spec = binding.get("spec") or {}
    return BindingPlacement([*(spec.get("clusters") or [])], [*(spec.get("gracefulEvictionTasks") or [])])


def task_for(action: Place | Evict, eviction: Eviction, dialect: Dialect) -> JsonObject:
    """Give the task that lets the copy leave.

    Karmada's own timers remove the copy at their end, be it the last one; and a task without `suppressDeletion` also
    ends where the scheduler leaves no target. So our Purge alone ends it. A control plane that is too old for that gets
    the grace period where `onGraceExpired` is Purge.
    Raises Declined (CannotSuppress, CannotPreserve) where the control plane is too old to be told so.
    """
    because = Because.TOLERATION_ELAPSED.value if isinstance(action, Place) else action.because
    task: JsonObject = {
        "fromCluster": eviction.from_,
        "reason": because[:_REASON_MAX] if _REASON.fullmatch(because[:_REASON_MAX]) else "Evicted",
        "message": (action.detail or f"decision {action.id}")[:_MESSAGE_MAX],
        "producer": CONTROLLER,
        "creationTimestamp": action.decided_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    if word := dialect.word(eviction.purge_mode):
        task["purgeMode"] = word
    if eviction.preserved:
        if not dialect.preserves:
            text = "this Karmada carries no state over (preservedLabelState)"
            raise Declined("CannotPreserve", f"{text}: upgrade it, or remove statePreservation")
        task["preservedLabelState"] = dict(eviction.preserved)
    if eviction.purge_mode == "Directly":
        return task
    if dialect.suppresses:
        return task | {"suppressDeletion": True}
    if eviction.purge_mode == "Gracefully" and eviction.on_grace_expired == "Purge" and eviction.grace_period_seconds:
        return task | {"gracePeriodSeconds": eviction.grace_period_seconds}
    text = "this Karmada knows no suppressDeletion and would remove the old copy after ten minutes in any case"
    raise Declined("CannotSuppress", f"{text}: upgrade it, or write onGraceExpired: Purge")


def held_by_us(spec: JsonObject) -> frozenset[str]:
    """Give the clusters that keep their copy by a task of ours, until we end it."""
    gracefully = ("Gracefully", SEED_WORDS["Gracefully"])
    ours = (one for one in _dicts(spec.get("gracefulEvictionTasks")) if one.get("producer") == CONTROLLER)
    held = (one.get("fromCluster") for one in ours if one.get("purgeMode", gracefully[0]) in gracefully)
    return frozenset(str(name) for name in held if name)


def copies(spec: JsonObject) -> frozenset[str]:
    """Give the clusters that should still hold a copy: placed, required by others, or leaving but not directly."""
    directly = ("Directly", SEED_WORDS["Directly"])
    required = (one for other in _dicts(spec.get("requiredBy")) for one in _dicts(other.get("clusters")))
    leaving = (one for one in _dicts(spec.get("gracefulEvictionTasks")) if one.get("purgeMode") not in directly)
    names = (*(one.get("name") for one in (*_dicts(spec.get("clusters")), *required)),)
    return frozenset(str(name) for name in (*names, *(task.get("fromCluster") for task in leaving)) if name)


def _dicts(found: object) -> list[JsonObject]:
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
