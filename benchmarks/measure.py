"""Result of a benchmark."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Result:
    """One benchmark's figures. `bar` is what the project asks of an idle machine; it fails nothing here."""

    name: str
    what: str
    figures: dict[str, Any]
    bars: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The result as an object for the results file."""
        return {"name": self.name, "what": self.what, **self.figures, "bars": self.bars}


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Give p50, p90, p99 and max in milliseconds."""
    ordered = sorted(seconds)
    cuts = statistics.quantiles(ordered, n=100, method="inclusive") if len(ordered) > 1 else ordered * 99
    return {
        "p50_ms": round(cuts[49] * 1000, 2),
        "p90_ms": round(cuts[89] * 1000, 2),
        "p99_ms": round(cuts[98] * 1000, 2),
        "max_ms": round(ordered[-1] * 1000, 2),
    }


def cpu(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
