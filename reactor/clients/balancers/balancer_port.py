"""Port to a load balancer: read its current weights, and replace them."""

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
    """Version on which a write can be made conditional; empty: the other side cannot compare and set."""
    life: str = ""
    """Id of the life of a load balancer that forgets its weights when it starts: another one after each start."""
    configured: Mapping[str, int] = field(default_factory=dict)
    """The weights of its own configuration, where it says them."""


@dataclass(frozen=True, slots=True)
class WeightChange:
    """Request to change weights."""

    weights: Mapping[str, int]
    """Backend to weight; others keep theirs."""
    decision: str
    """Id of the action that decided them, for the other side's log."""
    key: str
    """Idempotency key: the same for the same change, however often it is sent."""


class LoadBalancer(Protocol):
    """One load balancer of the settings.

    Every call raises NotFound, Forbidden, Invalid, ApiUnavailable (it may have taken effect) or SettingsError (a secret
    cannot be read).
    """

    @property
    def name(self) -> str:
        """Name in the settings."""
        ...

    @property
    def every_seconds(self) -> float:
        """Seconds between two reads."""
        ...

    @property
    def timeout_seconds(self) -> float:
        """Most seconds for one call."""
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
