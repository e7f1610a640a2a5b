"""All faults by name. A fault is one function of a world and a seed; what it needs to run is said beside it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from reactor.audit.spans import Span
from tests.chaos import patterns, workload_patterns, zone_patterns
from tests.chaos.script import Plan, Source, plans
from tests.chaos.world import Act, World

Inflict = Callable[[World, Random], Awaitable[None]]
Routes = Callable[[str, int, Span, int, Sequence[Source]], list[Plan]]


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault."""

    name: str
    inflict: Inflict
    seconds: float = 10.0
    """Length in seconds of the script of a seed, in which the fault has to happen."""
    members: int = 2
    nodes: int = 1
    """NATS servers: one, or three as a cluster."""
    in_ci: bool = True
    """Part of every CI run; the others only of a whole chaos run."""
    lacks: Callable[[], str] = lambda: ""
    """Reason why it cannot be done on this machine; empty: it can."""
    heavy: bool = False
    """It takes so much of a machine that a whole chaos run plays it when the others are done."""
    apart: bool = False
    """It is played in user and network namespaces of its own."""
    environment: Callable[[Path], Mapping[str, str]] = lambda _: {}
    """Of every reactor, from the folder of the run."""
    earlier: Callable[[Path], Path | None] = lambda _: None
    """The code with which its reactors begin, made in a folder of the run; None: the present one."""
    scale: float = 0.2
    """By which the protocol's spans of time are multiplied."""

    def act(self, seed: int, routes: int) -> Act:
        """Give what happens in a seed: outages anywhere in the script."""
        return Act(seed, plans(self.name, seed, routes=routes, seconds=self.seconds), seconds=self.seconds)


@dataclass(frozen=True, slots=True)
class Outage(Fault):
    """A fault that begins and ends once, with outages of targets about it; the protocol's times are production's."""

    length: tuple[float, float] = (12.0, 20.0)
    """Seconds from its begin to its end."""
    sources: Sequence[Source] = ("slices", "probe", "quorum", "bus")
    """Kinds of sources that observe the targets of its routes."""
    routes: Routes = patterns.routes
    workloads: int = 8
    """Deployments beside its routes, each of which may move to another cluster."""
    zone: bool = True
    """True if one of three zones gets sick as well."""
    after: float = patterns.AFTER
    """Seconds of script after it."""

    def act(self, seed: int, routes: int) -> Act:
        """Give what happens in a seed: outages that lie about the fault."""
        begin = patterns.lead()
        strike = Span(begin, begin + Random(f"{self.name}/{seed}").uniform(*self.length))
        script = self.routes(self.name, seed, strike, routes, self.sources)
        script += workload_patterns.plans(self.name, seed, strike, self.workloads)
        script += [zone_patterns.plan(self.name, seed, strike)] if self.zone else []
        return Act(seed, script, strike, strike.end + self.after)


def catalog() -> dict[str, Fault]:
    """Every fault there is, by its name."""
    from tests.chaos import (
        faults_bus,
        faults_clock,
        faults_disk,
        faults_kube,
        faults_links,
        faults_network,
        faults_noise,
        faults_process,
        faults_rules,
        faults_upgrade,
        outages,
        outages_kube,
    )

    modules = (
        faults_process, faults_bus, faults_disk, faults_links, faults_network, faults_clock, faults_kube, faults_noise,
        faults_rules, faults_upgrade, outages, outages_kube,
    )  # fmt: skip
    return {fault.name: fault for module in modules for fault in module.FAULTS}
