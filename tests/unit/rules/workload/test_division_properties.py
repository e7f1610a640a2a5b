"""Properties of every division: nothing is lost, more is never less, and the order of the question does not matter."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.kinds.workload.division import NotEnoughRoom, by_room, by_static_weight, by_tiers, webster
from tests.examples import many

NAMES = st.text("abcdef", min_size=1, max_size=3)
WEIGHTS = st.dictionaries(NAMES, st.integers(0, 1000), min_size=1, max_size=8)
ROOMS = st.dictionaries(NAMES, st.integers(0, 40), min_size=1, max_size=6)
SEATS = st.integers(0, 300)


def turned(mapping: dict[str, int]) -> dict[str, int]:
    return dict(reversed(mapping.items()))


@given(WEIGHTS, WEIGHTS, SEATS, st.booleans())
def test_every_replica_is_given_to_a_cluster(weights: Any, held: Any, seats: int, descending: bool) -> None:
    out = webster(seats, weights, held, descending=descending)
    assert sum(out.values()) == seats + sum(held.values())
    assert all(out[name] >= count for name, count in held.items())


@given(WEIGHTS, SEATS, st.booleans())
def test_one_replica_more_takes_none_away(weights: Any, seats: int, descending: bool) -> None:
    one, more = (webster(count, weights, descending=descending) for count in (seats, seats + 1))
    assert all(more[name] >= one[name] for name in one)


@given(WEIGHTS, SEATS)
def test_the_order_of_clusters_does_not_matter(weights: Any, seats: int) -> None:
    assert webster(seats, weights) == webster(seats, turned(weights))


@given(st.dictionaries(NAMES, st.integers(0, 50), min_size=1, max_size=5), SEATS, st.booleans())
def test_the_fast_way_is_the_slow_way(weights: Any, seats: int, descending: bool) -> None:
    """Seat by seat, each time to the largest quotient: what Webster says in words."""
    slow = dict.fromkeys(weights, 0)
    for _ in range(seats):
        order = sorted(slow, reverse=descending)
        best = max(weights[name] / (2 * slow[name] + 1) for name in slow)
        ties = [name for name in order if abs(weights[name] / (2 * slow[name] + 1) - best) < 1e-12]
        slow[min(ties, key=lambda name: slow[name])] += 1
    assert webster(seats, weights, descending=descending) == slow


def test_a_million_replicas_are_divided_at_once() -> None:
    out = webster(1_000_000, {"a": 1, "b": 2, "c": 4})
    assert out == {"a": 142857, "b": 285714, "c": 571429}


@given(WEIGHTS, SEATS)
def test_static_weights_give_all_of_it(weights: Any, seats: int) -> None:
    assert sum(by_static_weight(seats, weights, weights).values()) == seats


@given(ROOMS, ROOMS, SEATS, st.booleans())
def test_division_by_room_keeps_to_the_rooms(room: Any, held: Any, replicas: int, aggregated: bool) -> None:
    mine = {name: count for name, count in held.items() if name in room}
    if replicas - sum(mine.values()) > sum(room.values()):
        with pytest.raises(NotEnoughRoom):
            by_room(replicas, room, held, aggregated=aggregated)
        return
    out = by_room(replicas, room, held, aggregated=aggregated)
    assert sum(out.values()) == replicas
    for name, count in out.items():
        assert count <= room[name] + mine.get(name, 0)
    if replicas >= sum(mine.values()):
        assert all(out.get(name, 0) >= count for name, count in mine.items())
    assert out == by_room(replicas, turned(room), turned(held), aggregated=aggregated)


@given(ROOMS, SEATS)
def test_aggregated_needs_no_more_clusters_than_the_roomiest_ones(room: Any, replicas: int) -> None:
    if replicas > sum(room.values()):
        return
    fewest, left = 0, replicas
    for free in sorted(room.values(), reverse=True):
        fewest, left = (fewest + 1, left - free) if left > 0 else (fewest, left)
    assert len(by_room(replicas, room, {}, aggregated=True)) <= fewest


@many(100)
@given(st.lists(ROOMS, min_size=1, max_size=3), SEATS)
def test_a_tier_is_used_only_when_those_before_it_are_full(tiers: Any, replicas: int) -> None:
    own = [{f"{index}{name}": count for name, count in tier.items()} for index, tier in enumerate(tiers)]
    if replicas > sum(sum(tier.values()) for tier in own):
        with pytest.raises(NotEnoughRoom):
            by_tiers(replicas, own, {})
        return
    out = by_tiers(replicas, own, {})
    assert sum(out.values()) == replicas
    for earlier, later in pairwise(own):
        if any(out.get(name) for name in later):
            assert sum(out.get(name, 0) for name in earlier) == sum(earlier.values())
