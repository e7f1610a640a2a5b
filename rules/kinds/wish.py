"""What a rule wants of the world at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from rules.reasons import Because, Held


@dataclass(frozen=True, slots=True)
class Wish:
    """The answer of a kind's `desire`. With neither weights nor told, it wants nothing."""

    weights: Mapping[str, int] | None = None
    """Service to weight, for every backend that the rule manages."""
    told: str | None = None
    """The status that people should know of."""
    message: str = ""
    because: Because = Because.DRIFT
    detail: str = ""
    held: tuple[Held, str] | None = None
    """Why it wants nothing although something may have to be done: reason and detail."""
    step: int | None = None
    """The step of a gradual return that these weights are."""
    look_again: datetime | None = None
