"""Outages of a world: times in which one signal, or none at all, is heard, while things get bad and well again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rules.rehearsal.silence import ALL, Silence
from rules.rehearsal.world.seeded_random import SeededRandom

SignalOutage = tuple[float, Silence]
"""From this second on."""
EVERY = 1.5 * 3600.0
"""Seconds between two outages, on average."""
LONGEST = 3600.0
_SHARES = (0.3, 0.7, 0.95, 1.0, 1.05, 1.5, 2.5)
"""Of a toleration: shorter than it, about as long, and longer."""


def outages(
    dice: SeededRandom, tolerations: Sequence[float], signals: Sequence[str], seconds: float
) -> list[SignalOutage]:
    """Draw when nothing is observed of one signal, or of all: the bus is away, or all reactors are."""
    out: list[SignalOutage] = []
    at = dice.between(0, EVERY)
    while at < seconds and signals:
        length = min(dice.pick(_SHARES) * dice.pick(tolerations) + dice.between(1, 10), LONGEST)
        signal = ALL if dice.chance(0.5) else dice.pick(signals)
        silence = Silence(signal=signal, seconds=round(length * 4) / 4, looking=dice.chance(0.6))
        out.append((at, silence))
        at += silence.seconds + dice.between(60, 2 * EVERY)
    return out


def around(outage: SignalOutage, bears: float, dice: SeededRandom) -> Iterator[tuple[float, float]]:
    """Draw when a target is bad around an outage: a window ends in it, or it recovers, or falls again in it."""
    begin, end = outage[0], outage[0] + outage[1].seconds
    kind, length = dice.roll(), end - begin
    first = max(begin - dice.between(0, bears), 0)
    if kind < 0.5:  # it recovers while nothing is heard
        yield first, begin + max(round(dice.roll() * length * 4) / 4, 0.25)
    elif kind < 0.7:  # and is bad again when something is
        yield first, begin + length / 3
        yield begin + 2 * length / 3, end + dice.between(1, 2 * bears)
    elif kind < 0.85:  # it falls in it, and stays so
        yield begin + dice.between(0, length), end + dice.between(1, 2 * bears)
    else:  # it falls and is well again in it
        yield begin + length / 4, begin + 3 * length / 4
