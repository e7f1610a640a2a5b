"""Patterns of a target's health around a fault: outages that begin, end and return before, in and after it.

Each pattern is a function of the fault's stretch, the toleration and a source of randomness, and gives the outages of
the primary. Times are seconds from the start of the script.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from random import Random

from reactor.audit.spans import Span
from tests.chaos.script import Plan, Source

TOLERATIONS = (3.0, 4.0, 6.0)
LATE_TOLERATIONS = (6.0, 8.0)
"""Of what is seen through Prometheus: well above what that way takes."""
RECOVERY = 2.0
CALM = 2.0
"""Seconds of health before anything happens."""
AFTER = 16.0
"""Seconds of script after the fault: a window, and the longest limit of an action that is due then."""
SHORT = (0.6, 0.9)
"""Outages shorter than the toleration, as a part of it."""

Outages = tuple[Span, ...]
Pattern = Callable[[Span, float, Random], Outages]


def recovers(strike: Span, toleration: float, random: Random) -> Outages:
    """Bad since shortly before the fault, good again within the toleration, and then all the time."""
    length = random.uniform(*SHORT) * toleration
    begin = strike.begin - random.uniform(0.3, 0.8) * length
    return (Span(begin, begin + length),)


def recovers_late(strike: Span, toleration: float, random: Random) -> Outages:
    """Bad for longer than the toleration, and good again before the fault ends."""
    begin = strike.begin - random.uniform(0.2, 0.7) * toleration
    latest = strike.end - 1.5
    if begin + 1.1 * toleration >= latest:
        return recovers(strike, toleration, random)
    return (Span(begin, random.uniform(begin + 1.1 * toleration, latest)),)


def edge(strike: Span, toleration: float, random: Random) -> Outages:
    """Bad for about as long as the toleration."""
    begin = strike.begin - random.uniform(0.2, 0.7) * toleration
    return (Span(begin, begin + random.uniform(0.95, 1.05) * toleration),)


def stays(strike: Span, toleration: float, random: Random) -> Outages:
    """Bad since shortly before the fault, for good."""
    return (Span(strike.begin - random.uniform(0.1, 0.8) * toleration),)


def again(strike: Span, toleration: float, random: Random) -> Outages:
    """Good again within the fault; bad once more about its end, for less than the toleration."""
    first = recovers(strike, toleration, random)
    begin = max(strike.end + random.uniform(-2, 2), first[-1].end + 1.5)
    return (*first, Span(begin, begin + random.uniform(*SHORT) * toleration))


def again_stays(strike: Span, toleration: float, random: Random) -> Outages:
    """Good again within the fault; bad once more before it ends, for good."""
    first = recovers(strike, toleration, random)
    return (*first, Span(max(first[-1].end + 1.5, strike.end - random.uniform(0.2, 0.8) * toleration)))


def flaps(strike: Span, toleration: float, random: Random) -> Outages:
    """Bad again and again, never for the toleration."""
    out, at = [], strike.begin - random.uniform(0.1, 0.4) * toleration
    while at < strike.end - 2.0:
        length = random.uniform(0.3, 0.6) * toleration
        out.append(Span(at, at + length))
        at += length + random.uniform(1.3, 2.5)
    return tuple(out)


def begins(strike: Span, toleration: float, random: Random) -> Outages:
    """Bad in the midst of the fault, for less than the toleration."""
    length = random.uniform(*SHORT) * toleration
    begin = random.uniform(strike.begin + 0.5, max(strike.end - length - 0.5, strike.begin + 0.6))
    return (Span(begin, begin + length),)


def begins_stays(strike: Span, toleration: float, random: Random) -> Outages:
    """Bad since the midst of the fault, for good."""
    return (Span(random.uniform(strike.begin + 0.5, strike.end - 0.5)),)


def away(strike: Span, toleration: float, random: Random) -> Outages:
    """Moved away before the fault; good again in it, for good."""
    begin = max(strike.begin - toleration - random.uniform(2, 3), CALM)
    return (Span(begin, random.uniform(strike.begin + 0.2, strike.end - 0.5)),)


def away_flickers(strike: Span, toleration: float, random: Random) -> Outages:
    """Moved away before the fault; good in it for less than the recovery, and then bad for good."""
    begin = max(strike.begin - toleration - random.uniform(2, 3), CALM)
    back = random.uniform(strike.begin - 0.5, strike.begin + 0.5)
    return Span(begin, back), Span(back + random.uniform(0.7, 0.85) * RECOVERY)


STEP = 5
"""Routes in a row have patterns so far apart: a few routes have many, and each seed others."""


def never(strike: Span, toleration: float, random: Random) -> Outages:
    """Good all the time."""
    return ()


PATTERNS: Sequence[Pattern] = (
    recovers, stays, recovers, again, recovers_late, away, flaps, again_stays, recovers, begins, edge, away_flickers,
    begins_stays, never,
)  # fmt: skip


def lead() -> float:
    """Seconds of script before a fault, so that what is moved away before it has been."""
    return CALM + max(LATE_TOLERATIONS) + 3.0


def routes(fault: str, seed: int, strike: Span, count: int, sources: Sequence[Source]) -> list[Plan]:
    """Give this many routes; over the seeds each source sees each pattern."""
    out = []
    for number in range(count):
        random = Random(f"{fault}/{seed}/{number}")
        pattern, source = PATTERNS[(STEP * number + seed) % len(PATTERNS)], sources[number % len(sources)]
        toleration = random.choice(LATE_TOLERATIONS if source in ("alerts", "query") else TOLERATIONS)
        plan = Plan(
            seed, number, toleration, source, pattern(strike, toleration, random), recovery=RECOVERY,
            pattern=pattern.__name__,
        )  # fmt: skip
        out.append(_with_a_third(plan, strike, random) if number // len(sources) % 3 == 2 else plan)
    return out


def _with_a_third(plan: Plan, strike: Span, random: Random) -> Plan:
    """Let there be another secondary; the first one falls, or is down, while the fault is there."""
    first = Span(random.uniform(strike.begin + 0.5, strike.end - 1.0), inf)
    return replace(plan, others=((first,), ()), pattern=f"{plan.pattern}, second falls")


def in_flight(fault: str, seed: int, strike: Span, count: int, sources: Sequence[Source]) -> list[Plan]:
    """Windows that end just before a process is frozen; half of the primaries recover soon after, half never."""
    out = []
    for number in range(count):
        random = Random(f"{fault}/{seed}/{number}")
        toleration = random.choice(TOLERATIONS)
        begin = strike.begin - toleration - random.uniform(0.2, 1.0)
        end = strike.begin + random.uniform(1, 6) if number // len(sources) % 2 else inf
        pattern = "recovers while its action is in hands" if end < inf else "stays"
        source = sources[number % len(sources)]
        out.append(Plan(seed, number, toleration, source, (Span(begin, end),), ((),), RECOVERY, pattern))
    return out


def all_down(fault: str, seed: int, strike: Span, count: int, sources: Sequence[Source]) -> list[Plan]:
    """All backends of all routes are down for the same time, and back in the same moment."""
    both = (strike,)
    return [
        Plan(
            seed, number, Random(f"{fault}/{seed}/{number}").choice(TOLERATIONS), sources[number % len(sources)], both,
            (both,) * (1 + number % 2), RECOVERY, "all down",
        )
        for number in range(count)
    ]  # fmt: skip
