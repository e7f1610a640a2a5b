"""Silences of a history: times in which a signal is not heard, and what is heard when they end.

A source that looked all the time publishes at the end what it saw, dated as it saw it, and then how each target is and
since when. One that did not look (a restart) publishes a first look: it proves nothing about the time before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import Field

from bus.messages import Fact, Observation
from bus.messages.base import MessagePart, Name
from rules.rehearsal.timeline import at, second

TimedFact = tuple[float, Fact]
TimedObservations = Sequence[tuple[float, Observation]]
ALL = "*"
SECONDS_MAX = 10 * 366 * 86_400
_TICK = timedelta(microseconds=1)


class Silence(MessagePart):
    """The body of a `silence` event."""

    signal: Name
    """`*`: all signals."""
    seconds: Annotated[float, Field(strict=True, ge=0, le=SECONDS_MAX, allow_inf_nan=False)]
    looking: Annotated[bool, Field(strict=True)] = True
    """True if the source still looks while its observations are lost."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Seconds from `first` up to, and without, `last`."""

    first: float
    last: float

    def holds(self, moment: float) -> bool:
        """True if the second `moment` is inside the gap."""
        return self.first <= moment < self.last


def with_silences(events: Sequence[TimedFact], silences: Iterable[tuple[float, Silence]]) -> list[TimedFact]:
    """Give the events, sorted by second, as they are heard. Without silences they are the same."""
    silences = list(silences)
    numbers: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, (_, fact) in enumerate(events):
        if isinstance(fact, Observation) and any(one.signal in (ALL, fact.signal) for _, one in silences):
            numbers[fact.target, fact.signal].append(number)
    moved = {number for mine in numbers.values() for number in mine}
    heard = [event for number, event in enumerate(events) if number not in moved]
    for (_, signal), mine in numbers.items():
        about = [(first, one) for first, one in silences if one.signal in (ALL, signal)]
        words = [(when, fact) for when, fact in (events[number] for number in mine) if isinstance(fact, Observation)]
        heard += _SilencedSignal(about).heard(words)
    return sorted(heard, key=lambda event: event[0]) if moved else list(events)


def _merged(gaps: Iterable[Gap]) -> list[Gap]:
    """Give the same seconds in order and without overlaps; what touches is one."""
    out: list[Gap] = []
    for gap in sorted(gaps, key=lambda gap: (gap.first, gap.last)):
        if out and gap.first <= out[-1].last:
            out[-1] = Gap(out[-1].first, max(out[-1].last, gap.last))
        else:
            out.append(gap)
    return out


class _SilencedSignal:
    """One signal of one target, as its source sees it and as it is heard."""

    def __init__(self, silences: Sequence[tuple[float, Silence]]) -> None:
        self._gaps = _merged(Gap(first, first + one.seconds) for first, one in silences)
        self._unseen = _merged(Gap(first, first + one.seconds) for first, one in silences if not one.looking)
        self._last: Observation | None = None
        self._since = at(0)
        """Since when it has been as the last word says, without a break."""

    def heard(self, words: TimedObservations) -> Iterator[tuple[float, Observation]]:
        """Give its words with the second in which each is heard, and what is published when silences end."""
        ends = {gap.last: False for gap in self._gaps} | {gap.last: True for gap in self._unseen}
        left = list(words)
        for end in sorted(ends):
            while left and left[0][0] <= end:
                yield from self._word(*left.pop(0))
            yield from self._said_again(end, first_look=ends[end])
        for when, word in left:
            yield from self._word(when, word)

    def _word(self, when: float, word: Observation) -> Iterator[tuple[float, Observation]]:
        last = self._last
        if last is None or word.observed_at > last.observed_at:
            goes_on = last is not None and last.status is word.status and not _is_stale(last, word.observed_at)
            says_break = word.since is not None and last is not None and word.since > last.observed_at
            self._since = self._since if goes_on and not says_break else word.since or word.observed_at
            self._last = word
        if not any(gap.holds(when) for gap in self._unseen):
            yield self._published(when, word)

    def _said_again(self, end: float, *, first_look: bool) -> Iterator[tuple[float, Observation]]:
        last, now = self._last, at(end)
        if last is None or _is_stale(last, now):
            return
        if first_look:
            self._since = now
        changes = {"observed_at": now, "since": self._since, **({"version": ""} if first_look else {})}
        self._last = last.model_copy(update=changes)
        yield self._published(end, self._last)

    def _published(self, when: float, word: Observation) -> tuple[float, Observation]:
        """Give the word as it is heard: it proves nothing after the begin of the next silence."""
        for gap in self._gaps:
            if gap.holds(when):
                return gap.last, _proves_until(word, word.observed_at)
            if gap.first > when:
                return when, _proves_until(word, max(at(gap.first) - _TICK, word.observed_at))
        return when, word


def _proves_until(word: Observation, moment: datetime) -> Observation:
    if word.valid_seconds is None and word.source:
        return word  # it proves its own moment only
    seconds = second(moment) - second(word.observed_at)
    if word.valid_seconds is not None:
        seconds = min(seconds, word.valid_seconds)
    return word.model_copy(update={"valid_seconds": seconds})


def _is_stale(word: Observation, moment: datetime) -> bool:
    return word.stale_seconds is not None and word.observed_at + timedelta(seconds=word.stale_seconds) <= moment
