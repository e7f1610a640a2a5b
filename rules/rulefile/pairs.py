"""Two rules of one kind that act on the same thing: the pairs, and how a hint names the other one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any

from bus.messages import Mode
from rules.core.errors import Problem
from rules.rulefile.file_kind import Located, R
from rules.rulefile.yaml import Path


def pairs(groups: Iterable[Sequence[Located[R]]]) -> Iterator[tuple[Located[R], Located[R]]]:
    """Give the pairs that would undo each other. One of two in DryRun: a new version is rehearsed beside the old."""
    for group in groups:
        for one, other in combinations(group, 2):
            if (one[0].mode is Mode.DRY_RUN) == (other[0].mode is Mode.DRY_RUN):
                yield one, other


def named(located: Located[Any]) -> str:
    """Give the rule's name, and its place in its file."""
    rule, document, at = located
    return f"rule {rule.name!r} ({document.file}:{document.places[at][0]})"


def conflict(located: Located[Any], where: Path, hint: str, message: str) -> Problem:
    """Give the hint at this place of the rule."""
    _, document, at = located
    return document.problem((*at, *where), message, severity="hint", hint=hint)
