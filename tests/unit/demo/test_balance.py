"""The gateway's choice of a backend."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reactor.demo.balance import Balance

WEIGHTS = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 20), min_size=1)


@given(WEIGHTS, st.integers(0, 50))
def test_in_any_round_each_backend_gets_exactly_its_weight(weights: dict[str, int], skipped: int) -> None:
    balance = Balance(weights)
    for _ in range(skipped):
        balance.pick()
    picks = [balance.pick() for _ in range(sum(weights.values()))]
    assert {name: picks.count(name) for name in weights} == weights


def test_a_heavy_backend_does_not_get_its_share_in_one_go() -> None:
    balance = Balance({"a": 5, "b": 1, "c": 1})
    assert "".join(balance.pick() or "-" for _ in range(7)) == "aabacaa"


def test_equals_take_turns_in_the_routes_order() -> None:
    balance = Balance({"west": 1, "central": 1})
    assert [balance.pick() for _ in range(4)] == ["west", "central", "west", "central"]


def test_there_is_no_backend_where_all_weights_are_zero() -> None:
    assert Balance({"a": 0, "b": 0}).pick() is None
    assert Balance({}).pick() is None
