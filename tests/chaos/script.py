"""What happens to the targets: a function of the seed. Times are seconds from the start of the script."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from random import Random

from reactor.audit.history import Span

RECOVERY = 1.0
TOLERATIONS = (1.0, 1.5, 2.0, 3.0)
CALM = 4.0
"""Seconds before the first outage: everybody has seen everything healthy by then."""
DESERTED_EVERY = 10
"""One route in so many ends with all its backends down."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One route and its outages."""

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
        return f"route-{self.number:02d}"

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


def plans(seed: int, *, routes: int, seconds: float) -> list[Plan]:
    """Give what happens within `seconds` to so many routes."""
    return [_plan(number, Random(f"{seed}/{number}"), seconds) for number in range(routes)]


def turns(script: list[Plan]) -> list[Turn]:
    """Give everything that happens, in order."""
    out = []
    for plan in script:
        for services, spans in (((plan.name,), plan.outages), ((plan.second,), (plan.deserted,))):
            for span in filter(None, spans):
                out += [Turn(span.begin, plan, services[0], healthy=False)]
                out += [Turn(span.end, plan, services[0], healthy=True)] if span.end < inf else []
    return sorted(out, key=lambda turn: turn.at)


def _plan(number: int, random: Random, seconds: float) -> Plan:
    toleration = random.choice(TOLERATIONS)
    outages = tuple(_outages(random, toleration, seconds))
    deserted = None
    if number % DESERTED_EVERY == DESERTED_EVERY - 1:
        begin = (outages[-1].end if outages[-1].end < inf else outages[-1].begin) + RECOVERY + 5
        deserted = Span(begin)
        outages = (*(outage for outage in outages if outage.end < inf), deserted)
    return Plan(number, toleration, number % 2 == 1, outages, deserted)


def _outages(random: Random, toleration: float, seconds: float) -> Iterator[Span]:
    """Flaps well below the toleration, outages well above it, and for some routes a last one without end."""
    at = CALM + random.uniform(0, 3)
    while True:
        if random.random() < 0.4:
            length, calm = random.uniform(0.1, 0.4) * toleration, random.uniform(0.5, 2)
        else:
            length, calm = toleration + random.uniform(3, 8), RECOVERY + random.uniform(2, 6)
        if at + length > seconds:
            yield Span(at) if random.random() < 0.6 else Span(at, seconds)
            return
        yield Span(at, at + length)
        at += length + calm
        if at >= seconds - 1:
            return
