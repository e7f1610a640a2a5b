"""The results of worlds, for people and for pipelines."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from rules.rehearsal.history import written
from rules.rehearsal.world.checkers.promise_finding import Promise
from rules.rehearsal.world.play import WorldResult
from rules.rehearsal.world.promises import Broken
from rules.rehearsal.world.shrink import Shortest


@dataclass(slots=True)
class Worlds:
    """Several seeds of the same rules."""

    hours: float
    """Of each."""
    tested: Counter[Promise] = field(default_factory=Counter)
    broken: list[tuple[int, Broken]] = field(default_factory=list)
    """With the seed."""
    events: int = 0
    seeds: list[int] = field(default_factory=list)
    judged: set[str] = field(default_factory=set)
    """Names of the rules of which a promise was tested, in any seed."""
    shortest: Shortest | None = None
    """Of the first seed that breaks a promise."""

    def add(self, seed: int, result: WorldResult) -> None:
        """Count a world."""
        self.seeds.append(seed)
        self.tested += result.tested
        self.judged |= result.judged
        self.events += len(result.history)
        self.broken += [(seed, one) for one in result.broken]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Give a line for each promise."""
        broken = Counter(one.promise for _, one in self.broken)
        for promise in Promise:
            yield {"promise": promise.value, "tested": self.tested[promise], "broken": broken[promise]}


def as_json(worlds: Worlds) -> dict[str, Any]:
    """Give all of it as plain values."""
    shortest = worlds.shortest
    return {
        "seeds": worlds.seeds, "hours": worlds.hours, "events": worlds.events, "promises": list(worlds.rows()),
        "broken": [{"seed": seed, **_plain(one)} for seed, one in worlds.broken],
        "shortest": None if shortest is None else {
            **_plain(shortest.broken), "rules": [rule.name for rule in shortest.rules.rules],
            "history": [json.loads(line) for line in lines(shortest)],
        },
    }  # fmt: skip


def lines(shortest: Shortest) -> Iterable[str]:
    """Give the history as `reactor simulate --history` reads it."""
    return (written(heard, fact) for heard, fact in shortest.history)


def _plain(broken: Broken) -> dict[str, Any]:
    return {
        "promise": broken.promise.value, "at": broken.at, "rule": broken.rule, "object": broken.object,
        "what": broken.what,
    }  # fmt: skip
