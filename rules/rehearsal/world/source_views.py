"""Sources of a world, and those of them that answer when a decision asks for a look.

Most sources confirm what they say: since when it has been so, and who can be asked to look again. The others are
outsiders, who only say it. Both are silent in the same outages: of one signal, or of all signals at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from bus.messages import Observation
from rules.engine.evidence import Lack
from rules.rehearsal.silence import ALL, Silence
from rules.rehearsal.simulation import second as second_
from rules.rehearsal.world.fault_plan import FaultPlan, Interval, away, merged
from rules.rehearsal.world.seeded_random import SeededRandom
from rules.rehearsal.world.signal_outages import SignalOutage
from rules.rehearsal.world.source_view import LATENCY, SourceView
from rules.rehearsal.world.world_topology import Topology

VOUCHING = 0.75
"""The share of targets whose sources say since when it has been so, and answer."""
DETECTED_WITHIN = (0.25, 1.0, 5.0)
"""Seconds from a change to the look that sees it."""


@dataclass(frozen=True, slots=True)
class FreshLook:
    """A source looks because it is asked to."""

    target: str
    signal: str


@dataclass(slots=True)
class SourceViews:
    """All that look in a world."""

    dice: SeededRandom
    of: dict[tuple[str, str], SourceView] = field(default_factory=dict)
    """By target and signal."""
    _asked: set[tuple[str, str]] = field(default_factory=set)

    def asked(self, lacks: Iterable[Lack], now: float) -> Iterator[tuple[float, FreshLook]]:
        """Give who looks when, because a decision lacks these looks."""
        for lack in lacks:
            key = (lack.target, lack.signal)
            if lack.source and key in self.of and key not in self._asked:
                self._asked.add(key)
                yield max(now, second_(lack.since)) + LATENCY, FreshLook(*key)

    def answered(self, look: FreshLook, now: float) -> tuple[float, Observation] | None:
        """Let a source look, and give what is observed of it, and when. Who needs an answer that is lost asks again."""
        key = (look.target, look.signal)
        self._asked.discard(key)
        dice = self.dice.of("answer", *key, now)
        heard = now + (dice.between(LATENCY, 2) if dice.chance(0.05) else LATENCY)
        word = self.of[key].answer(now, heard)
        return None if word is None else (heard, word)

    def lines(self) -> dict[str, dict[str, Sequence[Interval]]]:
        """Intervals in which each target is bad, as its sources see it if they look; empty for a target that an
        outsider observes."""
        out: dict[str, dict[str, Sequence[Interval]]] = {}
        for (target, signal), eye in self.of.items():
            if eye.vouches:
                out.setdefault(target, {})[signal] = eye.unwell
        return out


def source_views(
    cast: Topology, sky: FaultPlan, outages: Sequence[SignalOutage], dice: SeededRandom, seconds: float
) -> SourceViews:
    """Give all sources: how well they see, and when they are silent."""
    out = SourceViews(dice)
    vouching = {target: dice.of("vouches", target).chance(VOUCHING) for target in sky.bad}
    for speaker in cast.speakers:
        mine = dice.of("eyes", speaker.target, speaker.signal)
        vouches = vouching.get(speaker.target, False)
        gone = away(mine.of("away"), seconds) if mine.of("dies").chance(0.3) else []
        silences = [one for one in outages if one[1].signal in (ALL, speaker.signal)]
        silences += [(first, Silence(signal=ALL, seconds=last - first, looking=False)) for first, last in gone]
        lag = mine.pick(DETECTED_WITHIN)
        bad = [span for span in sky.bad[speaker.target] if not mine.chance(0.05)]  # some troubles it does not see
        seen = merged([(first + lag, last + lag) for first, last in bad if last - first > lag / 2])
        # A source that confirms loses nothing, and is not late: it publishes again until the bus has stored it.
        travels = {"loss": 0.0, "late_max": 2.0} if vouches else {"late_max": mine.pick((2.0, 12.0))}
        skew = mine.pick((0.0, 0.0, -0.25, 0.25) if vouches else (0.0, 0.0, -1.0, 1.0))
        out.of[speaker.target, speaker.signal] = SourceView(
            speaker, seen, tuple(silences), vouches, seconds, mine.of("words"), skew=skew, **travels
        )  # fmt: skip
    return out
