"""For which copies a Karmada policy has room when an eviction is taken back. Pure.

Karmada's scheduler takes away what is more than `maxGroups`, by name, and divides replicas again that do not add up, be
they those of the Healthy copies. So the carrier writes a placement from which it has nothing to take away, and a
rehearsal shows what that leaves.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

Sizes = Mapping[str, int | None]
"""Cluster to the replicas of its copy; None: the kind has none."""


class Limits(NamedTuple):
    """Limits that Karmada's scheduler applies to a workload."""

    clusters_max: int | None = None
    """More clusters than these it takes away, by name; None: as many as there are."""
    each: int | None = None
    """Duplicated: the replicas of each copy. None: the kind has none, or they are divided."""
    total: int | None = None
    """Divided: the replicas of all copies together; another sum is divided again."""

    def room(self, listed: Collection[object]) -> int | None:
        """Number of further clusters that may be listed; None: any number."""
        return None if self.clusters_max is None else self.clusters_max - len(listed)


class LeavingCopy(NamedTuple):
    """The copy that was leaving."""

    cluster: str
    size: int | None
    """Replicas with which it left; None: not known."""
    before: Collection[str]
    """Clusters that had copies when it left, its own included."""


def taken_back(now: Sizes, left: LeavingCopy, limits: Limits, healthy: Collection[str]) -> dict[str, int | None] | None:
    """Give the copies that there are from then on; None: nothing can be written while no copy is Healthy.

    Where there is room for both, the cluster is back in the size that it left with. Where there is not, the Healthy one
    wins: the new copies are the target from then on, or those of them that are not Healthy make room.
    """
    new = [name for name in now if name not in left.before] or [*now]
    sick = [name for name in new if name not in healthy]
    found = _with(now, left, sick, limits)
    if found is not None:
        others = {name: size for name, size in found.items() if name != left.cluster}
        if others == now or left.cluster in healthy:
            return found
    return dict(now) if any(name in healthy for name in now) else None


def _with(now: Sizes, left: LeavingCopy, sick: Collection[str], limits: Limits) -> dict[str, int | None] | None:
    """Give the copies with this one, at the cost of the sick ones; None: there is no room."""
    kept, size = dict(now), left.size
    if limits.total is not None:
        over = sum(count or 0 for count in now.values()) + (size or 0) - limits.total
        for name in sick:
            less = min(kept[name] or 0, max(over, 0))
            over -= less
            kept[name] = (kept[name] or 0) - less
        kept = {name: count for name, count in kept.items() if count}
        size = (size or 0) - max(over, 0)
        if size <= 0:
            return None
    for name in sick:
        if (room := limits.room(kept)) is not None and room < 1:
            kept.pop(name, None)
    room = limits.room(kept)
    return {**kept, left.cluster: size} if room is None or room >= 1 else None
