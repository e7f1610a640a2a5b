"""Counts of the gateway: one second of traffic as it travels in a line of JSON, and the sum of many."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RequestCount:
    """Requests to one backend."""

    ok: int = 0
    failed: int = 0

    @property
    def sent(self) -> int:
        return self.ok + self.failed


@dataclass(frozen=True, slots=True)
class TrafficSecond:
    """One second of traffic. Times are the machine's monotonic clock, which all its processes share."""

    at: float
    """End of the second."""
    weights: Mapping[str, int]
    """The weights at its end; {} while the route is not known."""
    counts: Mapping[str, RequestCount]
    """Requests by backend; under "" those that had no backend to go to."""
    failures: tuple[float, float] | None = None
    """Times at which the first and the last failed request were sent; None: none failed."""

    def to_json(self) -> str:
        """Give it as one line."""
        counts = {name: {"ok": count.ok, "failed": count.failed} for name, count in self.counts.items()}
        value = {"at": self.at, "weights": dict(self.weights), "counts": counts, "failures": self.failures}
        return json.dumps(value, separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str | bytes) -> TrafficSecond:
        """Read it back. Raises ValueError, KeyError."""
        value = json.loads(line)
        counts = {name: RequestCount(count["ok"], count["failed"]) for name, count in value["counts"].items()}
        first_and_last = value["failures"]
        return cls(value["at"], value["weights"], counts, tuple(first_and_last) if first_and_last else None)


@dataclass(slots=True)
class TrafficTotal:
    """Sum of all seconds so far."""

    last: TrafficSecond | None = None
    requests: int = 0
    failed: int = 0
    first_failure: float | None = None
    last_failure: float | None = None
    seconds: int = field(default=0)

    def add(self, second: TrafficSecond) -> None:
        """Count one more second."""
        self.last = second
        self.seconds += 1
        self.requests += sum(count.sent for count in second.counts.values())
        self.failed += sum(count.failed for count in second.counts.values())
        if second.failures:
            first, last = second.failures
            self.first_failure = first if self.first_failure is None else self.first_failure
            self.last_failure = last
