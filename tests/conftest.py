"""What holds for all tests."""

from __future__ import annotations

import pytest
from _pytest.junitxml import xml_key
from hypothesis import settings

from tests import versions

# How long an example takes says nothing about what it shows: machines are busy. Benchmarks measure.
settings.register_profile("reactor", deadline=None)
settings.load_profile("reactor")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Say in a junit report what it was that ran: scripts/gen-test-report makes a page of such reports."""
    report = config.stash.get(xml_key, None)
    if report is not None:
        for name, value in versions.found():
            report.add_global_property(name, value)
