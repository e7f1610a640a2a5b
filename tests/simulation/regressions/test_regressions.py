"""Promises that were broken once stay kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.simulation.fleet.report import unbroken
from tests.simulation.fleet.scenario import load

FOUND = sorted(Path(__file__).parent.glob("*.json"))

# Who is killed leaves tasks behind that never began.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_what_was_broken_once_stays_mended(path: Path) -> None:
    document = json.loads(path.read_text("utf-8"))
    assert document["what"], "say in a sentence what was wrong"
    unbroken(load(document["scenario"]), name=path.stem)
