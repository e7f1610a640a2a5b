"""What happens to the targets: a function of the seed. Times are seconds from the start of the script."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from random import Random

from reactor.audit.history import Span

RECOVERY = 1.0
TOLERATIONS = (1.0, 1.5, 2.0, 3.0)
CALM = 0.5
"""Seconds before the first outage, when everybody has long seen everything healthy."""
DESERTED_EVERY = 10
"""One route in so many ends with all its backends down."""
DESERTED_AFTER = RECOVERY + 5
"""Seconds after the last outage: nobody has an action of that one in hands any more."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One route and its outages."""

    seed: int
    number: int
    toleration: float
    told_by_bus: bool
    """Its targets' health comes over the bus from a stranger and through the routers; else from EndpointSlices."""
    outages: tuple[Span, ...]
    deserted: Span | None = None
    """The secondary is down too."""

    @property
    def name(self) -> str:
        """The route, its rule and its primary service are called so."""
        return f"route-{self.seed}-{self.number:02d}"

    @property
    def second(self) -> str:
        """The secondary service."""
        return f"{self.name}-second"


@dataclass(frozen=True, slots=True)
class Turn:
    """At this moment a service goes down or comes back."""

    at: float
    plan: Plan
    service: str
    healthy: bool


def plans(fault: str, seed: int, *, routes: int, seconds: float) -> list[Plan]:
    """Give what happens within `seconds` to so many routes; every seed of every fault has a script of its own."""
    return [_plan(seed, number, Random(f"{fault}/{seed}/{number}"), seconds) for number in range(routes)]


def turns(script: list[Plan]) -> list[Turn]:
    """Give everything that happens, in order."""
    out = []
    for plan in script:
        for services, spans in (((plan.name,), plan.outages), ((plan.second,), (plan.deserted,))):
            for span in filter(None, spans):
                out += [Turn(span.begin, plan, services[0], healthy=False)]
                out += [Turn(span.end, plan, services[0], healthy=True)] if span.end < inf else []
    return sorted(out, key=lambda turn: turn.at)


def _plan(seed: int, number: int, random: Random, seconds: float) -> Plan:
    toleration = random.choice(TOLERATIONS)
    if number % DESERTED_EVERY != DESERTED_EVERY - 1:
        return Plan(seed, number, toleration, number % 2 == 1, tuple(_outages(random, toleration, seconds)))
    outages = tuple(_outages(random, toleration, seconds - DESERTED_AFTER))
    last = outages[-1]
    deserted = Span((last.end if last.end < inf else last.begin) + DESERTED_AFTER)
    outages = (*(outage for outage in outages if outage.end < inf), deserted)
    return Plan(seed, number, toleration, number % 2 == 1, outages, deserted)


def _outages(random: Random, toleration: float, seconds: float) -> Iterator[Span]:
    """Flaps well below the toleration, outages well above it, and for some routes a last one without end."""
    at = CALM + random.uniform(0, 3)
    while True:
        if random.random() < 0.4:
            length, calm = random.uniform(0.1, 0.4) * toleration, random.uniform(0.5, 2)
        else:
            length, calm = toleration + random.uniform(1.5, 5), RECOVERY + random.uniform(1, 3)
        if at + length > seconds:
            yield Span(at) if random.random() < 0.6 else Span(at, seconds)
            return
        yield Span(at, at + length)
        at += length + calm
        if at >= seconds - 1:
            return
