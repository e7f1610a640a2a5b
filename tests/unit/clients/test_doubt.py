"""A LIST that lacks most objects of a moment ago is not believed at once."""

from __future__ import annotations

import logging

import pytest

from reactor.clients.changes import ObjectKey
from reactor.clients.doubt import LISTS, SECONDS, Doubt
from reactor.runtime.telemetry import REGISTRY


def keys(*names: str) -> set[ObjectKey]:
    return {ObjectKey("shop", name) for name in names}


ALL = keys("a", "b", "c", "d")


@pytest.fixture
def doubt() -> Doubt:
    return Doubt("east", "/api/v1/pods")


@pytest.mark.parametrize("found", [ALL, keys("a", "b", "c"), keys("a", "b"), keys("a", "b", "e")], ids=len)
def test_a_list_that_lacks_no_more_than_half_is_believed(doubt: Doubt, found: set[ObjectKey]) -> None:
    assert not doubt.listed(ALL, found, 0)


@pytest.mark.parametrize("found", [keys(), keys("a"), keys("a", "x", "y", "z")], ids=len)
def test_a_list_that_lacks_more_than_half_is_doubted(doubt: Doubt, found: set[ObjectKey]) -> None:
    assert doubt.listed(ALL, found, 0) == ALL - found


def test_that_a_single_object_is_gone_is_no_wonder(doubt: Doubt) -> None:
    assert not doubt.listed(keys("a"), keys(), 0)


def test_what_enough_lists_have_said_for_long_enough_is_believed(doubt: Doubt) -> None:
    assert doubt.listed(ALL, keys(), 0)
    assert doubt.listed(ALL, keys(), SECONDS + 1), f"{LISTS} lists are needed"
    assert not doubt.listed(ALL, keys(), SECONDS + 2)


def test_many_lists_in_a_short_time_prove_nothing(doubt: Doubt) -> None:
    assert all(doubt.listed(ALL, keys(), number) for number in range(int(SECONDS)))


def test_a_list_that_is_whole_again_ends_the_doubt_and_the_next_one_starts_again(doubt: Doubt) -> None:
    assert doubt.listed(ALL, keys(), 0)
    assert doubt.listed(ALL, keys(), 20)
    assert not doubt.listed(ALL, ALL, 25)
    assert doubt.listed(ALL, keys(), 31)


def test_what_a_watch_says_of_an_object_is_no_longer_in_doubt(doubt: Doubt) -> None:
    doubt.listed(ALL, keys(), 0)
    doubt.seen(ObjectKey("shop", "a"))
    assert doubt.keys == keys("b", "c", "d")


def test_it_is_logged_and_counted_once(doubt: Doubt, caplog: pytest.LogCaptureFixture) -> None:
    def counted() -> float:
        return REGISTRY.get_sample_value("reactor_lists_doubted_total", {"cluster": "east"}) or 0.0

    before = counted()
    with caplog.at_level(logging.WARNING):
        for seconds in range(4):
            doubt.listed(ALL, keys(), seconds)
    assert (len(caplog.records), counted()) == (1, before + 1)


def test_a_list_that_lacks_what_is_there_is_never_believed(doubt: Doubt) -> None:
    for number in range(5):
        assert doubt.listed(ALL, ALL - keys("a"), number * SECONDS, present=ObjectKey("shop", "a")) == keys("a")
    assert not doubt.listed(ALL, ALL - keys("a"), 5 * SECONDS)


def test_how_long_a_list_is_doubted_counts_from_when_nothing_more_speaks_against_it(doubt: Doubt) -> None:
    assert doubt.listed(ALL, keys(), 0)
    assert doubt.listed(ALL, keys(), SECONDS - 1, present=ObjectKey("shop", "a"))
    assert doubt.listed(ALL, keys(), SECONDS)
    assert doubt.listed(ALL, keys(), SECONDS + 1)
    assert not doubt.listed(ALL, keys(), 2 * SECONDS)
