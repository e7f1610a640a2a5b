"""Settings and fixtures of all tests."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.junitxml import xml_key
from hypothesis import settings

from tests import versions
from tests.grouped import pytest_xdist_make_scheduler  # noqa: F401 - pytest finds this hook here

# How long an example takes says nothing about what it shows: machines are busy. Benchmarks measure.
settings.register_profile("reactor", deadline=None)
settings.load_profile("reactor")

# Each client of an API server reads the machine's certificate authorities, 15 ms of a processor for one of three
# contexts, and tests make thousands. None trusts these: where TLS is tested, the authority is the test's own.
os.environ["SSL_CERT_FILE"] = os.devnull

TESTS = Path(__file__).parent
LONGEST = (
    "test_demo", "test_own_alerts", "test_slow_looks", "test_zones", "test_workload_kills", "test_workloads",
    "test_zone_page", "test_zone_operators", "test_way_back", "test_external_nats", "test_hanging_target",
    "test_reload", "test_amazon_balancers", "test_how_to_operate", "test_how_to_servers", "test_how_to",
)  # fmt: skip
"""Files of tests/e2e in which one test alone takes up to two minutes."""
_RANK = {TESTS / "e2e" / f"{name}.py": place for place, name in enumerate(LONGEST)}
# It waits for a package index for minutes: begun last, `make prove` waited for this test alone.
_RANK[TESTS / "integration" / "test_sbom.py"] = -1
# All of it is one worker's: begun last, the other one would wait for it.
_RANK[TESTS / "simulation" / "test_world.py"] = -1


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without the garbage collector: collected items stay to the end, and searching them again took two fifths
    of the time in each worker."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that take long begin first: where tests run side by side, the run would else end with one of them."""
    items.sort(key=lambda item: _RANK.get(item.path, len(_RANK)))


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Say in a junit report what it was that ran: scripts/gen-test-report makes a page of such reports."""
    report = config.stash.get(xml_key, None)
    if report is not None:
        for name, value in versions.found():
            report.add_global_property(name, value)
