"""One source's look at one target of a world: what it sees, in which seconds it is heard, and what it answers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from bus.messages import Fact, Health, Observation
from rules.rehearsal.silence import with_silences
from rules.rehearsal.simulation import at as at_
from rules.rehearsal.simulation import second as second_
from rules.rehearsal.world.fault_plan import Interval, merged
from rules.rehearsal.world.seeded_random import SeededRandom
from rules.rehearsal.world.signal_outages import SignalOutage
from rules.rehearsal.world.world_topology import SignalGenerator

LATENCY = 0.25
"""Seconds from a look to its word, mostly."""
PACE = 0.45
"""An unchanged status is said again after this share of the time in which it goes stale."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A source has seen the same from this second on, up to the next stretch."""

    begin: float
    status: Health
    resolved: bool = False


@dataclass(frozen=True)
class SourceView:
    """One source's look at one target."""

    speaker: SignalGenerator
    bad: Sequence[Interval]
    """Intervals in which it sees the target bad, if it looks."""
    silences: Sequence[SignalOutage]
    vouches: bool
    seconds: float
    dice: SeededRandom
    loss: float = 0.02
    doubt: float = 0.01
    """Chance that a look gives no answer."""
    late: float = 0.05
    late_max: float = 12.0
    doubled: float = 0.02
    skew: float = 0.0
    """Seconds that its clock is ahead."""

    def words(self) -> list[tuple[float, Fact]]:
        """Give all that it says unasked, with the second in which each word is heard."""
        looks = [(second, self._word(stretch, second)) for second, stretch in self._looks]
        kept = [one for one in looks if not self._travel.chance(self.loss)]
        said = with_silences(kept, self.silences)
        return [event for second, fact in said if isinstance(fact, Observation) for event in self._heard(second, fact)]

    def answer(self, second: float, heard: float) -> Observation | None:
        """Give what it says of this second when it is asked; None: it does not answer, or its answer is lost."""
        if self._end_of_silence(second) > second or self._end_of_silence(heard) > heard:
            return None
        place = bisect_right(self._stretches, second, key=lambda one: one.begin)
        return self._dated(self._word(self._stretches[place - 1], second)) if place else None

    @property
    def unwell(self) -> Sequence[Interval]:
        """Intervals in which it sees the target bad, or cannot tell although it looks."""
        ends = [*(one.begin for one in self._stretches[1:]), self.seconds]
        unsure = [
            (one.begin, end)
            for one, end in zip(self._stretches, ends, strict=False)
            if one.status is Health.UNKNOWN and not one.resolved
        ]
        return merged([*self.bad, *unsure])

    @cached_property
    def _restarts(self) -> list[float]:
        return sorted(first + one.seconds for first, one in self.silences if not one.looking)

    @cached_property
    def _looks(self) -> list[tuple[float, Stretch]]:
        """Each second in which something is said, with what has been seen since when."""
        out: list[tuple[float, Stretch]] = []
        last: Stretch | None = None
        restarts, doubts = self._restarts, self.dice.of("doubt")
        for second, status, resolved in self._seen():
            if doubts.chance(self.doubt):
                status, resolved = Health.UNKNOWN, False
            begun = restarts[place - 1] if (place := bisect_right(restarts, second)) else 0.0
            if last is None or (last.status, last.resolved) != (status, resolved):
                last = Stretch(second, status, resolved)
            elif last.begin < begun:
                last = Stretch(begun, status, resolved)
            out.append((second, last))
        return out

    @cached_property
    def _stretches(self) -> list[Stretch]:
        return sorted({one.begin: one for _, one in self._looks}.values(), key=lambda one: one.begin)

    def _seen(self) -> Iterator[tuple[float, Health, bool]]:
        """Give each second in which something is seen: on every change, and now and then while nothing changes."""
        pace = round(self.speaker.stale * PACE * 4) / 4
        edges = {second for span in self.bad for second in span if second < self.seconds}
        index, ended = 0, None
        for second in sorted({tick * pace for tick in range(int(self.seconds / pace) + 1)} | edges):
            while index < len(self.bad) and self.bad[index][1] <= second:
                ended, index = self.bad[index][1], index + 1
            is_bad = index < len(self.bad) and self.bad[index][0] <= second
            if is_bad or not self.speaker.alert:
                yield second, Health.UNHEALTHY if is_bad else Health.HEALTHY, False
            elif ended is not None:  # an alert says that it is resolved, and Healthy only when that is confirmed
                proven = self.speaker.confirms and second >= ended + 30
                yield second, Health.HEALTHY if proven else Health.UNKNOWN, not proven

    def _heard(self, second: float, word: Observation) -> Iterator[tuple[float, Fact]]:
        travel, dated = self._travel, self._dated(word)
        heard = second + (travel.between(LATENCY, self.late_max) if travel.chance(self.late) else LATENCY)
        yield self._end_of_silence(heard), dated
        if travel.chance(self.doubled):
            yield self._end_of_silence(heard + travel.between(LATENCY, 60)), dated

    def _end_of_silence(self, second: float) -> float:
        while ends := [first + one.seconds for first, one in self.silences if first <= second < first + one.seconds]:
            second = max(ends)
        return second

    @cached_property
    def _travel(self) -> SeededRandom:
        return self.dice.of("travel")

    def _word(self, stretch: Stretch, second: float) -> Observation:
        word = Observation(
            target=self.speaker.target, signal=self.speaker.signal, status=stretch.status, resolved=stretch.resolved,
            observed_at=at_(second), stale_seconds=self.speaker.stale,
        )  # fmt: skip
        if not self.vouches:
            return word
        return word.model_copy(update={"source": self.speaker.signal, "since": at_(stretch.begin)})

    def _dated(self, word: Observation) -> Observation:
        """Give the word with the source's own clock. An Observation begins no later than it is seen."""
        seen = max(second_(word.observed_at) + self.skew, 0)
        since = None if word.since is None else max(second_(word.since) + self.skew, 0)
        changes = {"observed_at": at_(seen), "since": None if since is None else at_(min(since, seen))}
        return word.model_copy(update=changes) if self.skew else word
