"""Draws `reactor watch`: lines of text from what is known. Nothing here asks a terminal or a clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from io import StringIO

from rich.console import Console
from rich.text import Text

from reactor.runtime.durations import duration
from reactor.runtime.visible import visible
from reactor.views.pending import waits
from reactor.views.rows import Row, group_row
from rules.core.group import Group
from rules.rulefile.model import Rule
from rules.summary import GroupStatus, is_failed_over, state_of

BAR = 20
ACTS_LEAST = 3
"""Least number of recent actions that keep their place, however much else there is."""
_STYLE = {
    "approve": "bold magenta", "held": "magenta", "bad": "yellow", "good": "green",
    "Done": "green", "Failed": "bold red", "Refused": "yellow",
}  # fmt: skip
_ORDER = ("APPROVALS WAITING", "COUNTING DOWN", "HELD", "ACTING", "FAILED OVER", "PAUSED")

_CONSOLE = Console(file=StringIO(), width=80)
"""Rich asks one to break lines; it writes nothing."""


@dataclass(frozen=True, slots=True)
class Item:
    """A group that is listed, under one heading."""

    heading: str
    group: Group
    row: Row


def items(groups: Sequence[Group], rules: Mapping[str, Rule], now: datetime) -> list[Item]:
    """Give what is to be listed, the most urgent first: no group that is well."""
    found = []
    for group in groups:
        heading = "" if group.rule.startswith("@") else _heading(group, rules.get(group.rule))
        if heading:
            found.append(Item(heading, group, group_row(group, rules, now)))
    return sorted(found, key=lambda one: (_ORDER.index(one.heading), _left(one.row), one.group.rule, one.group.object))


def _heading(group: Group, rule: Rule | None) -> str:
    if waits(group):
        return "APPROVALS WAITING"
    state = state_of(group)
    if state in (GroupStatus.TOLERATING, GroupStatus.RECOVERING):
        return "COUNTING DOWN"
    if state is GroupStatus.HELD:
        return "HELD"
    if state is GroupStatus.ACTING:
        return "ACTING"
    if is_failed_over(group, rule) or state is GroupStatus.ACTED:
        return "FAILED OVER"
    return "PAUSED" if state is GroupStatus.PAUSED else ""


def _left(row: Row) -> float:
    return float("inf") if row["secondsLeft"] is None else float(row["secondsLeft"])


def blocks(found: Sequence[Item], chosen: int, now: datetime, width: int, *, glyphs: str) -> list[list[Text]]:
    """Give the lines of each item; those of the chosen one are marked. `glyphs`: two characters for bars."""
    return [_block(item, number == chosen, now, width, glyphs) for number, item in enumerate(found)]


def _block(item: Item, chosen: bool, now: datetime, width: int, glyphs: str) -> list[Text]:
    row, mark = item.row, "> " if chosen else "  "
    style = "reverse" if chosen else "bold"
    mode = f"  {row['mode']}" if row["mode"] not in (None, "Enforce") else ""
    head = Text.assemble(mark, (f"{visible(item.group.rule)}{mode}", style), f"  {visible(item.group.object)}")
    lines = [head, *_held(item), *(line for one in row["windows"] for line in _window(one, row, now, glyphs))]
    if row["next"] and not row["hold"]:
        lines.append(Text(f"    then {visible(row['next'])}", style="dim"))
    if item.heading in ("FAILED OVER", "ACTING"):
        lines += _away(item)
    if row["pause"]:
        lines.append(Text(f"    paused by {visible(row['pause']['by'])}: {visible(row['pause']['reason'])}", "yellow"))
    return [part for line in lines for part in (_whole(line, width) if chosen else [_cut(line, width)])]


def _held(item: Item) -> Iterator[Text]:
    hold = item.row["hold"]
    if hold is None:
        return
    style = _STYLE["approve" if item.heading.startswith("APPROVALS") else "held"]
    left = item.row["secondsLeft"]
    until = f", {_span(left)} left" if left is not None else ""
    yield Text.assemble("    ", (hold["reason"], style), f"{until}: {visible(hold['detail'])}")
    if hold["do"]:
        yield Text(f"    to do: {visible(hold['do'])}", style="dim")


def _window(one: Row, row: Row, now: datetime, glyphs: str) -> Iterator[Text]:
    since = datetime.fromisoformat(one["since"])
    at = datetime.fromisoformat(one["waitingSince"]) if one["waitingSince"] else now
    ends, passed = row["endsAt"], max((at - since).total_seconds(), 0.0)
    whole = one["seconds"]
    if whole is None and ends is not None:
        whole = (datetime.fromisoformat(ends) - since).total_seconds()
    kind = "good" if one["towards"] == "Healthy" else "bad"
    left = f"{_span(max(whole - passed, 0.0)):>6} of {_span(whole)} left" if whole else f"for {_span(passed)}"
    if one["waitingSince"]:
        left = "waits: the health is unknown"
    words = "healthy again" if kind == "good" else "unhealthy"
    yield Text.assemble("    ", (bar(passed, whole, glyphs), _STYLE[kind]), f" {left}, {words}")
    yield Text(f"      {visible(one['target'])}" + (f": {visible(one['detail'])}" if one["detail"] else ""))


def bar(passed: float, whole: float | None, glyphs: str) -> str:
    """Give a window as a bar against its length. `glyphs`: the characters for what has passed, and for what is left."""
    full = round(BAR * min(passed / whole, 1.0)) if whole else 0
    return glyphs[0] * full + glyphs[1] * (BAR - full)


def _span(seconds: float) -> str:
    return f"{seconds:.1f}s" if seconds < 60 else duration(seconds)


def _away(item: Item) -> Iterator[Text]:
    backends = item.row["backends"]
    if backends:
        total = sum(one["weight"] for one in backends) or 1
        yield Text("    " + ", ".join(f"{visible(one['service'])} {100 * one['weight'] // total}%" for one in backends))
    for one in item.row["targets"]:
        if one["healthy"] is False:
            yield Text(f"    {visible(one['target'])} counts as unhealthy", style="yellow")


def acts(rows: Sequence[Row], width: int) -> list[Text]:
    """Give a line for each action."""
    lines = []
    for row in rows:
        became = (row["outcome"] or {}).get("status") or ("DryRun" if row["mode"] == "DryRun" else "pending")
        at = datetime.fromisoformat(row["at"])
        why = visible(row["means"] or row["because"])
        line = Text.assemble(
            f"  {at:%H:%M:%S} ", (f"{became:<8}", _STYLE.get(became, "")),
            f" {row['action']} {visible(row['rule'])}: {why} ({visible(row['object'])})",
        )  # fmt: skip
        lines.append(_cut(line, width))
    return lines


def _whole(line: Text, width: int) -> list[Text]:
    """Give a line in several where it is too long: the chosen item can be read in full."""
    indent = 2 + len(line.plain) - len(line.plain.lstrip())
    if line.cell_len <= width:
        return [line]
    first, *rest = line.wrap(_CONSOLE, width - indent)
    return [first, *(Text(" " * indent, end="") + part for part in rest)]


def _cut(line: Text, width: int) -> Text:
    line.truncate(width, overflow="ellipsis")
    return line
