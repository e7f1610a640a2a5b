"""Every promise holds under every fault: real processes, a real nats-server, judged from outside."""

from __future__ import annotations

import os

import pytest

from tests.chaos.faults import Outage, catalog
from tests.chaos.pool import Runs

SEEDS = int(os.environ.get("CHAOS_SEEDS", "2"))
RUNS = [
    (name, seed)
    for name, fault in catalog().items()
    if fault.in_ci
    for seed in range(1, (1 if isinstance(fault, Outage) and "CHAOS_SEEDS" not in os.environ else SEEDS) + 1)
]
"""An outage has a world of its own for each seed, and plays for a minute: one seed of it, unless more are asked for."""


@pytest.mark.timeout(1800)  # the first test waits for a place in the queue of all runs
@pytest.mark.parametrize(("fault", "seed"), RUNS)
def test_no_action_is_lost_doubled_or_early(runs: Runs, fault: str, seed: int) -> None:
    result = runs[fault, seed].result()[seed]
    if result.skipped:
        pytest.skip(result.skipped)
    assert not result.failed, result.failed
    assert result.tested["lost"], "no route had to be anywhere: nothing was tested"
    # All backends are down and back in one moment there: a route that stays where it is needs no write.
    assert result.writes or fault == "outage:all-down", "nothing was written: nothing was tested"
    assert result.breaches == []
    assert result.mistakes == [], "a reactor failed over what it should have borne"
