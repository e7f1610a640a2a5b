"""From a world that breaks a promise to the shortest history that still breaks it, for people to replay and read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from rules.loader import RuleSet
from rules.rehearsal.world.play import Heard, play_history
from rules.rehearsal.world.promises import Broken
from rules.rehearsal.world.truth import Truth

Item = TypeVar("Item")
RUNS_MAX = 600
"""Largest number of histories that are tried. The first ones are long, the last ones a few events."""


@dataclass(frozen=True, slots=True)
class Shortest:
    """Result of shrinking."""

    history: tuple[Heard, ...]
    rules: RuleSet
    """Those that are needed."""
    broken: Broken
    """The violation as it occurs with this history and these rules."""


def shortest(
    rules: RuleSet, history: Sequence[Heard], broken: Broken, truth: Truth, *, runs_max: int = RUNS_MAX
) -> Shortest:  # fmt: skip
    """Leave out whatever is not needed: first events, the largest parts first, then rules, then events again.

    `truth`: as it was. Who confirms what they say may leave out any of it: not to be heard is no lie.
    """
    budget = [runs_max]

    def breaks(needed: RuleSet, events: Sequence[Heard]) -> Broken | None:
        if budget[0] <= 0:
            return None
        budget[0] -= 1
        found = play_history(needed, events, broken.at + 1, truth).broken
        return next((one for one in found if (one.promise, one.rule) == (broken.promise, broken.rule)), None)

    left = [event for event in history if event[0] <= broken.at]
    left = _without(left, lambda events: breaks(rules, events) is not None)
    needed = rules
    for rule in rules.rules:
        fewer = replace(needed, rules=tuple(one for one in needed.rules if one.name != rule.name))
        if rule.name != broken.rule and breaks(fewer, left) is not None:
            needed = fewer
    if needed is not rules:
        left = _without(left, lambda events: breaks(needed, events) is not None)
    budget[0] = 1
    return Shortest(tuple(left), needed, breaks(needed, left) or broken)


def _without(items: Sequence[Item], fails: Callable[[Sequence[Item]], bool]) -> list[Item]:
    """Leave out parts, in halves, quarters and so on, as long as it fails without them (Zeller's ddmin)."""
    left = list(items)
    size = max(len(left) // 2, 1)
    while left:
        start, shorter = 0, False
        while start < len(left):
            candidate = left[:start] + left[start + size :]
            if fails(candidate):
                left, shorter = candidate, True
            else:
                start += size
        if size == 1 and not shorter:
            break
        size = size if shorter and size == 1 else max(size // 2, 1)
    return left
