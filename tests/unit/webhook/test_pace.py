"""How fast one source's alerts go into the journal."""

from __future__ import annotations

from reactor.webhook.pace import BURST, Pace


def test_a_burst_goes_at_once_and_the_rest_at_its_pace() -> None:
    pace = Pace(100, now=0)
    assert pace.take(BURST, 0) == 0
    assert pace.take(50, 0) == 0.5
    assert pace.take(50, 0) == 1
    assert pace.take(50, 1) == 0.5
    assert (pace.owed(1), pace.owed(1.5), pace.owed(9)) == (0.5, 0, 0)


def test_silence_fills_it_up_to_a_burst_and_no_further() -> None:
    pace = Pace(100, now=0)
    pace.take(BURST, 0)
    assert pace.take(BURST, 1_000_000) == 0
    assert pace.take(100, 1_000_000) == 1
