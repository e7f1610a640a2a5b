"""Breaches of promises that a look at what happened has found, and how often each promise was tested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Breach:
    """One promise that was not kept."""

    promise: str
    route: str
    at: float
    what: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.route} at {self.at:.3f}: {self.what}"


@dataclass(slots=True)
class AuditVerdict:
    """Number of tests of each promise, and the breaches."""

    tested: Counter[str] = field(default_factory=Counter)
    breaches: list[Breach] = field(default_factory=list)

    def broken(self, promise: str) -> int:
        """Number of breaches of this promise."""
        return sum(breach.promise == promise for breach in self.breaches)

    def add(self, promise: str, breaches: Sequence[Breach], *, tested: int) -> None:
        """Count what one look at a promise gave."""
        self.tested[promise] += tested
        self.breaches += breaches
