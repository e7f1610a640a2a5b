"""Choice between two ways to publish many messages."""

from __future__ import annotations

import pytest

from bus.jetstream.batch_choice import AGAIN, BatchChoice


def rounds(choice: BatchChoice, count: int, *, batch: float, alone: float) -> list[bool]:
    """Choices in this many rounds, where a message takes these seconds each way."""
    chosen = []
    for _ in range(count):
        chosen.append(choice.next())
        choice.took(batch if chosen[-1] else alone, batch=chosen[-1])
    return chosen


@pytest.mark.parametrize(("batch", "alone"), [(1e-5, 1e-4), (1e-4, 1e-5)])
def test_the_way_that_takes_less_is_taken_and_the_other_one_tried_again(batch: float, alone: float) -> None:
    chosen = rounds(BatchChoice(), 10 * AGAIN, batch=batch, alone=alone)
    assert chosen[:2] == [True, False]
    assert chosen[2:].count(batch > alone) == 10


def test_another_server_is_noticed() -> None:
    choice = BatchChoice()
    rounds(choice, 10 * AGAIN, batch=1e-5, alone=1e-4)
    chosen = rounds(choice, 20 * AGAIN, batch=1e-3, alone=1e-4)
    assert chosen[-AGAIN:].count(False) == AGAIN - 1
