"""All ways to draw a scenario from a seed, by name, and how many of a thousand seeds a test plays of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.simulation.fleet.draw import draw
from tests.simulation.fleet.draw_answers import draw_answers, draw_workload_answers, draw_zone_answers
from tests.simulation.fleet.draw_clusters import draw_clusters
from tests.simulation.fleet.draw_edits import draw_edits
from tests.simulation.fleet.draw_orders import draw_orders
from tests.simulation.fleet.draw_pauses import draw_pauses
from tests.simulation.fleet.draw_together import draw_together
from tests.simulation.fleet.draw_wiped import draw_wiped, draw_wiped_zones
from tests.simulation.fleet.draw_workloads import draw_workloads
from tests.simulation.fleet.draw_zones import draw_zones
from tests.simulation.fleet.scenario import Scenario

DRAWS: Mapping[str, Callable[[int], Scenario]] = {
    "faults": draw,
    "together": draw_together,
    "edits": draw_edits,
    "zones": draw_zones,
    "pauses": draw_pauses,
    "clusters": draw_clusters,
    "answers": draw_answers,
    "zone-answers": draw_zone_answers,
    "workload-answers": draw_workload_answers,
    "orders": draw_orders,
    "workloads": draw_workloads,
    "wiped": draw_wiped,
    "wiped-zones": draw_wiped_zones,
}
OF_A_THOUSAND = {"faults": 1000, "together": 100, "edits": 100}
"""Of each other: 20."""


def drawn(name: str) -> Scenario:
    """Give the scenario named `kind:seed`, as in `orders:84`; `84` alone is of the kind `faults`. Raises KeyError for a
    kind that is not in DRAWS."""
    kind, _, seed = name.rpartition(":")
    return DRAWS[kind or "faults"](int(seed))


def blocks(seeds: int) -> list[tuple[str, range]]:
    """Give kinds and seeds for `seeds` of the kind `faults`, in parts that take about as long, the largest kind first.

    A test plays one part.
    """
    found = []
    for kind in DRAWS:
        last = seeds * OF_A_THOUSAND.get(kind, 20) // 1000
        size = {"faults": 50, "together": 20, "edits": 20}.get(kind, 5)
        found += [(kind, range(first, min(first + size, last))) for first in range(0, last, size)]
    return found
