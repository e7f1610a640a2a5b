"""A small world: services that fail, sources that see it badly, a bus that delays, doubles and loses.

The world knows the truth and the rule only what it is told. Everything follows from the seed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.unit.rules.histories import SERVICES
from tests.unit.rules.oracle import Heard

EVERY = 10
"""Seconds between two looks of a source."""
STALE = 90


@dataclass(frozen=True)
class Weather:
    """How bad the world is."""

    outage: float = 1 / 120
    """Chance per look that a healthy service fails."""
    lengths: tuple[int, ...] = (4, 15, 45, 240, 900)
    """How long it then stays so, in seconds: flaps and outages."""
    loss: float = 0.02
    doubt: float = 0.01
    """Chance that a look gives no answer."""
    silence: float = 1 / 400
    """Chance that a source dies for five minutes."""
    delay_max: int = 4
    doubles: float = 0.03
    skew_max: int = 1


@dataclass
class World:
    """What was true, and what was heard of it."""

    seed: int
    seconds: int
    weather: Weather = field(default_factory=Weather)

    def history(self) -> list[Heard]:
        """Everything that was heard, in the order of hearing."""
        chance = random.Random(self.seed)
        heard = [word for service in SERVICES for word in self._of(service, chance)]
        return sorted(heard, key=lambda word: (word.heard, word.service, word.seen))

    def _of(self, service: str, chance: random.Random) -> Iterator[Heard]:
        weather = self.weather
        down_until = silent_until = -1
        skew = chance.randint(-weather.skew_max, 0)
        for second in range(0, self.seconds, EVERY):
            if down_until <= second and second and chance.random() < weather.outage:
                down_until = second + chance.choice(weather.lengths)
            if chance.random() < weather.silence:
                silent_until = second + 300
            if silent_until > second or chance.random() < weather.loss:
                continue
            status = "Unhealthy" if down_until > second else "Healthy"
            status = "Unknown" if chance.random() < weather.doubt else status
            word = Heard(
                service, status, max(second + skew, 0), second + chance.randint(0, weather.delay_max), stale=STALE
            )
            yield word
            if chance.random() < weather.doubles:
                yield Heard(service, status, word.seen, word.heard + chance.randint(0, 60), stale=STALE)
