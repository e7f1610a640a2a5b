"""History of one zone: when each of its witnesses saw it bad in truth, and what was written to its cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reactor.audit.spans import Span

Marks = frozenset[str]
"""Marks that an isolation has left on a node: some of FENCED, CORDONED, EXCLUDED and RELEASED."""
FENCED, CORDONED, EXCLUDED, RELEASED = "taint", "cordon", "label", "released"
NONE: Marks = frozenset()


@dataclass(frozen=True, slots=True)
class ZoneWrite:
    """One write that the cluster's API server carried out."""

    at: float
    node: str = ""
    """The node that was written, or on which an evicted pod ran; empty: it was about neither."""
    marks: Marks | None = None
    """Marks on the node after it; None: no node was written."""
    pod: str = ""
    """The pod that was evicted."""
    foreign: str = ""
    """Change that no isolation may make, in words."""


@dataclass(frozen=True, slots=True)
class ZoneHistory:
    """The zone that may get bad, over one run. Times in seconds."""

    name: str
    toleration: float
    recovery: float
    nodes: Mapping[str, Marks]
    """Its nodes, each with the marks that it has to have while the zone is isolated."""
    witnesses: Mapping[str, tuple[Span, ...]]
    """Spans in which each of its witnesses saw it bad."""
    elsewhere: tuple[Span, ...] = ()
    """Spans in which another zone was bad."""
    writes: tuple[ZoneWrite, ...] = ()
    occupied: tuple[Span, ...] = ()
    """Spans in which a pod was in the zone that an isolation moves away."""
    marks: Mapping[str, Marks] = field(default_factory=dict)
    """Marks on its nodes at the end, as the API server says."""
    changed: tuple[str, ...] = ()
    """Objects that are otherwise not as they were at first, at the end."""
    batches: tuple[int, ...] = ()
    """Numbers of nodes that may be back after each batch."""
    bake: float = 0.0
    """Seconds for which a batch is watched before the next."""
    period: float = 0.0
    """Seconds between two looks of a witness."""
    lag: float = 0.0
    blind: tuple[Span, ...] = ()
    """Spans in which nothing looked at it."""
    unheard: tuple[Span, ...] = ()
    dark: bool = True
    """True if in these spans nothing could look either, if it was asked to."""
    blind_grace: float = 10.0
    """Seconds, beside a whole window, from the end of such a span to the action that is then due."""
