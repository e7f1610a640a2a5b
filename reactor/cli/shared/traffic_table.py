"""Prints `reactor traffic`: routes as a table, and the rules that its plans are made by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reactor.cli.shared.known_rules import known_rules
from reactor.cli.shared.status_rows import laid_out
from reactor.runtime.durations import duration
from reactor.runtime.visible import visible
from reactor.settings.model import Settings
from reactor.views.traffic_plan import in_words
from rules.rulefile.model import Rule


def rules_of(settings: Settings) -> tuple[Mapping[str, Rule], str]:
    """Give the rules by name, and why some are missing. A broken rule file never stops a command."""
    rules, problem = known_rules(settings)
    return {rule.name: rule for rule in rules.rules}, problem


def table(rows: Iterable[Mapping[str, Any]], width: int | None) -> list[str]:
    """Give the rows for people, in the columns of `reactor status`, no line longer than `width`."""
    return laid_out(
        [
            {
                "RULE": row["rule"], "OBJECT": row["object"], "STATE": row["state"],
                "LEFT": duration(row["secondsLeft"]) if row["secondsLeft"] is not None else "", "MODE": row["mode"],
                "WEIGHTS": in_words(row["weights"]), "DETAIL": visible(row["detail"]),
            }
            for row in rows
        ],
        width,
    )  # fmt: skip
