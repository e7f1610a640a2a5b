"""Times at which a partition writes its checkpoint."""

from __future__ import annotations

import asyncio

import pytest

from reactor.decide.checkpoint_pace import (
    ANSWERS,
    CHECKPOINT,
    FACTS_MAX,
    FACTS_MIN,
    REPEATS,
    CheckpointPace,
    CheckpointTurn,
    Unsaved,
)
from reactor.runtime.clock import Clock


class _Clock(Clock):
    """Time that a test lets pass."""

    def __init__(self) -> None:
        super().__init__()
        self.at = 100.0

    def monotonic(self) -> float:
        return self.at


def test_news_is_stored_within_a_second_and_repeats_within_thirty() -> None:
    pace = CheckpointPace(_Clock(), Unsaved())
    assert pace.wait(news=True, changed=True) == CHECKPOINT.total_seconds()
    assert pace.wait(news=False, changed=True) == REPEATS.total_seconds()
    assert pace.wait(news=False, changed=False) > 3600


def test_news_after_a_quiet_time_waits_for_its_result() -> None:
    clock = _Clock()
    pace = CheckpointPace(clock, Unsaved())
    clock.at += 60
    assert pace.wait(news=True, changed=True) == pytest.approx(ANSWERS.total_seconds())
    clock.at += ANSWERS.total_seconds() / 2
    assert pace.wait(news=True, changed=True) == pytest.approx(ANSWERS.total_seconds() / 2), (
        "more news puts it off no longer"
    )
    pace.begin()
    assert pace.wait(news=True, changed=True) == CHECKPOINT.total_seconds()


def test_facts_that_changed_nothing_move_the_position_with_the_repeats() -> None:
    pace = CheckpointPace(_Clock(), Unsaved())
    pace.read(1)
    assert pace.wait(news=False, changed=False) == REPEATS.total_seconds()


def test_a_process_has_to_read_no_more_than_ten_thousand_facts_again() -> None:
    clock, process = _Clock(), Unsaved()
    busy, quiet = CheckpointPace(clock, process), CheckpointPace(clock, process)
    busy.read(FACTS_MAX - FACTS_MIN)
    quiet.read(FACTS_MIN - 1)
    assert busy.wait(news=False, changed=True) == REPEATS.total_seconds()
    busy.read(1)
    assert busy.wait(news=False, changed=True) == CHECKPOINT.total_seconds()
    assert quiet.wait(news=False, changed=True) == REPEATS.total_seconds()
    busy.leave()
    assert process.facts == FACTS_MIN - 1


async def test_partitions_that_want_to_write_do_so_one_by_one_in_the_order_in_which_they_came() -> None:
    writers = asyncio.Semaphore(1)
    first, second, third = turns = [CheckpointTurn(writers) for _ in range(3)]
    for turn in turns:
        turn.get_in_line()
        await _settled()
    assert [turn.is_ours for turn in turns] == [True, False, False]
    first.leave()
    first.get_in_line()
    await _settled()
    assert [turn.is_ours for turn in turns] == [False, True, False]
    second.leave()
    await _settled()
    assert [turn.is_ours for turn in turns] == [False, False, True]
    third.leave()
    await _settled()
    assert [turn.is_ours for turn in turns] == [True, False, False]


async def test_a_partition_that_leaves_the_line_holds_up_none_behind_it() -> None:
    writers = asyncio.Semaphore(1)
    first, second, third = turns = [CheckpointTurn(writers) for _ in range(3)]
    for turn in turns:
        turn.get_in_line()
        await _settled()
    second.leave()
    first.leave()
    await _settled()
    assert third.is_ours
    third.leave()
    third.leave()
    assert not writers.locked()


async def _settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)
