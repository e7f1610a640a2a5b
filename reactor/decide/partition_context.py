"""Context of the partitions of one process: its bus, clock and rules, and the turns that they share."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from bus import subjects
from bus.port import Bus
from reactor.audit.signing import Signer
from reactor.decide.checkpoint_pace import WRITERS, Unsaved
from reactor.route.publisher import FactPublisher
from reactor.runtime.clock import Clock
from rules.engine.routing import Routing

LOADING = 4
"""Most partitions that are loaded at the same time: a takeover may bring ten thousand groups."""


@dataclass(frozen=True, slots=True)
class PartitionContext:
    """Parts that all partitions of this process share."""

    bus: Bus
    clock: Clock
    routing: Routing
    partitions: int
    name: str
    signer: Signer | None = None
    """Signs the audit."""
    loading: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LOADING))
    """Partitions that are being loaded: each has its share of the event loop, and so has everything else."""
    writers: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(WRITERS))
    """Partitions that write a checkpoint. The others read on meanwhile."""
    unsaved: Unsaved = field(default_factory=Unsaved)
    """Number of facts read since the checkpoints: read again if this process dies."""

    _places: dict[tuple[str, str], int] = field(default_factory=dict)

    def partition_of(self, rule: str, scope: str) -> int:
        """The partition in which the rule's groups of this scope live. Each partition asks for those of all rules."""
        if (place := self._places.get((rule, scope))) is None:
            place = subjects.partition_of(*self.routing.home(rule, scope), self.partitions)
            self._places[rule, scope] = place
        return place

    @property
    def publisher(self) -> FactPublisher:
        """Publisher of the facts that groups tell each other."""
        return FactPublisher(self.bus, self.routing, self.partitions, self.clock, source="/reactor/decider")
