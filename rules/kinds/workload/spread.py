"""Over which clusters copies are spread: by cluster, and by region, zone, provider or label.

Source: karmada-io/karmada pkg/scheduler/core/spreadconstraint/. There only regions make groups; here any field or label
does, in the same way. Clusters come in order of preference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

GROUPS_MAX = 16
"""Largest number of groups that are searched for the best set: 65,536 sets."""
ROOM_UNIT = 1000
"""A group is worth more by each cluster with room in it than by any score."""


class Insufficient(Exception):
    """No choice of clusters does; the reason is a word of Karmada's scheduler."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Bounds:
    """minGroups and maxGroups of a Karmada spread constraint; `most=None` is unbounded."""

    least: int = 1
    most: int | None = None

    def cut(self, count: int) -> int:
        """`count`, at most `most`."""
        return count if self.most is None else min(count, self.most)


@dataclass(frozen=True, slots=True)
class Option:
    """A cluster that could be chosen."""

    name: str
    score: int
    """100: it holds the workload already; 0: it does not."""
    available: int
    """Free room, and what it holds."""


@dataclass(frozen=True, slots=True)
class GroupOption:
    """A region, or whatever else makes groups."""

    name: str
    value: int
    """Number of its clusters."""
    weight: int
    """Its score."""


def by_cluster(options: Sequence[Option], bounds: Bounds, needs: int | None) -> list[Option]:
    """Choose the first ones. `needs`: room for so many replicas is needed in all; None: room does not matter.

    Where there is too little, the last choices give way to the roomiest of the others, one by one. Raises Insufficient.
    """
    if len(options) < bounds.least:
        raise Insufficient("too_few_clusters", f"{len(options)} of at least {bounds.least} clusters")
    count = bounds.cut(len(options))
    chosen, rest = list(options[:count]), list(options[count:])
    for last in range(count - 1, -1, -1):
        if needs is None or _room(chosen) >= needs:
            break
        best = max(range(len(rest)), key=lambda index: (rest[index].available, -index), default=None)
        if best is not None and rest[best].available > chosen[last].available:
            chosen[last], rest[best] = rest[best], chosen[last]
    if needs is not None and _room(chosen) < needs:
        raise Insufficient("not_enough_room", f"room for {_room(chosen)} of {needs} replicas")
    return chosen


def _room(options: Sequence[Option]) -> int:
    return sum(option.available for option in options)


def best_groups(groups: Sequence[GroupOption], bounds: Bounds, target: int) -> list[str]:
    """Choose groups that have `target` clusters together, the heaviest first; empty: there is no such choice.

    Of all sets that are enough as soon as their last group is added: the heaviest, then the largest, then the first
    found. Where the heaviest groups of the winner are enough by themselves, these. Where more groups are needed than
    are searched, the heaviest.
    """
    if bounds.least > GROUPS_MAX:
        return _heaviest(groups, bounds, target)
    most = bounds.cut(len(groups))
    pool = sorted(groups, key=lambda one: (-one.weight, -one.value, one.name))[:GROUPS_MAX]
    found: list[list[GroupOption]] = []

    def search(path: list[GroupOption], value: int, rest: Sequence[GroupOption]) -> None:
        if value >= target and bounds.least <= len(path) <= most:
            found.append(sorted(path, key=lambda one: (-one.weight, one.name)))
        elif len(path) < most:
            for index, group in enumerate(rest):
                search([*path, group], value + group.value, rest[index + 1 :])

    search([], 0, sorted(pool, key=lambda one: (one.value, -one.weight, one.name)))
    found.sort(key=lambda path: (-sum(one.weight for one in path), -sum(one.value for one in path)))
    best = found[0] if found else []
    for path in found:
        if len(path) < len(best) and best[: len(path)] == path:
            best = path
    return [one.name for one in best] or _heaviest(groups, bounds, target)


def _heaviest(groups: Sequence[GroupOption], bounds: Bounds, target: int) -> list[str]:
    """Choose the heaviest, as many as are needed, and where these are too small, larger ones for the smallest."""
    ranked = sorted(groups, key=lambda one: (-one.weight, -one.value, one.name))
    count = min(bounds.least, len(ranked))
    while sum(one.value for one in ranked[:count]) < target and count < bounds.cut(len(ranked)):
        count += 1
    path, rest = ranked[:count], ranked[count:]
    while rest and sum(one.value for one in path) < target:
        smallest = min(reversed(path), key=lambda one: (one.value, one.weight))
        largest = max(rest, key=lambda one: one.value)
        if largest.value <= smallest.value:
            break
        path[path.index(smallest)] = largest
        rest.remove(largest)
    enough = bounds.least <= count and sum(one.value for one in path) >= target
    return [one.name for one in sorted(path, key=lambda one: (-one.weight, one.name))] if enough else []


def by_group(
    groups: Mapping[str, Sequence[Option]], scores: Mapping[str, int], group_bounds: Bounds, bounds: Bounds
) -> list[Option]:
    """Choose groups, then the best cluster of each, then the best of their others. Raises Insufficient."""
    if len(groups) < group_bounds.least:
        raise Insufficient("too_few_regions", f"{len(groups)} of at least {group_bounds.least} groups")
    options = [GroupOption(name, len(members), scores[name]) for name, members in groups.items()]
    names = best_groups(options, group_bounds, bounds.least)
    if not names:
        raise Insufficient("too_few_clusters", f"no groups have {bounds.least} clusters together")
    chosen = [groups[name][0] for name in names]
    others = [option for name in names for option in groups[name][1:]]
    others.sort(key=lambda one: (-one.score, -one.available, one.name))
    return chosen + others[: max(bounds.cut(len(chosen) + len(others)) - len(chosen), 0)]


def group_score(options: Sequence[Option], needs: int) -> int:
    """Score of a group: first by how many of its clusters have room for `needs` replicas, then by their scores."""
    roomy = [option for option in options if option.available >= needs]
    return len(roomy) * ROOM_UNIT + (sum(option.score for option in roomy) // len(roomy) if roomy else 0)
