"""Pods of a zone that have to leave, and their order. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from reactor.actions.annotations import notes_of
from reactor.clients.kubernetes_port import JsonObject

HANGS_AFTER = timedelta(minutes=2)  # machine-controller-manager's time for a volume to be detached
_MIRROR = "kubernetes.io/config.mirror"  # a static pod's shadow: its kubelet runs it from a file, whatever we say
_OVER = frozenset({"Succeeded", "Failed"})
_CLAIMS = frozenset({"persistentVolumeClaim", "ephemeral"})


def must_leave(pod: JsonObject) -> bool:
    """True if a pod can and has to be evicted: no DaemonSet's, no mirror pod, not completed. As `kubectl drain` has it.

    One that is on its way out still counts: the zone is not empty before it is gone.
    """
    owners = pod["metadata"].get("ownerReferences") or []
    by_daemon_set = any(owner.get("controller") and owner.get("kind") == "DaemonSet" for owner in owners)
    over = (pod.get("status") or {}).get("phase") in _OVER
    return not (by_daemon_set or over or _MIRROR in notes_of(pod))


def is_leaving(pod: JsonObject) -> bool:
    """True if it has been told to end."""
    return "deletionTimestamp" in pod["metadata"]


def hangs(pod: JsonObject, now: datetime) -> bool:
    """True if it should have ended, grace period included, longer than HANGS_AFTER ago."""
    ends = pod["metadata"].get("deletionTimestamp")
    return ends is not None and now - datetime.fromisoformat(ends) > HANGS_AFTER


def has_volume(pod: JsonObject) -> bool:
    """True if it has a volume that has to be detached before its successor can start."""
    return any(_CLAIMS & volume.keys() for volume in (pod.get("spec") or {}).get("volumes") or [])


def in_order(pods: Iterable[JsonObject]) -> Sequence[JsonObject]:
    """Low priority first, so that what matters most moves when there is room; those without volumes before others."""
    return sorted(pods, key=lambda pod: ((pod.get("spec") or {}).get("priority") or 0, has_volume(pod), name_of(pod)))


def next_to_leave(
    pods: Sequence[JsonObject], now: datetime, *, parallel: int, asked: Iterable[str] = ()
) -> Sequence[JsonObject]:
    """Give the pods to evict now: so many that `parallel` without and one with a volume are on their way out.

    One that hangs keeps no other back. `asked`: uids of pods that are not to be asked again now.
    """
    leaving = [pod for pod in pods if is_leaving(pod) and not hangs(pod, now)]
    room = {False: parallel - sum(not has_volume(pod) for pod in leaving), True: 1 - sum(map(has_volume, leaving))}
    skipped = frozenset(asked)
    chosen: list[JsonObject] = []
    for pod in in_order(pods):
        if not is_leaving(pod) and uid_of(pod) not in skipped and room[has_volume(pod)] > 0:
            room[has_volume(pod)] -= 1
            chosen.append(pod)
    return chosen


def name_of(pod: JsonObject) -> str:
    """`shop/web-0`."""
    return f"{pod['metadata'].get('namespace', '')}/{pod['metadata']['name']}"


def uid_of(pod: JsonObject) -> str:
    return str(pod["metadata"].get("uid", ""))
