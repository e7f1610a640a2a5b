"""All chosen seeds are started when the first is waited for, some at once, and printed as one table at the end.

CHAOS_SEEDS: how many seeds of each fault (default 2, of outages 1). CHAOS_ROUTES: how many routes a seed has.
CHAOS_JOBS: how many runs at once. CHAOS_JSON: a file for all results.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.pool import Runs, start_all
from tests.chaos.run import Result
from tests.chaos.table import table

RESULTS = pytest.StashKey[list[Result]]()
JOBS = 5 * (os.cpu_count() or 2) // 2
"""A run needs two fifths of a processor; with more at once, processes wait for one for seconds, and acts are late."""
ROUTES = 12
"""Half as many as `make chaos` has: more seeds show more than more routes."""


@pytest.fixture(scope="session")
def runs(request: pytest.FixtureRequest) -> Iterator[Runs]:
    """The runs of all tests that were selected."""
    wanted = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    chosen = [(params["fault"], params["seed"]) for params in wanted if {"fault", "seed"} <= params.keys()]
    jobs, routes = (
        int(os.environ.get(f"CHAOS_{name}", default)) for name, default in (("JOBS", JOBS), ("ROUTES", ROUTES))
    )
    futures = start_all(chosen, jobs=jobs, routes=routes)
    yield futures
    for future in futures.values():
        future.cancel()
    request.config.stash[RESULTS] = [
        future.result()[seed] for (_, seed), future in futures.items() if future.done() and not future.cancelled()
    ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print fault × promise."""
    if results := config.stash.get(RESULTS, []):
        terminalreporter.section("chaos: broken/tested")
        terminalreporter.write_line(table(results))
        if path := os.environ.get("CHAOS_JSON"):
            Path(path).write_text(json.dumps([dataclasses.asdict(one) for one in results], indent=2), "utf-8")
