"""Prints the results of commands: lines and tables for people, without control characters; JSON and YAML for
pipelines."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from reactor.runtime.visible import visible, visible_json, visible_lines

Row = Mapping[str, Any]


def say(text: str, *, err: bool = False) -> None:
    """Print for people. What others wrote into it has to be one line by then: see `visible`."""
    click.echo(visible_lines(text), err=err)


def warn(text: str) -> None:
    """Print for people on stderr."""
    say(text, err=True)


def terminal_width() -> int | None:
    """Columns of the terminal, for tables; None for a file or a pipe, where each row has one line."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() or "COLUMNS" in os.environ else None


def as_json(data: object) -> str:
    """Give it as JSON."""
    return visible_json(json.dumps(data, indent=2))


def as_yaml(data: object) -> str:
    """Give it as YAML."""
    import yaml

    return str(yaml.safe_dump(data, sort_keys=False)).rstrip()


def printed(data: Any, output: str, table: Callable[[Any], str] = str) -> str:
    """Give data as `-o` asks: `json`, `yaml`, or else what `table` makes of it."""
    return as_json(data) if output == "json" else as_yaml(data) if output == "yaml" else table(data)


def as_table(rows: Sequence[Row]) -> str:
    """Give one line for each row under the names of all their keys; what is empty is a dash."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [[name.upper() for name in names], *([_cell(row.get(name, "")) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(names))]
    return "\n".join("  ".join(t.ljust(w) for t, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def as_tables(data: Mapping[str, Sequence[Row]]) -> str:
    """Give a table for each list that is not empty."""
    return "\n\n".join(as_table(rows) for rows in data.values() if rows)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return visible(",".join(map(str, value))) or "-"
    return visible(str(value)) if value not in ("", None) else "-"
