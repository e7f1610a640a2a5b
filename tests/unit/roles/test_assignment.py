"""Assignment of partitions to owners."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from reactor.fleet.assignment import assignment

NAMES = st.sets(st.text("abcdefgh0123", min_size=1, max_size=6), min_size=1, max_size=9)


@given(NAMES, st.integers(1, 128))
def test_every_partition_has_one_owner_and_the_shares_are_even(members: set[str], partitions: int) -> None:
    owners = assignment(sorted(members), partitions)
    assert sorted(owners) == list(range(partitions))
    counts = Counter(owners.values())
    shares = [counts[member] for member in members]
    assert max(shares) - min(shares) <= 1


@given(NAMES)
def test_the_order_in_which_members_are_known_does_not_matter(members: set[str]) -> None:
    assert assignment(sorted(members), 64) == assignment(sorted(members, reverse=True), 64)


@given(NAMES, st.text("xyz", min_size=1, max_size=4))
def test_a_newcomer_moves_little_more_than_its_share(members: set[str], newcomer: str) -> None:
    before = assignment(sorted(members), 64)
    after = assignment(sorted({*members, newcomer}), 64)
    moved = sum(before[partition] != after[partition] for partition in before)
    share = 64 // (len(members) + 1) + 1
    assert moved <= 3 * share
