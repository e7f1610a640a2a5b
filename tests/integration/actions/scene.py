"""The scene of most tests: a TrafficSplit of a primary and a secondary, and who writes to it."""

from __future__ import annotations

from reactor.demo.kube import EmulatedCluster, Emulator
from tests.unit.actions.builders import weights_of

FAILOVER = {"p": 0, "s": 1}
STANDS = [("p", 1), ("s", 0)]


def standing(cluster: EmulatedCluster) -> list[tuple[str, object]]:
    return weights_of(cluster.get("trafficsplits", "checkout", "shop"))


def our_writes(emulator: Emulator) -> int:
    """Number of our writes that changed the split."""
    return len(emulator.writes.effective("trafficsplits", manager="alert-reactor"))
