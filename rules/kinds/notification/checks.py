"""Checks of a Notification as a whole, beyond those of single fields."""

from __future__ import annotations

from collections.abc import Iterator

from rules.core.errors import Problem
from rules.kinds.notification.model import Notification
from rules.rulefile.yaml import Document, Path

_FIRST_SEGMENTS = ("cluster", "zone", "node", "service", "workload", "custom", "*", "**")


def rule(item: Notification, document: Document, at: Path) -> Iterator[Problem]:
    """Findings about one rule."""
    first = item.match.split("/")[0]
    if first not in _FIRST_SEGMENTS:
        yield document.problem((*at, "match"), f"no target starts with {first!r}", severity="warning")
