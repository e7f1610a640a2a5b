"""All faults by name. A fault is one function of a world and a seed; what it needs to run is said beside it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.chaos.world import World

Inflict = Callable[[World, Random], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault."""

    name: str
    inflict: Inflict
    seconds: float = 10.0
    """How long the script of a seed plays, in which the fault has to happen."""
    members: int = 2
    nodes: int = 1
    """NATS servers: one, or three as a cluster."""
    in_ci: bool = True
    """Part of every CI run; the others only of a whole chaos run."""
    lacks: Callable[[], str] = lambda: ""
    """Why it cannot be done on this machine; empty: it can."""
    heavy: bool = False
    """It takes so much of a machine that a whole chaos run plays it when the others are done."""
    apart: bool = False
    """It is played in user and network namespaces of its own."""
    environment: Callable[[Path], Mapping[str, str]] = lambda _: {}
    """Of every reactor, from the folder of the run."""


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
    )

    modules = (
        faults_process, faults_bus, faults_disk, faults_links, faults_network, faults_clock, faults_kube, faults_noise,
        faults_rules,
    )  # fmt: skip
    return {fault.name: fault for module in modules for fault in module.FAULTS}
