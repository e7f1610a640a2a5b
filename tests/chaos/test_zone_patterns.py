"""The zones of outages: over the seeds each pattern occurs, and none of them is what it does not say."""

from __future__ import annotations

from tests.chaos.faults import Outage, catalog
from tests.chaos.script import turns
from tests.chaos.zone import paths
from tests.chaos.zone_patterns import PATTERNS
from tests.e2e.zone_world import SICK


def test_over_the_seeds_of_an_outage_a_zone_has_all_patterns() -> None:
    for fault in catalog().values():
        if isinstance(fault, Outage):
            zones = [plan for seed in range(1, len(PATTERNS) + 1) for plan in fault.act(seed, 1).script[-1:]]
            assert {plan.pattern for plan in zones} == {pattern.__name__ for pattern in PATTERNS}
            for plan in zones:
                assert len(plan.backends) == 3
                for spans in plan.backends.values():
                    ends = [at for span in spans for at in (span.begin, span.end)]
                    assert ends == sorted(ends)


def test_each_turn_of_a_zone_is_seen_by_its_own_probes() -> None:
    fault = next(fault for fault in catalog().values() if isinstance(fault, Outage))
    [plan] = fault.act(1, 1).script[-1:]
    first, second, others = (paths(plan, name) for name in plan.backends)
    assert (first, second) == ([f"inside-{SICK}"], [f"outside-{SICK}"])
    assert len(others) == 4
    assert not any(SICK in path for path in others)
    assert {turn.service for turn in turns([plan])} <= set(plan.backends)
