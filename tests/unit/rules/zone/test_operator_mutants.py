"""The operators' state machine is worth what it catches: each promise, broken on purpose, is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from rules.core.reasons import Because
from rules.engine import guard
from rules.kinds.zone import admission as zone_admission
from rules.kinds.zone import next_step as zone_wish
from rules.kinds.zone import plan as zone_plan
from rules.kinds.zone import record as zone_record
from rules.kinds.zone import request as zone_request
from rules.kinds.zone import zone_commands as zone_commands
from rules.kinds.zone.record import begun
from rules.kinds.zone.state import ZoneState
from tests.unit.rules.zone.test_operators import Operators

pytestmark = pytest.mark.long
SEARCH = settings(
    max_examples=1500, stateful_step_count=40, phases=[Phase.generate], database=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
ROUNDS = 5
"""Number of rounds: the findings of the first depend on the loaded modules, as Hypothesis draws from their constants
too."""
Patch = Callable[[pytest.MonkeyPatch], None]


def _two_zones(patch: pytest.MonkeyPatch) -> None:
    """A second zone that a person asks for takes the place of the first, whatever is isolated."""
    kept = zone_commands._isolate

    def isolate(rule: Any, state: ZoneState, fact: Any, now: Any) -> ZoneState:
        if state.isolation is not None and state.isolation.zone != fact.zone:
            return begun(rule, state, fact.zone, now, because=Because.COMMANDED, by=fact.by)
        return kept(rule, state, fact, now)

    patch.setattr(zone_commands, "_isolate", isolate)


def _the_last_zone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(zone_admission, "_others", lambda _: None)


def _a_services_only_zone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(zone_admission, "_only_here", lambda _: None)


def _a_services_only_zone_half_way(patch: pytest.MonkeyPatch) -> None:
    """Asked at the start, and never again."""
    patch.setattr(zone_wish, "STOP_CONDITIONS", ())


def _compute_before_network(patch: pytest.MonkeyPatch) -> None:
    """Undone in reverse and nothing else: in a dead zone the network was cut before the pods were forced."""

    def undo_order(rule: Any, touched: Any) -> tuple[str, ...]:
        return tuple(step for step in reversed(touched) if zone_plan.leaves_something(rule, step))

    patch.setattr(zone_record, "undo_order", undo_order)


def _opened_unproven(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(zone_wish, "recovery_of", lambda *_: zone_request.Recovery(proven=True, detail=""))


def _a_pause_that_stops_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(guard, "_never", lambda *_: None)


def _search() -> None:
    for number in range(ROUNDS):
        run_state_machine_as_test(Operators, settings=settings(SEARCH, derandomize=not number))


MUTANTS: dict[str, tuple[Patch, str]] = {
    "two zones": (_two_zones, "one zone at a time|2 <= 1|nothing is left standing|last first"),
    "the last zone": (_the_last_zone, "never the last one"),
    "a service's only zone": (_a_services_only_zone, "never a service's only zone"),
    "a service's only zone, half way": (
        _a_services_only_zone_half_way,
        "never a service's only zone|never the last one|api_reachable",
    ),
    "compute before network": (_compute_before_network, "network before compute"),
    "opened unproven": (_opened_unproven, "only a healthy zone is opened"),
    "a pause that stops nothing": (_a_pause_that_stops_nothing, "only a person's way back"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_broken_promise_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, words = MUTANTS[name]
    patch(monkeypatch)
    with pytest.raises(AssertionError, match=words):
        _search()
