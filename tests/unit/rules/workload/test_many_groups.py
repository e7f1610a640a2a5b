"""Spreading over more groups than all sets of which can be tried."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rules.kinds.workload.spread import GROUPS_MAX, Bounds, GroupOption, Option, best_groups, by_group, group_score


def test_a_spread_over_eighteen_of_twenty_groups_finds_its_place() -> None:
    groups = {f"z{number:02}": [Option(f"c{number:02}", 0, 10)] for number in range(20)}
    scores = {name: group_score(options, 0) for name, options in groups.items()}
    chosen = by_group(groups, scores, Bounds(18), Bounds(18))
    assert [one.name for one in chosen] == [f"c{number:02}" for number in range(18)]


def test_many_small_groups_are_enough_where_sixteen_are_not() -> None:
    groups = [GroupOption(f"z{number:02}", 1, 1000) for number in range(20)]
    assert len(best_groups(groups, Bounds(1), 18)) == 18


def test_where_the_heaviest_are_too_small_larger_ones_take_their_place() -> None:
    heavy = [GroupOption(f"heavy{number:02}", 1, 2000) for number in range(GROUPS_MAX)]
    large = [GroupOption("large", 5, 1000), GroupOption("small", 2, 1000)]
    assert best_groups([*heavy, *large], Bounds(2, 2), 6) == ["heavy00", "large"]


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=21), st.integers(1, 20),
    st.none() | st.integers(0, 3), st.integers(1, 40),
)  # fmt: skip
def test_groups_are_found_exactly_where_there_are_enough(
    shapes: list[tuple[int, int]], least: int, more: int | None, target: int
) -> None:
    groups = [GroupOption(f"g{number:02}", value, weight) for number, (value, weight) in enumerate(shapes)]
    bounds = Bounds(least, None if more is None else least + more)
    found = best_groups(groups, bounds, target)
    # The largest as many as may be used are enough, or nothing is.
    largest = sorted((one.value for one in groups), reverse=True)[: bounds.cut(len(groups))]
    assert bool(found) == (len(groups) >= least and sum(largest) >= target)
    if found:
        values = {one.name: one.value for one in groups}
        assert least <= len(found) == len(set(found)) <= bounds.cut(len(groups))
        assert sum(values[name] for name in found) >= target
