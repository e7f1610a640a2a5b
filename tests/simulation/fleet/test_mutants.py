"""Mistakes that would break a promise are put into the fleet, and the simulation sees each within some seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.simulation.fleet.draw import GONE, away, crashing, draw, pausing, unacknowledged
from tests.simulation.fleet.draw_answers import draw_answers
from tests.simulation.fleet.draw_clusters import draw_clusters
from tests.simulation.fleet.draw_edits import draw_edits
from tests.simulation.fleet.draw_orders import draw_orders
from tests.simulation.fleet.draw_pauses import draw_pauses
from tests.simulation.fleet.draw_together import draw_together
from tests.simulation.fleet.draw_wiped import draw_wiped, draw_wiped_zones
from tests.simulation.fleet.draw_workloads import draw_workloads
from tests.simulation.fleet.draw_zones import draw_zones
from tests.simulation.fleet.judge import judge
from tests.simulation.fleet.mutants import MUTANTS
from tests.simulation.fleet.scenario import Scenario
from tests.simulation.fleet.world import World

# Who is killed leaves tasks behind that never began.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")


@dataclass(frozen=True)
class Hunt:
    """Search for a mutant in seeds."""

    mutant: str
    promises: frozenset[str]
    """Any of them must be seen to be broken."""
    draw: Callable[[int], Scenario] = draw
    seeds: int = 60
    first: int = 0
    """The seed with which the hunt begins."""


HUNTS = (
    Hunt("saved_after_publish", frozenset({"unowed"})),
    Hunt("no_fence", frozenset({"stale-owner", "interleaved"}), pausing),
    Hunt("from_receipt", frozenset({"blind", "lost", "early"})),
    Hunt("position_first", frozenset({"blind", "lost", "converged"}), crashing, 300, first=41),
    Hunt("no_intent_check", frozenset({"blind", "doubled", "early"}), unacknowledged),
    Hunt("owed_forgotten", frozenset({"lost"}), crashing, 150),
    Hunt("windows_forgotten", frozenset({"lost"}), crashing, 150),
    Hunt("stale_not_refused", frozenset({"blind", "doubled", "interleaved"}), unacknowledged),
    Hunt("without_evidence", frozenset({"needless"}), seeds=100),
    Hunt("acknowledged_first", frozenset({"lost", "converged"}), seeds=150),
    Hunt("without_evidence", frozenset({"needless"}), draw_together, 6, first=6),
    Hunt("without_evidence", frozenset({"needless"}), draw_wiped, 6, first=6),
    Hunt("named_without_its_date", frozenset({"lost"}), draw_edits, 4),
    Hunt("shorter_windows_count", frozenset({"early"}), draw_edits, 20, first=31),
    Hunt("edits_are_not_considered", frozenset({"early"}), draw_edits, 20, first=7),
    Hunt("zones_without_evidence", frozenset({"early", "needless"}), draw_zones, 4, first=2),
    Hunt("unseen_time_counts", frozenset({"early"}), draw_zones, 6, first=2),
    Hunt("pauses_forgotten", frozenset({"paused"}), draw_pauses, 3),
    Hunt("taints_without_evidence", frozenset({"early", "needless"}), draw_clusters, 20),
    Hunt("old_taints_stay_wanted", frozenset({"early", "needless", "blind"}), draw_clusters, 1, first=3),
    Hunt("taints_in_doubt_forgotten", frozenset({"lost", "converged"}), draw_clusters, 1, first=71),
    Hunt("lost_isolations_forgotten", frozenset({"lost", "converged"}), draw_wiped_zones, 1),
    Hunt("orders_are_forgotten", frozenset({"unordered"}), draw_orders, 2),
    Hunt("workloads_without_evidence", frozenset({"early", "needless"}), draw_workloads, 8, first=24),
    Hunt("recoveries_count_before_a_move", frozenset({"early"}), draw_workloads, 4, first=1),
    Hunt("old_copies_go_at_once", frozenset({"last-one"}), draw_workloads, 4),
    Hunt("a_yes_counts_again", frozenset({"unapproved"}), draw_answers, 20),
)


@pytest.mark.parametrize("hunt", HUNTS, ids=lambda hunt: hunt.mutant)
def test_the_simulation_sees(hunt: Hunt, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[hunt.mutant](monkeypatch)
    for seed in range(hunt.first, hunt.first + hunt.seeds):
        broken = {breach.promise for breach in judge(World(hunt.draw(seed)).play())}
        if broken & hunt.promises:
            return
    pytest.fail(f"{hunt.seeds} seeds, and nobody noticed {hunt.mutant}")


@pytest.mark.parametrize("harsher", [crashing, pausing, unacknowledged, away], ids=lambda draw: draw.__name__)
def test_without_a_mistake_the_same_scenarios_break_nothing(harsher: Callable[[int], Scenario]) -> None:
    for seed in range(20):
        assert judge(World(harsher(seed)).play()) == []


@pytest.mark.parametrize("kind", GONE)
def test_windows_that_end_unseen_are_found_to_fire_whatever_was_away(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outage after which whole fleets of routes left healthy primaries: a hundred seeds have to show it."""
    MUTANTS["without_evidence"](monkeypatch)
    for seed in range(100):
        scenario = away(seed)
        if scenario.faults[0].kind == kind and judge(World(scenario).play()):
            return
    pytest.fail(f"100 seeds, and nobody noticed that windows fire when {kind} is over")


def test_every_mutant_is_hunted() -> None:
    assert {hunt.mutant for hunt in HUNTS} == set(MUTANTS)
