"""expectStatus."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactor.sources.probes.http_probe import accepts

STATUS = st.integers(100, 599)


@pytest.mark.parametrize(
    ("expected", "status", "answer"),
    [
        ("200-399", 200, True), ("200-399", 399, True), ("200-399", 400, False), ("200-399", 199, False),
        ("200,204,301-302", 204, True), ("200,204,301-302", 301, True), ("200,204,301-302", 303, False),
        (204, 204, True), (204, 200, False), ("404", 404, True),
    ],
)  # fmt: skip
def test_a_status_is_accepted_where_it_is_named(expected: str | int, status: int, answer: bool) -> None:
    assert accepts(expected, status) is answer


@given(STATUS, STATUS, STATUS)
def test_a_range_holds_both_its_ends_and_all_between(low: int, high: int, status: int) -> None:
    assert accepts(f"{low}-{high}", status) is (low <= status <= high)
