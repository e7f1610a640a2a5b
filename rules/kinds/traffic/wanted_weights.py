"""What a TrafficFailover rule wants of its route at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rules.core.desired import DesiredState


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredWeights(DesiredState):
    """The answer of `desire`; its act follows from the weights."""

    weights: Mapping[str, int] | None = None
    """As they should be: service to weight, for every backend that the rule manages. None: it wants none."""
    step: int | None = None
    """The step of a gradual return that these weights are."""


NOTHING = DesiredWeights()
"""It wants nothing, and nothing keeps it from it."""
