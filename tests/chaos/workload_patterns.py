"""Patterns of workloads, which are beside the routes: of the copy on the first cluster, and on the second.

A pattern of two gives the outages of the copy on the first cluster, and of that on the second, if there is one then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from random import Random

from reactor.audit.spans import Span
from tests.chaos.patterns import (
    CALM,
    SHORT,
    TOLERATIONS,
    Outages,
    Pattern,
    again,
    again_stays,
    begins,
    begins_stays,
    edge,
    flaps,
    recovers,
    recovers_late,
    stays,
)
from tests.chaos.script import Plan

PatternOfTwo = Callable[[Span, float, Random], tuple[Outages, Outages]]
BLOCKS = 0.25
"""Part of the workloads that may not go back to a cluster that they have left."""
STEP = 5
"""Workloads in a row have patterns so far apart. It has no factor in common with their number."""


def _before(strike: Span, toleration: float, random: Random) -> float:
    """Give when the first copy has to get bad so that the workload has moved before the fault."""
    return max(strike.begin - toleration - random.uniform(2.5, 3.5), CALM)


def second_falls(strike: Span, toleration: float, random: Random) -> tuple[Outages, Outages]:
    """Moved away before the fault; the first cluster would be good again, and the copy on the second gets bad."""
    half = (strike.begin + strike.end) / 2
    back = random.uniform(strike.begin - 0.5, half)
    return (Span(_before(strike, toleration, random), back),), (Span(random.uniform(back, strike.end + 1.0)),)


def second_flickers(strike: Span, toleration: float, random: Random) -> tuple[Outages, Outages]:
    """The same, and the second copy is bad for less than the toleration."""
    [first], [second] = second_falls(strike, toleration, random)
    return (first,), (Span(second.begin, second.begin + random.uniform(*SHORT) * toleration),)


def both_fall(strike: Span, toleration: float, random: Random) -> tuple[Outages, Outages]:
    """Moved away before the fault; the second copy gets bad, and the first one would be bad all the time."""
    return (Span(_before(strike, toleration, random)),), (Span(random.uniform(strike.begin, strike.end)),)


def both_fall_first_returns(strike: Span, toleration: float, random: Random) -> tuple[Outages, Outages]:
    """The same, and a copy on the first cluster would be good again about the end of the fault."""
    [first], [second] = both_fall(strike, toleration, random)
    return (Span(first.begin, strike.end + random.uniform(-2.0, 4.0)),), (second,)


def both_fall_second_returns(strike: Span, toleration: float, random: Random) -> tuple[Outages, Outages]:
    """The same, and the second copy is good again, after more than its toleration."""
    [first], [second] = both_fall(strike, toleration, random)
    return (first,), (Span(second.begin, second.begin + toleration + random.uniform(1.0, 6.0)),)


def in_vain(strike: Span, toleration: float, random: Random) -> tuple[Outages, Outages]:
    """The second copy is bad from its begin, for good; the first one is good again within the fault."""
    back = random.uniform(strike.begin + 0.2, strike.end - 0.5)
    return (Span(_before(strike, toleration, random), back),), (Span(CALM / 2),)


def second_starts_late(strike: Span, toleration: float, random: Random) -> tuple[Outages, Outages]:
    """The first copy stays bad; the second one is bad at first, and good within the fault, or soon after it."""
    good = random.uniform(strike.begin + 0.2, strike.end + 2.0)
    return (Span(_before(strike, toleration, random)),), (Span(CALM / 2, good),)


def midst(strike: Span, toleration: float, random: Random) -> Outages:
    """The fault begins in the midst of the move; bad for good."""
    return (Span(strike.begin - toleration - random.uniform(0.0, 1.5)),)


def back_at_once(strike: Span, toleration: float, random: Random) -> Outages:
    """The same, and good again about when the new copy has started, or is just starting: one of them is too many."""
    [first] = midst(strike, toleration, random)
    return (Span(first.begin, first.begin + toleration + random.uniform(0.2, 1.5)),)


OF_ONE: Sequence[Pattern] = (
    recovers, stays, recovers_late, again, begins, edge, midst, begins_stays, flaps, again_stays, back_at_once,
)  # fmt: skip
"""Patterns of the first copy, while the second is good."""
OF_TWO: Sequence[PatternOfTwo] = (
    second_falls, second_flickers, both_fall, in_vain, second_starts_late, both_fall_first_returns,
    both_fall_second_returns,
)  # fmt: skip
NAMES = [one.__name__ for one in (*OF_ONE, *OF_TWO)]


def plans(fault: str, seed: int, strike: Span, count: int) -> list[Plan]:
    """Give so many workloads; over the seeds they have all patterns."""
    return [_plan(fault, seed, strike, number) for number in range(count)]


def _plan(fault: str, seed: int, strike: Span, number: int) -> Plan:
    random = Random(f"{fault}/{seed}/workload {number}")
    toleration, which = random.choice(TOLERATIONS), (STEP * number + seed) % len(NAMES)
    second: Outages = ()
    if which < len(OF_ONE):
        spans = OF_ONE[which](strike, toleration, random)
    else:
        spans, second = OF_TWO[which - len(OF_ONE)](strike, toleration, random)
    blocks = random.random() < BLOCKS
    pattern = f"{NAMES[which]}{', may not go back' if blocks else ''}"
    return Plan(seed, number, toleration, "copies", spans, (second,), inf, pattern, blocks)
