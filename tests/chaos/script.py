"""Script of the targets' health: a function of the seed. Times are seconds from the start of the script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import Literal

from reactor.audit.spans import Span

Source = Literal["slices", "bus", "probe", "quorum", "copies", "zone", "alerts", "query"]
"""Kind of source: EndpointSlices, observations of another program on the bus, HTTP probes, a Quorum of three of them, a
Deployment's status, two probes of a zone, Alertmanager's posts, a PromQL query."""
RECOVERY = 1.0
TOLERATIONS = (1.0, 1.5, 2.0, 3.0)
CALM = 0.5
"""Seconds before the first outage, when all processes have long seen all targets healthy."""
DESERTED_EVERY = 10
"""One route in so many ends with all its backends down."""
DESERTED_AFTER = RECOVERY + 5
"""Seconds after the last outage: no action of that one is in flight any more."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One object and the outages of its backends."""

    seed: int
    number: int
    toleration: float
    source: Source
    outages: tuple[Span, ...]
    others: tuple[tuple[Span, ...], ...] = ((),)
    """The outages of each secondary, in the order in which they are named."""
    recovery: float = RECOVERY
    pattern: str = ""
    """Description of the pattern, for people."""
    blocks: bool = False
    """True if a workload that left a cluster may not come back to it within the script."""

    @property
    def told_by_bus(self) -> bool:
        """Its targets' health comes over the bus from an outsider."""
        return self.source == "bus"

    @property
    def is_route(self) -> bool:
        """Not a workload, nor a zone."""
        return self.source not in ("copies", "zone")

    @property
    def name(self) -> str:
        """The object, its rule and its primary backend are called so."""
        return f"{'route' if self.is_route else self.source}-{self.seed}-{self.number:02d}"

    @property
    def seconds(self) -> Mapping[str, tuple[Span, ...]]:
        """The secondary backends, each with its outages."""
        return {f"{self.name}-{number}": spans for number, spans in enumerate(self.others, 2)}

    @property
    def backends(self) -> Mapping[str, tuple[Span, ...]]:
        """All of them, the primary first."""
        return {self.name: self.outages, **self.seconds}


@dataclass(frozen=True, slots=True)
class Turn:
    """At this moment a backend goes down or comes back."""

    at: float
    plan: Plan
    service: str
    healthy: bool


@dataclass(frozen=True, slots=True)
class Strike:
    """Time of an act's fault."""

    span: Span
    seconds: float = field(default=0.0)
    """Length of the whole script."""


def plans(fault: str, seed: int, *, routes: int, seconds: float) -> list[Plan]:
    """Give what happens within `seconds` to so many routes; every seed of every fault has a script of its own."""
    return [_plan(seed, number, Random(f"{fault}/{seed}/{number}"), seconds) for number in range(routes)]


def turns(script: list[Plan]) -> list[Turn]:
    """Give everything that happens, in order."""
    out = []
    for plan in script:
        for service, spans in plan.backends.items():
            for span in spans:
                out += [Turn(span.begin, plan, service, healthy=False)]
                out += [Turn(span.end, plan, service, healthy=True)] if span.end < inf else []
    return sorted(out, key=lambda turn: turn.at)


def _plan(seed: int, number: int, random: Random, seconds: float) -> Plan:
    toleration = random.choice(TOLERATIONS)
    source: Source = "bus" if number % 2 else "slices"
    if number % DESERTED_EVERY != DESERTED_EVERY - 1:
        return Plan(seed, number, toleration, source, tuple(_outages(random, toleration, seconds)))
    outages = tuple(_outages(random, toleration, seconds - DESERTED_AFTER))
    last = outages[-1]
    deserted = Span((last.end if last.end < inf else last.begin) + DESERTED_AFTER)
    outages = (*(outage for outage in outages if outage.end < inf), deserted)
    return Plan(seed, number, toleration, source, outages, ((deserted,),))


def _outages(random: Random, toleration: float, seconds: float) -> Iterator[Span]:
    """Outages below, about at and well above the toleration, and for some routes a last one without end."""
    at = CALM + random.uniform(0, 3)
    while True:
        drawn = random.random()
        if drawn < 0.4:
            length, calm = random.uniform(0.1, 0.9) * toleration, random.uniform(0.5, 2)
        elif drawn < 0.5:
            length, calm = random.uniform(0.9, 1.2) * toleration, RECOVERY + random.uniform(1, 3)
        else:
            length, calm = toleration + random.uniform(1.5, 5), RECOVERY + random.uniform(1, 3)
        if at + length > seconds:
            yield Span(at) if random.random() < 0.6 else Span(at, seconds)
            return
        yield Span(at, at + length)
        at += length + calm
        if at >= seconds - 1:
            return
