"""Rows of `reactor status` for the groups: for scripts with keys that stay, for people as a table."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from datetime import datetime

from reactor.runtime.durations import duration
from reactor.runtime.visible import visible
from reactor.views.group_view import RulesByName
from rules.core.group import Group
from rules.rulefile.model import Rule
from rules.summary import route_of, summary


def row(group: Group, now: datetime, rule: Rule | None = None) -> dict[str, str]:
    """One group as a line of the table."""
    summarized = summary(group, rule)
    left = ""
    if summarized.ends_at is not None:
        seconds = max((summarized.ends_at - now).total_seconds(), 0)
        left = f"{seconds:.1f}s" if seconds < 60 else duration(seconds)
    route = route_of(group)
    weights = " ".join(f"{service}={weight}" for service, weight in (route.backends if route is not None else ()))
    return {
        "RULE": group.rule, "OBJECT": group.object, "STATE": summarized.state.value, "LEFT": left,
        "MODE": group.mode.value if group.mode is not None else "", "WEIGHTS": weights,
        "DETAIL": visible(summarized.detail),
    }  # fmt: skip


def table(
    groups: Sequence[Group], now: datetime, width: int | None = None, rules: RulesByName | None = None
) -> list[str]:
    """Give the lines of the table. `width`: none is longer; where a line would be, each group has several."""
    rows = [row(group, now, (rules or {}).get(group.rule)) for group in groups]
    return laid_out(rows, width) or ["no rule has anything yet"]


def laid_out(rows: Sequence[Mapping[str, str]], width: int | None) -> list[str]:
    """Give one line for each row, or several where one would be longer than `width`. Keys as `row` has them."""
    if not rows:
        return []
    widths = {key: max(len(key), *(len(line[key]) for line in rows)) for key in rows[0]}
    lines = [
        "  ".join(text.ljust(widths[key]) for key, text in line.items()).rstrip()
        for line in [{key: key for key in rows[0]}, *rows]
    ]
    if width is None or all(len(line) <= width for line in lines):
        return lines
    return [line for one in rows for line in _stacked(one, width)]


def _stacked(one: Mapping[str, str], width: int) -> list[str]:
    """One group on lines of its own: first its state, below it what it is about."""
    left = f", {one['LEFT']} left" if one["LEFT"] else ""
    lines = [f"{one['RULE']}  {one['STATE']}{left}  {one['MODE']}".rstrip()]
    lines += [f"  {one[key]}" for key in ("OBJECT", "WEIGHTS", "DETAIL") if one[key]]
    return [part for line in lines for part in textwrap.wrap(
        line.strip(), width, subsequent_indent="    ", break_on_hyphens=False,
        initial_indent="  " if line.startswith("  ") else "",
    )]  # fmt: skip
