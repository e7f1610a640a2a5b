"""Patterns of a zone's health around a fault, as its two witnesses and those of the other zones see it.

A zone's plan has three backends: what the first witness of the sick zone sees, what the second one sees, and what both
see of the other two zones.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from random import Random

from reactor.audit.spans import Span
from tests.chaos import patterns
from tests.chaos.patterns import CALM, Outages, Pattern
from tests.chaos.script import Plan

RECOVERY = 4.0

Seen = tuple[Outages, Outages, Outages]
ZonePattern = Callable[[Span, float, Random], Seen]


def isolated_before(strike: Span, toleration: float, random: Random) -> Outages:
    """Isolated before the fault; good again in it, for good."""
    return (Span(_early(random), random.uniform(strike.begin + 0.2, strike.end - 0.5)),)


def relapses(strike: Span, toleration: float, random: Random) -> Outages:
    """Isolated about when the fault begins; good in it for as long as its way back takes, or less, then bad."""
    back = random.uniform(strike.begin + 2.0, strike.end - 1.0)
    return Span(_early(random), back), Span(back + RECOVERY + random.uniform(2.0, 12.0))


def flickers(strike: Span, toleration: float, random: Random) -> Outages:
    """Isolated before the fault; good in it for less than the recovery, bad again, and then good for good."""
    back = random.uniform(strike.begin - 1.5, strike.begin + 1.5)
    again = back + random.uniform(0.5, 0.85) * RECOVERY
    return Span(_early(random), back), Span(again, again + random.uniform(0.5, 2.0) * toleration)


def half_way(strike: Span, toleration: float, random: Random) -> Outages:
    """Its window is over shortly before the fault, in which it is good again."""
    begin = max(strike.begin - toleration - random.uniform(0.5, 4.0), CALM)
    return (Span(begin, random.uniform(strike.begin - 0.5, strike.begin + 5.0)),)


def _early(random: Random) -> float:
    return CALM + random.uniform(0, 0.7)


def _agreed(pattern: Pattern) -> ZonePattern:
    """Both witnesses see the same."""

    def seen(strike: Span, toleration: float, random: Random) -> Seen:
        outages = pattern(strike, toleration, random)
        return outages, outages, ()

    seen.__name__ = pattern.__name__
    return seen


def one_witness(strike: Span, toleration: float, random: Random) -> Seen:
    """One witness sees it bad for good, the other one for less than the toleration."""
    both = [patterns.stays(strike, toleration, random), patterns.recovers(strike, toleration, random)]
    random.shuffle(both)
    return both[0], both[1], ()


def one_after_the_other(strike: Span, toleration: float, random: Random) -> Seen:
    """One witness sees it bad before the fault, the other one since the midst of it, both for good."""
    both = [patterns.stays(strike, toleration, random), patterns.begins_stays(strike, toleration, random)]
    random.shuffle(both)
    return both[0], both[1], ()


def all_zones(strike: Span, toleration: float, random: Random) -> Seen:
    """All zones are bad at once, for longer than the toleration, and good again at once."""
    begin = strike.begin - random.uniform(0.2, 0.7) * toleration
    outages = (Span(begin, max(random.uniform(begin + 1.1 * toleration, strike.end), begin + 1.1 * toleration)),)
    return outages, outages, outages


PATTERNS: Sequence[ZonePattern] = (
    _agreed(isolated_before), _agreed(patterns.recovers), _agreed(patterns.stays), _agreed(half_way),
    _agreed(patterns.recovers_late), one_witness, _agreed(patterns.begins), _agreed(relapses),
    _agreed(patterns.again), _agreed(patterns.edge), all_zones, _agreed(patterns.again_stays),
    _agreed(flickers), _agreed(patterns.flaps), _agreed(patterns.begins_stays), _agreed(patterns.away_flickers),
    one_after_the_other,
)  # fmt: skip
TOLERATIONS = {"isolated_before": 3.0, "flickers": 3.0, "away_flickers": 3.0, "relapses": 6.0}
"""Of patterns whose isolation has to be complete before the fault, as its steps take up to ten seconds; and of the one
that has to be bad in the midst of its way back without being isolated again at once."""


def plan(fault: str, seed: int, strike: Span) -> Plan:
    """Give the zone of a seed: seeds in a row have patterns of their own, and so have faults."""
    random = Random(f"{fault}/{seed}/zone")
    pattern = PATTERNS[(seed + zlib.crc32(fault.encode())) % len(PATTERNS)]
    name = pattern.__name__
    toleration = TOLERATIONS.get(name) or random.choice(patterns.TOLERATIONS)
    first, second, others = pattern(strike, toleration, random)
    return Plan(seed, 0, toleration, "zone", first, (second, others), RECOVERY, name)
