"""What the product asks of a load balancer: to give its current weights, and to replace them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of a load balancer as they were read."""

    by_name: Mapping[str, int]
    """Backend to weight, in the load balancer's order."""
    version: str = ""
    """What a write can be made conditional on; empty: the other side cannot compare and set."""
    life: str = ""
    """Of one that forgets its weights when it starts: another one after each start."""
    configured: Mapping[str, int] = field(default_factory=dict)
    """The weights of its own configuration, where it says them."""


@dataclass(frozen=True, slots=True)
class WeightChange:
    """What is to be there instead."""

    weights: Mapping[str, int]
    """Backend to weight; others keep theirs."""
    decision: str
    """Whose they are, for the other side's log: the action's id."""
    key: str
    """The same for the same change, however often it is sent."""


class LoadBalancer(Protocol):
    """One load balancer of the settings.

    Every call raises NotFound, Forbidden, Invalid, ApiUnavailable (it may have taken effect) or SettingsError (a secret
    cannot be read).
    """

    @property
    def name(self) -> str:
        """As the settings call it."""
        ...

    @property
    def every_seconds(self) -> float:
        """How often it is read."""
        ...

    @property
    def timeout_seconds(self) -> float:
        """How long a call takes at most."""
        ...

    async def read(self) -> Weights:
        """Give the current weights."""
        ...

    async def write(self, seen: Weights, change: WeightChange) -> Weights | None:
        """Change what was seen. Gives the weights after the change, or None if they have to be read."""
        ...

    async def close(self) -> None:
        """Close its connections."""
        ...
