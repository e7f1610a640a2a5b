"""Patterns of health: over a few seeds all of them occur, and each is what its name says."""

from __future__ import annotations

from random import Random

import pytest

from reactor.audit.spans import Span
from tests.chaos import workload_patterns
from tests.chaos.faults import Outage, catalog
from tests.chaos.workload_patterns import NAMES, OF_TWO, PatternOfTwo

STRIKE = Span(13.0, 30.0)
SEEDS = range(1, 4)


def test_in_three_seeds_workloads_have_all_patterns_and_some_may_not_go_back() -> None:
    outages = [fault for fault in catalog().values() if isinstance(fault, Outage)]
    assert len({fault.workloads for fault in outages}) == 1
    plans = [
        plan for seed in SEEDS for plan in workload_patterns.plans("x", seed, STRIKE, outages[0].workloads)
    ]  # fmt: skip
    assert {plan.pattern.partition(",")[0] for plan in plans} == {*NAMES}
    assert {plan.blocks for plan in plans} == {True, False}


@pytest.mark.parametrize("pattern", OF_TWO)
@pytest.mark.parametrize("toleration", [3.0, 6.0])
def test_with_two_copies_the_workload_has_moved_before_the_fault(pattern: PatternOfTwo, toleration: float) -> None:
    for seed in range(50):
        first, second = pattern(STRIKE, toleration, Random(seed))
        assert [span.end - span.begin > toleration for span in first] == [True]
        assert first[0].begin + toleration + 1.5 <= STRIKE.begin
        assert first[0].end > STRIKE.begin - 1.0
        assert [span.begin < span.end for span in second] == [True]
