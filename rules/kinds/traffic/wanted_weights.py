"""Desired weights of a TrafficFailover rule at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rules.core.desired import DesiredState


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredWeights(DesiredState):
    """The answer of `desire`; its act follows from the weights."""

    weights: Mapping[str, int] | None = None
    """Absolute weights by service, for every backend that the rule manages. None: no change."""
    step: int | None = None
    """The step of a gradual return that these weights are."""


NOTHING = DesiredWeights()
"""No change, and no hold."""
