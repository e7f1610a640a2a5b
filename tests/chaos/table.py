"""Fault × promise, with counts: `broken/tested`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.chaos.run import Result
from tests.judge.checker import PROMISES


def table(results: Sequence[Result]) -> str:
    """Give the table, and below it every breach, every note and every run without a verdict."""
    head = ["fault", "seeds", "writes", *PROMISES, "latest"]
    names = dict.fromkeys(result.fault for result in results)
    rows = [head, *(_row(name, [one for one in results if one.fault == name]) for name in names)]
    widths = [max(len(line[column]) for line in rows) for column in range(len(head))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in rows]
    return "\n".join([*lines, *_below(results)])


def _row(name: str, results: Sequence[Result]) -> list[str]:
    played = [result for result in results if not result.skipped and not result.failed]
    counts = [
        f"{sum(r.broken[promise] for r in played)}/{sum(r.tested[promise] for r in played)}" for promise in PROMISES
    ]
    late = max((one.late for one in played), default=0.0)
    return [
        name,
        f"{len(played)}/{len(results)}",
        str(sum(result.writes for result in played)),
        *counts,
        f"{late:.1f} s",
    ]


def _below(results: Sequence[Result]) -> Iterable[str]:
    for result in results:
        about = f"{result.fault}, seed {result.seed}"
        said = [("skipped", result.skipped), ("NO VERDICT", result.failed)]
        said += [("BROKEN", text) for text in (*result.breaches, *result.mistakes)] + [
            ("note", note) for note in result.notes
        ]
        yield from (f"{about}: {kind}: {text}" for kind, text in said if text)
