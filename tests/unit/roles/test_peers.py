"""Members that count as present: silence while we listen ends it, and nothing else."""

from __future__ import annotations

from reactor.fleet.fleet import HEARTBEAT, LOOK
from reactor.fleet.peers import DEAF, DOUBTS, LEASE, Peers
from reactor.sources.ticker import SPREAD_SECONDS_MAX
from tests.clock import HandClock

STEP = DEAF - 1


def listening(peers: Peers, clock: HandClock, seconds: float) -> None:
    """Let time pass while we hear all that is said."""
    while seconds > 0:
        clock.seconds += min(STEP, seconds)
        peers.listened()
        seconds -= STEP


def test_who_is_silent_for_a_lease_is_gone_and_comes_back_with_a_word() -> None:
    clock = HandClock()
    peers = Peers("one", clock)
    assert peers.spoke("two", 1)
    listening(peers, clock, LEASE - 0.1)
    assert peers.there() == ["one", "two"]
    assert not peers.spoke("two", 1)  # the same word again says nothing
    listening(peers, clock, 0.2)
    assert peers.there() == ["one"]
    assert peers.spoke("two", 2)
    assert not peers.spoke("two", 3)  # a mere heartbeat
    assert peers.there() == ["one", "two"]


def test_while_we_are_deaf_no_member_goes_and_afterwards_each_has_a_whole_lease() -> None:
    clock = HandClock()
    peers = Peers("one", clock)
    peers.spoke("two", 1)
    clock.seconds += 100
    assert peers.there() == ["one", "two"]
    peers.listened()
    listening(peers, clock, LEASE - 0.1)
    assert peers.there() == ["one", "two"]
    listening(peers, clock, 0.2)
    assert peers.there() == ["one"]


def test_who_was_gone_before_we_were_deaf_stays_gone() -> None:
    clock = HandClock()
    peers = Peers("one", clock)
    peers.spoke("two", 1)
    listening(peers, clock, LEASE)
    clock.seconds += 100
    peers.listened()
    assert peers.there() == ["one"]


def test_one_that_does_not_answer_again_and_again_is_gone() -> None:
    peers = Peers("one", HandClock())
    peers.spoke("two", 1)
    assert [peers.answered("two", False) for _ in range(DOUBTS)] == [False] * (DOUBTS - 1) + [True]
    assert peers.there() == ["one"]
    assert peers.asked() == []
    peers.spoke("two", 2)
    assert peers.there() == ["one", "two"]
    peers.answered("two", False)
    peers.answered("two", None)
    assert not peers.answered("two", False)
    peers.left("two")
    assert not peers.answered("two", False)


def test_a_window_of_six_seconds_over_a_probe_in_a_frozen_process_is_over_within_twelve() -> None:
    """The process that takes the probe over sees the target for the first time: the window begins again
    with that look."""
    first_look = LEASE + LOOK + SPREAD_SECONDS_MAX
    assert first_look + 6 <= 12 - LOOK, f"the first look may come {first_look:g} s after the freeze"


def test_being_deaf_for_a_moment_makes_no_member_gone() -> None:
    assert DEAF + HEARTBEAT < LEASE
