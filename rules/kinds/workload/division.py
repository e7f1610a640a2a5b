"""Division of replicas among clusters. Karmada's way since v1.16: Webster (Sainte-Laguë), in whole numbers. Karmada's
way since v1.16: Webster (Sainte-Laguë), in whole numbers.

Webster is monotone: one replica more never takes one away from a cluster. Ties fall to the cluster with fewer replicas,
then by name, upwards or downwards by the workload's uid, so that the remainders of many workloads spread.
Source: karmada-io/karmada pkg/util/helper/webstermethod.go, pkg/scheduler/core/division_algorithm.go, assignment.go.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence

Counts = Mapping[str, int]
"""Cluster to replicas, weight or room."""
_SHIFT = 80
"""Two fractions with denominators below 2^40 differ by more than 2^-80, so their scaled floors differ as they do."""


class NotEnoughRoom(Exception):
    """The clusters together have room for fewer replicas than are wanted."""

    def __init__(self, room: int, wanted: int) -> None:
        super().__init__(f"room for {room} of {wanted} replicas")
        self.room = room


def backwards(uid: str) -> bool:
    """True if ties fall by descending name: where the FNV-1a hash (32 bit) of the uid is odd."""
    value = 0x811C9DC5
    for byte in uid.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return bool(uid) and value % 2 == 1


def webster(seats: int, weights: Counts, held: Counts | None = None, *, descending: bool = False) -> dict[str, int]:
    """Hand out new seats by weight, one by one to the largest weight / (2 x seats + 1).

    `held`: seats that are there already; who holds some and has no weight has weight 0. Gives all seats after, by name.
    """
    out = {**dict.fromkeys(weights, 0), **(held or {})}
    left = seats - _at_once(seats, weights, out)
    place = {name: index for index, name in enumerate(sorted(out, reverse=descending))}

    def entry(name: str) -> tuple[int, int, int, str]:
        return -((weights.get(name, 0) << _SHIFT) // (2 * out[name] + 1)), out[name], place[name], name

    queue = [entry(name) for name in out]
    heapq.heapify(queue)
    for _ in range(left if queue else 0):
        name = queue[0][3]
        out[name] += 1
        heapq.heapreplace(queue, entry(name))
    return dict(sorted(out.items()))


def _at_once(seats: int, weights: Counts, out: dict[str, int]) -> int:
    """Give out, in one go, seats that come first in any case, and say how many: a million take no million rounds.

    With the divisor d, every cluster has round(weight / d) seats before one falls below the quotient 1 / d; this
    divisor is so large that these are never more than there are.
    """
    total, spare = sum(weights.values()), seats - len(weights)
    if spare <= 4 * len(weights) or total == 0 or any(out.values()):
        return 0
    given = 0
    for name, weight in weights.items():
        out[name] = max((2 * weight * spare - total) // (2 * total), 0)
        given += out[name]
    return given


def by_static_weight(
    replicas: int, clusters: Iterable[str], weights: Counts, *, descending: bool = False
) -> dict[str, int]:
    """Divide by fixed weights. Clusters without one get nothing, unless none has one: then all are equal."""
    known = {name: weights[name] for name in sorted(clusters) if weights.get(name)}
    return webster(replicas, known or dict.fromkeys(sorted(clusters), 1), descending=descending)


def by_room(
    replicas: int, room: Counts, held: Counts, *, aggregated: bool = False, first: Collection[str] = (),
    descending: bool = False,
) -> dict[str, int]:  # fmt: skip
    """Divide by how many further replicas each cluster can take, moving as little as can be.

    `held`: what candidates hold already. More wanted than held: only the difference is placed. Fewer: all shrink in
    proportion. `aggregated`: on as few clusters as can be, those that hold some (or are in `first`) before others,
    then the roomiest. Clusters with nothing are left out. Raises NotEnoughRoom.
    """
    mine = {name: count for name, count in held.items() if name in room and count > 0}
    standing = sum(mine.values())
    if standing == replicas:
        return mine
    if standing > replicas:
        wanted, votes, base, before = replicas, mine, {}, set(first)
    else:
        wanted, votes, base, before = replicas - standing, dict(room), mine, {*mine, *first}
    if sum(votes.values()) < wanted:
        raise NotEnoughRoom(sum(votes.values()), wanted)
    if aggregated:
        votes = _shortest(wanted, votes, before)
    shares = webster(wanted, votes, descending=descending)
    total = {name: base.get(name, 0) + shares.get(name, 0) for name in sorted({*base, *shares})}
    return {name: count for name, count in total.items() if count}


def _shortest(wanted: int, votes: Counts, before: Collection[str]) -> dict[str, int]:
    """The fewest clusters, in order of preference, that together have room."""
    out: dict[str, int] = {}
    for name in sorted(votes, key=lambda name: (name not in before, -votes[name], name)):
        out[name] = votes[name]
        if sum(out.values()) >= wanted:
            break
    return out


def by_tiers(
    replicas: int, tiers: Sequence[Counts], held: Counts, *, aggregated: bool = False, descending: bool = False
) -> dict[str, int]:
    """Fill the tiers in order, each with what fits into it (its free room, and what it holds). Raises NotEnoughRoom."""
    out: dict[str, int] = {}
    left = replicas
    for room in tiers:
        mine = {name: held[name] for name in room if held.get(name)}
        takes = min(left, sum(room.values()) + sum(mine.values()))
        if takes:
            out |= by_room(takes, room, mine, aggregated=aggregated, descending=descending)
        left -= takes
    if left:
        raise NotEnoughRoom(replicas - left, replicas)
    return out
