"""Choice of regions, and of their clusters, by Karmada's scheduler.

Source: Karmada pkg/scheduler/core/spreadconstraint (group_clusters.go, select_groups.go, select_clusters_by_region.go).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

_UNIT = 1000


class Offer(NamedTuple):
    """A cluster that fits."""

    name: str
    score: int
    """100: it is listed already."""
    room: int
    """The replicas that it has, and those that it could have besides."""


class Wanted(NamedTuple):
    """Demands of a policy."""

    replicas: int
    divided: bool
    regions: tuple[int, int]
    """At least and at most."""
    clusters: tuple[int, int]


def chosen(regions: Mapping[str, Sequence[Offer]], wanted: Wanted) -> list[str]:
    """Give the clusters of the best regions, each region's best one first; none: no regions do."""
    scores = {name: _score(offers, wanted) for name, offers in regions.items()}
    ordered = sorted(regions, key=lambda name: (len(regions[name]), -scores[name], name))
    paths = [sorted(one, key=lambda name: (-scores[name], name)) for one in _paths(ordered, regions, wanted)]
    if not paths:
        return []
    paths.sort(key=lambda one: (-sum(scores[name] for name in one), -sum(len(regions[name]) for name in one)))
    best = paths[0]
    for path in paths:
        if len(path) < len(best) and best[: len(path)] == path:
            best = path
    first = [regions[name][0] for name in best]
    others = sorted(
        (offer for name in best for offer in regions[name][1:]), key=lambda one: (-one.score, -one.room, one.name)
    )
    return [one.name for one in first + others[: max(wanted.clusters[1] - len(first), 0)]]


def _paths(ordered: Sequence[str], regions: Mapping[str, Sequence[Offer]], wanted: Wanted) -> Iterator[list[str]]:
    """Give each set of regions that is enough with its last one, and not before."""
    least, most = wanted.regions

    def search(path: list[str], rest: Sequence[str]) -> Iterator[list[str]]:
        if sum(len(regions[name]) for name in path) >= wanted.clusters[0] and least <= len(path) <= most:
            yield path
        elif len(path) < most:
            for index, name in enumerate(rest):
                yield from search([*path, name], rest[index + 1 :])

    return search([], ordered)


def _score(offers: Sequence[Offer], wanted: Wanted) -> int:
    """Room first, then who holds it already."""
    if not wanted.divided:
        roomy = [one.score for one in offers if one.room >= wanted.replicas]
        return len(roomy) * _UNIT + sum(roomy) // len(roomy) if roomy else 0
    target = math.ceil(wanted.replicas / wanted.regions[0])
    least = max(wanted.regions[0], wanted.clusters[0])
    room = scores = count = 0
    for one in offers:
        room, scores, count = room + one.room, scores + one.score, count + 1
        if count >= least and room >= target:
            break
    return room * _UNIT + scores // len(offers) if room < target else target * _UNIT + scores // count
