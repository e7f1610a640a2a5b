"""Observations as the bus stores them, by target: since when each target was bad, and until when that is proven."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf

from bus.messages import Health, Observation
from reactor.audit.spans import Span, merged

UNDER_WAY = 1.0
"""Seconds for which an observation may have been on its way: until then the decider may not have had it. The evidence
in the record tells what it had."""


@dataclass(frozen=True, slots=True)
class Badness:
    """Stretch for which a target was bad without a break, as its sources saw it. Seconds since the epoch."""

    since: float
    proven_until: float
    """Time up to which it was seen to be bad."""


@dataclass(slots=True)
class TargetObservations:
    """Observations of one target."""

    said: list[Observation] = field(default_factory=list)

    def bad(self, at: float, signals: Collection[str] | None) -> Badness | None:
        """Give since when at least one signal had been bad at this moment; None: none was.

        Unknown ends nothing: a window waits while nothing is known, so this gives the earliest possible moment.
        """
        spells, proven = list[Span](), -inf
        for words in self._by_signal(at, signals).values():
            stretches, until = _stretches(words)
            spells += stretches
            proven = max(proven, until)
        now = next((spell for spell in merged(spells) if spell.end == inf), None)
        return Badness(now.begin, proven) if now is not None else None

    def _by_signal(self, at: float, signals: Collection[str] | None) -> Mapping[str, list[Observation]]:
        out: dict[str, list[Observation]] = defaultdict(list)
        for one in sorted(self.said, key=lambda said: said.observed_at):
            latest = at - UNDER_WAY if one.status is Health.HEALTHY else at
            if one.observed_at.timestamp() <= latest and (signals is None or one.signal in signals):
                out[one.signal].append(one)
        return out


def _stretches(words: Iterable[Observation]) -> tuple[list[Span], float]:
    """Give when one signal was bad, and until when its newest stretch is proven, if it goes on."""
    out: list[Span] = []
    last: Observation | None = None
    proven = -inf
    for one in words:
        at = one.observed_at.timestamp()
        if one.status is Health.HEALTHY and last is not None:
            out[-1] = Span(out[-1].begin, at)
            last, proven = None, -inf
        elif one.status is Health.UNHEALTHY:
            since = one.since.timestamp() if one.since is not None else at
            if last is None:
                out.append(Span(since))
            elif not _goes_on(last, one):  # in between nothing looked
                out[-1] = Span(out[-1].begin, last.observed_at.timestamp())
                out.append(Span(since))
            last, proven = one, max(proven, _proves_until(one))
    return out, proven


def _goes_on(last: Observation, one: Observation) -> bool:
    """True if the signal was bad all the time between two of its observations."""
    if one.since is None or (one.version and one.version == last.version):
        return True
    return one.since.timestamp() <= max(_proves_until(last), last.observed_at.timestamp() + one.resolution_seconds)


def _proves_until(one: Observation) -> float:
    """End of the time that an observation proves. Without a source that can be asked it counts until it is stale."""
    holds = one.valid_seconds
    if holds is None:
        holds = 0.0 if one.source else inf if one.stale_seconds is None else one.stale_seconds
    return one.observed_at.timestamp() + holds


def hear(observations: Iterable[Observation]) -> Mapping[str, TargetObservations]:
    """Sort what was said by its target."""
    heard: dict[str, TargetObservations] = defaultdict(TargetObservations)
    for one in observations:
        heard[one.target].said.append(one)
    return heard


def remembered(known: TargetObservations, since: float) -> bool:
    """True if observations from before this moment are still stored."""
    return any(one.observed_at.timestamp() <= since for one in known.said)
