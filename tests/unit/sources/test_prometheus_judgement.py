"""Meaning of a sample."""

from __future__ import annotations

import pytest

from bus.messages import Health
from reactor.sources.prometheus.prometheus_query import absence, judge
from rules.rulefile.sources import Bound

H, U, N = Health.HEALTHY, Health.UNHEALTHY, Health.UNKNOWN


@pytest.mark.parametrize(
    ("when", "value", "status"),
    [
        ("Present", 0.0, U), ("Absent", 0.0, H),
        (Bound(above=1), 1.0, H), (Bound(above=1), 1.1, U), (Bound(above=1), float("inf"), U),
        (Bound(below=1), 1.0, H), (Bound(below=1), 0.9, U), (Bound(below=1), float("-inf"), U),
        (Bound(above=2, below=1), 1.5, H), (Bound(above=1), float("nan"), N), (Bound(below=1), float("nan"), N),
    ],
)  # fmt: skip
def test_a_series_is_judged_by_presence_or_by_its_sample(when: str | Bound, value: float, status: Health) -> None:
    assert judge(when, value) is status


@pytest.mark.parametrize(("when", "status"), [("Present", H), ("Absent", U), (Bound(above=1), N), (Bound(below=1), N)])
def test_a_series_that_is_not_there_is_judged_too(when: str | Bound, status: Health) -> None:
    assert absence(when) is status
