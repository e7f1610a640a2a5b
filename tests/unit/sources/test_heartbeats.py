"""Silence counts only while we listen, and only renewals that we saw break it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reactor.sources.kubernetes.heartbeats import Heartbeats, mark, project


def silence(beats: Heartbeats, key: str, now: float) -> float:
    beat = beats.get(key)
    assert beat is not None
    return beat.silent_seconds(now)


def test_the_first_sight_of_a_lease_is_no_heartbeat() -> None:
    beats = Heartbeats(0, look_seconds=5)
    assert beats.seen("a", "yesterday", 1).last_beat is None
    assert beats.seen("a", "yesterday", 2).last_beat is None
    assert beats.seen("a", "today", 3).last_beat == 3


def test_a_clock_that_runs_backwards_elsewhere_is_a_heartbeat_all_the_same() -> None:
    beats = Heartbeats(0, look_seconds=5)
    beats.seen("a", "2026-01-01T00:00:10Z", 1)
    assert beats.seen("a", "2026-01-01T00:00:05Z", 2).last_beat == 2


def test_time_without_a_watch_is_no_silence_of_theirs() -> None:
    beats = Heartbeats(0, look_seconds=5)
    beats.seen("a", 1, 0)
    beats.seen("a", 2, 4)
    beats.look(5, listening=True)
    beats.look(10, listening=False)
    beats.look(15, listening=False)
    assert silence(beats, "a", 15) == 1
    beats.look(20, listening=True)
    assert silence(beats, "a", 20) == 6


def test_time_in_which_this_process_was_suspended_is_no_silence_of_theirs() -> None:
    beats = Heartbeats(0, look_seconds=5)
    beats.seen("a", 1, 0)
    beats.look(5, listening=True)
    beats.look(605, listening=True)
    assert silence(beats, "a", 605) == 15


def test_a_forgotten_lease_that_comes_back_starts_again() -> None:
    beats = Heartbeats(0, look_seconds=5)
    beats.seen("a", 1, 0)
    beats.gone("a")
    assert beats.seen("a", 2, 50).last_beat is None


@given(st.lists(st.tuples(st.floats(0.1, 100), st.sampled_from(["beat", "listening", "deaf"])), max_size=50))
def test_silence_is_never_longer_than_the_time_we_listened(steps: list[tuple[float, str]]) -> None:
    now = listened = looked = beat_at = 0.0
    beats = Heartbeats(0, look_seconds=5)
    beats.seen("a", 0, 0)
    for number, (wait, what) in enumerate(steps, start=1):
        now += wait
        if what == "beat":
            beats.seen("a", number, now)
            listened, beat_at = 0.0, now
            continue
        beats.look(now, listening=what == "listening")
        listened += now - max(looked, beat_at) if what == "listening" else 0
        looked = now
        assert -1e-6 <= silence(beats, "a", now) <= listened + 1e-6


def test_only_a_renewal_changes_the_mark() -> None:
    lease = {"metadata": {"name": "a", "namespace": "n"}, "spec": {"renewTime": "1", "holderIdentity": "h"}}
    first = mark(project(lease))
    assert mark(project({**lease, "metadata": {"name": "a", "labels": {"x": "y"}}})) == first
    assert mark(project({**lease, "spec": {"renewTime": "2", "holderIdentity": "h"}})) != first


def test_a_lease_without_a_spec_has_never_been_renewed() -> None:
    assert mark(project({"metadata": {"name": "a"}})) == (None, None, None)
