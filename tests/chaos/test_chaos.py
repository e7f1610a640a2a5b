"""Every promise holds under every fault: real processes, a real nats-server, judged from outside."""

from __future__ import annotations

import os

import pytest

from tests.chaos.faults import catalog
from tests.chaos.pool import Runs

SEEDS = range(1, int(os.environ.get("CHAOS_SEEDS", "5")) + 1)
FAULTS = [name for name, fault in catalog().items() if fault.in_ci]


@pytest.mark.timeout(1800)  # the first test waits for a place in the queue of all runs
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fault", FAULTS)
def test_no_action_is_lost_doubled_or_early(runs: Runs, fault: str, seed: int) -> None:
    result = runs[fault, seed].result()[seed]
    if result.skipped:
        pytest.skip(result.skipped)
    assert not result.failed, result.failed
    assert result.breaches == []
    assert result.writes, "nothing was written: nothing was tested"
