"""Observed statuses of targets as intervals, and their meaning at a moment, read in favour of a promise or against it.

Words come late and in another order, so it cannot be said afterwards what had to be known when. So each reading leans
towards some statuses: their words count from when they were seen, all others from when they were heard. No process can
have known a target to be so for longer than that.

It shares no code with the core: nothing here knows windows, groups or decisions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf

from bus.messages import Health, Observation
from rules.rehearsal.simulation import second

Statuses = tuple[Health, ...]
BAD: Statuses = (Health.UNHEALTHY,)
UNSURE: Statuses = (Health.UNKNOWN,)
WORSE: Statuses = (Health.UNHEALTHY, Health.UNKNOWN)
GOOD: Statuses = (Health.HEALTHY,)


@dataclass(slots=True)
class StatusInterval:
    """One signal has said the same of one target without a gap."""

    status: Health
    resolved: bool
    seen: float
    heard: float
    last: float
    """Second of the last observation of this status."""
    until: float
    """From here on it is stale."""
    proves: float
    """Up to here it says how it is: an outsider's word no longer than that, of others the source can be asked."""


Part = tuple[float, Health | None]
"""From this second on it was so, until the next part; None: no source had ever observed it."""


class SignalTimeline:
    """All that was said, by target and signal."""

    def __init__(self) -> None:
        self.of: dict[str, dict[str, list[StatusInterval]]] = {}

    def hear(self, fact: Observation, seen: float, heard: float) -> None:
        """Take a word. One that is not newer than the last of its signal says nothing."""
        spells = self.of.setdefault(fact.target, {}).setdefault(fact.signal, [])
        seen = min(seen, heard)  # a clock that is ahead does not see the future
        until = inf if fact.stale_seconds is None else seen + fact.stale_seconds
        proves = inf if fact.valid_seconds is None or fact.source else seen + fact.valid_seconds
        if spells:
            last = spells[-1]
            if seen <= last.last:
                return
            # Heard too late, it does not undo the silence before it: until then it was not known. Nor does a source
            # that has begun again say anything of the time before.
            goes_on = fact.since is None or second(fact.since) <= last.last
            if goes_on and last.status is fact.status and last.resolved == fact.resolved and heard < last.until:
                last.last, last.until, last.proves = seen, until, proves
                return
        begun = seen if fact.since is None else min(seen, second(fact.since))
        if spells:
            begun = max(begun, min(seen, spells[-1].last))  # never before another status of the same signal
        spells.append(StatusInterval(fact.status, fact.resolved, begun, heard, seen, until, proves))

    def signals(self, target: str, names: Sequence[str] | None) -> dict[str, list[StatusInterval]]:
        """Give what signals say of a target: those of these names; None: all."""
        said = self.of.get(target, {})
        return said if names is None else {name: said[name] for name in names if name in said}

    def first(self, target: str, names: Sequence[str] | None, since: float) -> float | None:
        """Give when the target was first seen, `since`: after it was placed where it is."""
        spells = [spell for said in self.signals(target, names).values() for spell in said]
        return min((max(spell.seen, since) for spell in spells if spell.last > since or not since), default=None)

    def looked(self, target: str, names: Sequence[str] | None) -> float:
        """Give when the target was last seen, by any of these signals, as far as that was heard."""
        return max((spells[-1].last for spells in self.signals(target, names).values() if spells), default=0.0)

    def ever(self, target: str, names: Sequence[str] | None, health: Health, since: float) -> bool:
        """True if any source has reported this health after `since`, for a moment or longer."""
        spells = [spell for said in self.signals(target, names).values() for spell in said]
        return any(spell.status is health and (spell.last > since or not since) for spell in spells)

    def parts(
        self, target: str, names: Sequence[str] | None, now: float, towards: Statuses, since: float = 0.0
    ) -> list[Part]:
        """Give how the target was, second by second, up to now. `since`: what was seen before does not count."""
        lines = [_line(spells, now, towards, since) for spells in self.signals(target, names).values()]
        return _worst([line for line in lines if line], settles=towards is not BAD)

    def now(
        self, target: str, names: Sequence[str] | None, now: float, towards: Statuses, since: float = 0.0
    ) -> Health | None:
        """Give how the target is."""
        parts = self.parts(target, names, now, towards, since)
        return parts[-1][1] if parts else None

    def surely(self, target: str, names: Sequence[str] | None, now: float, health: Health) -> float:
        """Give for how many seconds every process must have known that it is so; 0: not now.

        Unhealthy: one signal has said so without a gap. Healthy: all signals have.
        """
        lengths = []
        for spells in self.signals(target, names).values():
            last = spells[-1]
            goes_on = last.status is health and now < min(last.until, last.proves)
            lengths.append(now - max(last.heard, last.seen) if goes_on else 0.0)
        pick = max if health is Health.UNHEALTHY else min
        return pick(lengths, default=0.0)


def _line(
    spells: Sequence[StatusInterval], now: float, towards: Statuses, since: float
) -> list[tuple[float, Health, bool]]:
    """One signal: from when on it said what, and whether that was a resolved alert."""
    out: list[tuple[float, Health, bool]] = []
    for spell in spells:
        if spell.last <= since and since:
            continue
        # What is only resolved may be settled by another signal.
        leans = spell.status in towards or (spell.resolved and towards is GOOD)
        start = max(spell.seen if leans else spell.heard, since)
        while out and out[-1][0] >= start:
            out.pop()
        if spell.until > start:
            out.append((start, spell.status, spell.resolved))
        if spell.until <= now:
            out.append((max(spell.until, start), Health.UNKNOWN, False))
    return [part for part in out if part[0] <= now]


def _worst(lines: Sequence[Sequence[tuple[float, Health, bool]]], *, settles: bool) -> list[Part]:
    """All signals together: the worst decides.

    `settles`: a resolved alert is settled by another one's Healthy, as where that one was bad in the same episode.
    """
    if len(lines) == 1 and not any(resolved for _, _, resolved in lines[0]):
        return _joined((at, status) for at, status, _ in lines[0])
    changes = sorted((at, index, number) for index, line in enumerate(lines) for number, (at, _, _) in enumerate(line))
    current: dict[int, tuple[float, Health, bool]] = {}
    out: list[Part] = []
    for place, (at, index, number) in enumerate(changes):
        current[index] = lines[index][number]
        if place + 1 < len(changes) and changes[place + 1][0] == at:
            continue
        out.append((at, _together(current.values(), settles=settles)))
    return _joined(out)


def _together(said: Iterable[tuple[float, Health, bool]], *, settles: bool) -> Health:
    answers = {(status, resolved) for _, status, resolved in said}
    if any(status is Health.UNHEALTHY for status, _ in answers):
        return Health.UNHEALTHY
    if (Health.UNKNOWN, False) in answers or ((Health.UNKNOWN, True) in answers and not settles):
        return Health.UNKNOWN
    return Health.HEALTHY if any(status is Health.HEALTHY for status, _ in answers) else Health.UNKNOWN


def _spans(parts: Sequence[Part], now: float) -> Iterator[tuple[Health | None, float, float]]:
    """Give each part's status, how long it lasted, and when it ended."""
    for (start, status), end in zip(parts, [*(at for at, _ in parts[1:]), now], strict=False):
        yield status, max(end - start, 0.0), end


def _joined(parts: Iterable[Part]) -> list[Part]:
    out: list[Part] = []
    for at, status in parts:
        if not out or out[-1][1] is not status:
            out.append((at, status))
    return out


@dataclass(frozen=True, slots=True)
class TakenHealth:
    """Health of a target as a rule with windows takes it."""

    bad: bool
    """True if it was bad for the toleration, and has not been good for the recovery time since."""
    since: float | None
    """Second in which that began; None: it is not bad."""
    seconds: float
    """For how long it was bad, without the seconds in which it was not known."""
    once_healthy: bool


def taken(
    parts: Sequence[Part], now: float, bad: Statuses, windows: tuple[float, float], towards: Statuses
) -> TakenHealth:
    """Say what a rule takes the target for, with its toleration and recovery. `bad`: what counts as bad for it.

    Seconds in which it was not known count neither way. At the very moment in which a recovery is complete, it leans.
    """
    toleration, recovery = windows
    down, since, was_bad, was_good, healthy = False, None, 0.0, 0.0, False
    for status, span, end in _spans(parts, now):
        if status in bad:
            was_bad, was_good = was_bad + span, 0.0
            if not down and was_bad >= toleration:
                down, since = True, end - (was_bad - toleration)
        elif status is Health.HEALTHY:
            healthy, was_good, was_bad = True, was_good + span, 0.0
            if down and (was_good > recovery or (was_good == recovery and towards is GOOD)):
                down, since = False, None
    return TakenHealth(down, since, was_bad, healthy)


def clocked(parts: Sequence[Part], now: float, statuses: Statuses, recovery: float) -> float:
    """Give for how many seconds it was so since it was last good for the recovery time.

    Other bad times in between, and those in which it was not known, stop the clock and do not reset it.
    """
    seconds, good = 0.0, 0.0
    for status, span, _ in _spans(parts, now):
        if status is Health.HEALTHY:
            good += span
            if good > recovery:
                seconds = 0.0
        elif status is not None:
            good = 0.0
        if status in statuses:
            seconds += span
    return seconds
