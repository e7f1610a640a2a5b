"""Subject of any label: legal, short, and different from all others."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from bus import subjects
from bus.testing.memory_parts import matches

LEGAL = re.compile(r"[A-Za-z0-9_-]{1,43}\Z")
ANYTHING = st.text(st.characters(codec=None), max_size=200)


@given(ANYTHING)
@example("")
@example("*")
@example(">")
@example("a..b")
@example("a.")
@example("x" * 4_096)
@example("über/ländlich \r\n\0 ‮🙈")
@example("\ud800")
def test_any_text_becomes_one_legal_token(text: str) -> None:
    assert LEGAL.match(subjects.token(text))


@given(ANYTHING, ANYTHING)
@example("a/b", "a-b")
@example("A", "a")
@example("x" * 4_096, "x" * 4_097)
def test_different_texts_have_different_tokens(one: str, other: str) -> None:
    assert (subjects.token(one) == subjects.token(other)) == (one == other)


@given(ANYTHING)
def test_a_text_cannot_pretend_to_be_anothers_token(text: str) -> None:
    """Otherwise a person who names things could write over another's key."""
    hashed = subjects.token(text + "/")
    assert subjects.token(hashed) != hashed


@given(ANYTHING, ANYTHING, st.integers(0, 63))
def test_every_subject_has_as_many_tokens_as_its_filters_expect(kind: str, about: str, partition: int) -> None:
    assert matches(subjects.facts(partition), subjects.fact(partition, kind, about))
    assert not matches(subjects.facts(partition + 1), subjects.fact(partition, kind, about))
    assert matches(subjects.facts(partition), subjects.observed(partition, kind, about))
    assert matches(subjects.observations(partition), subjects.observed(partition, kind, about))
    assert matches(subjects.observations_of(kind), subjects.observed(partition, kind, about))
    assert matches("reactor.observations.*.*", subjects.observation(kind, about))
    assert matches("reactor.actions.*.*.*", subjects.action(partition, kind, about))
    assert matches("reactor.decisions.*.*", subjects.decision(partition, about))
    assert len(subjects.fact(partition, kind, about)) < 150
    assert len(subjects.observed(partition, kind, about)) < 150


@given(ANYTHING, ANYTHING, st.integers(1, 512))
def test_a_partition_is_always_one_of_those_there_are(rule: str, scope: str, partitions: int) -> None:
    partition = subjects.partition_of(rule, scope, partitions)
    assert 0 <= partition < partitions
    assert partition == subjects.partition_of(rule, scope, partitions)


def test_groups_are_spread_evenly_over_the_partitions() -> None:
    counts = [0] * 64
    for number in range(64_000):
        counts[subjects.partition_of("checkout", f"east/shop/TrafficSplit/web-{number}", 64)] += 1
    assert min(counts) > 850
    assert max(counts) < 1_150


def test_rule_and_scope_are_kept_apart_when_a_partition_is_chosen() -> None:
    pairs = [("a", "bc"), ("ab", "c")]
    assert len({subjects.partition_of(rule, scope, 1 << 30) for rule, scope in pairs}) == len(pairs)


def test_patterns_match_as_the_server_matches_them() -> None:
    assert matches("a.*", "a.b")
    assert matches("a.>", "a.b.c")
    assert matches(">", "a")
    assert not matches("a.>", "a")
    assert not matches("a.*", "a.b.c")
    assert not matches("a", "a.b")


def test_the_copies_of_a_fact_go_where_each_of_them_would_alone() -> None:
    first = subjects.observed(0, "service/east/shop/checkout.v1", "probe-Unhealthy")
    alone = [subjects.observed(number, "service/east/shop/checkout.v1", "probe-Unhealthy") for number in range(64)]
    assert subjects.of_partitions(first, range(64)) == alone
    assert subjects.of_partitions(subjects.fact(0, "route", "a.b"), [7]) == [subjects.fact(7, "route", "a.b")]
