"""Batches in which nodes return."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reactor.actions.zone.fence import batch_ends
from reactor.actions.zone.isolation_context import IsolationContext, ZoneWorld
from reactor.actions.zone.step_settings import BatchSettings, StepSettings
from reactor.runtime.clock import Clock
from tests.unit.actions.zone.builders import zone_step


async def _nowhere(_: str) -> Any:
    raise AssertionError


def ends(total: int, first: int, percent: int) -> list[int]:
    settings = StepSettings(batches=BatchSettings(first=first, percent=percent))
    return [*batch_ends(IsolationContext(zone_step("Fence"), settings, Clock(), ZoneWorld(_nowhere, _nowhere)), total)]


def test_one_then_a_quarter_then_the_rest() -> None:
    assert ends(8, 1, 25) == [1, 3, 8]
    assert ends(1, 1, 25) == [1, 1, 1]
    assert ends(2, 1, 25) == [1, 2, 2]


@given(st.integers(1, 5000), st.integers(1, 100), st.integers(1, 100))
def test_every_node_comes_back_and_never_all_at_once_unless_asked_for(total: int, first: int, percent: int) -> None:
    batches = ends(total, first, percent)
    assert batches == sorted(batches)
    assert batches[-1] == total
    assert 1 <= batches[0] <= first
