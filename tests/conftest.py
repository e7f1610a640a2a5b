"""What holds for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says nothing about what it shows: machines are busy. Benchmarks measure.
settings.register_profile("reactor", deadline=None)
settings.load_profile("reactor")

E2E = Path(__file__).parent / "e2e"
EARLY = 0.6
"""By this part of the run the last of the files that wait has begun."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spread the files that wait (for leases, windows, servers) among those that compute; none comes late."""
    files = list(dict.fromkeys(item.path for item in items))
    waiting = [file for file in files if file.is_relative_to(E2E)]
    computing = [file for file in files if not file.is_relative_to(E2E)]
    turn = {file: number / len(computing) for number, file in enumerate(computing)}
    turn |= {file: EARLY * number / len(waiting) for number, file in enumerate(waiting)}
    items.sort(key=lambda item: turn[item.path])
