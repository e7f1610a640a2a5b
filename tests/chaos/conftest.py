"""All chosen runs are started when the first is waited for, some at once, and printed as one table at the end.

CHAOS_SEEDS: how many seeds of each fault (default 1). CHAOS_JOBS: how many runs at once. CHAOS_JSON: a file for all
results.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from tests.chaos.pool import start_all
from tests.chaos.run import Result
from tests.chaos.table import table

Runs = dict[tuple[str, int], "Future[Result]"]
RESULTS = pytest.StashKey[list[Result]]()
JOBS = 6  # a run mostly waits: it needs a quarter of one core


@pytest.fixture(scope="session")
def runs(request: pytest.FixtureRequest) -> Iterator[Runs]:
    """The runs of all tests that were selected."""
    wanted = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    chosen = [(params["fault"], params["seed"]) for params in wanted if {"fault", "seed"} <= params.keys()]
    futures = start_all(chosen, jobs=int(os.environ.get("CHAOS_JOBS", JOBS)))
    yield futures
    for future in futures.values():
        future.cancel()
    request.config.stash[RESULTS] = [
        future.result() for future in futures.values() if future.done() and not future.cancelled()
    ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print fault × promise."""
    if results := config.stash.get(RESULTS, []):
        terminalreporter.section("chaos: broken/tested")
        terminalreporter.write_line(table(results))
        if path := os.environ.get("CHAOS_JSON"):
            Path(path).write_text(json.dumps([dataclasses.asdict(one) for one in results], indent=2), "utf-8")
