"""History of one workload: the times at which its copy on each cluster was bad in truth, and the writes to its copies.
Plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from reactor.audit.spans import Span

Effect = Literal["place", "mark", "unmark", "remove", "resize", "nothing"]
"""A copy is made; is marked as leaving; is no longer; is deleted, or has no replicas left; has another number of them;
has new notes alone."""


@dataclass(frozen=True, slots=True)
class CopyWrite:
    """One effective write to a copy, as its API server saw it."""

    at: float
    cluster: str
    effect: Effect
    generation: int = 0
    """Of the decision that the copy names after it; 0: it is gone."""
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class WorkloadHistory:
    """One workload over one run: a whole copy on one of two clusters, which leaves it when that copy is bad."""

    name: str
    toleration: float
    home: str
    """Cluster of its only copy at first."""
    outages: Mapping[str, tuple[Span, ...]]
    """For each cluster, spans in which a copy there is bad, or would be. A new copy that does not run yet is bad."""
    writes: tuple[CopyWrite, ...]
    blocks: bool = False
    """True if a cluster that was left for a bad copy gets none again within the run."""
    period: float = 0.0
    """As in `RouteHistory`, and so are the others."""
    lag: float = 0.0
    blind: tuple[Span, ...] = ()
    unheard: tuple[Span, ...] = ()
    dark: bool = True
    blind_grace: float = 10.0
