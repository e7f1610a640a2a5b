"""Names of commands and options from before 0.1.0: they go on working, are not in `--help`, and name the new one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

OLD = {
    "zones": ("zone", "list"),
    "isolate": ("zone", "isolate"),
    "failback": ("zone", "failback"),
    "abort": ("zone", "abort"),
    "retry": ("zone", "retry"),
    "drill": ("zone", "plan"),
    "fleet": ("members",),
}
"""New words for the first word of an old command line. `drill` had a second word, `zone`."""
_FORMATS = ("text", "table", "json", "yaml")


def renamed(args: Sequence[str]) -> list[str]:
    """Give the command line with new names, and print one line on stderr where a name is old."""
    if not args or args[0] not in OLD:
        return list(args)
    old, *rest = args
    if old == "drill" and rest[:1] == ["zone"]:
        old, rest = "drill zone", rest[1:]
    new = OLD[args[0]]
    _notice(f"`reactor {old}`", f"`reactor {' '.join(new)}`")
    return [*new, *rest]


def _notice(old: str, new: str) -> None:
    click.echo(f"{old} is the old name of {new}", err=True)


class _FormatOrFile(click.ParamType[str | Path]):
    """A format; any other word is a file, as `-o FILE` was."""

    name = "format"

    def __init__(self, formats: Sequence[str]) -> None:
        self._formats = formats

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | Path:
        """Give the format, or the file. Fails where the word is a format that the command does not have."""
        if value in self._formats:
            return str(value)
        if value in _FORMATS:
            there = f"formats are {' and '.join(self._formats)}; " if self._formats else ""
            self.fail(f"{value!r}: {there}to write to a file, use --output-file FILE", param, ctx)
        return Path(value)


def file_options(*formats: str, about: str, default: Path | None = None) -> Callable[[Callable[..., None]], Any]:
    """Give `--output-file FILE`, and `-o FORMAT` where there are formats.

    The command gets `output_file`, and `output` where there are formats. `-o FILE` works as before.
    """

    def add(command: Callable[..., None]) -> Any:
        @click.option(
            "-o",
            "--output",
            "format_or_file",
            type=_FormatOrFile(formats),
            hidden=not formats,
            metavar=f"[{'|'.join(formats)}]",
            default=formats[0] if formats else None,
            show_default=bool(formats),
            help="Output format.",
        )
        @click.option(
            "--output-file", type=click.Path(path_type=Path, dir_okay=False), default=default,
            show_default=default is not None, help=about,
        )  # fmt: skip
        @functools.wraps(command)
        def with_file(format_or_file: str | Path | None, output_file: Path | None, **more: Any) -> None:
            if isinstance(format_or_file, Path):
                _notice("`-o FILE`", "`--output-file FILE`")
                output_file = format_or_file
            if formats:
                more["output"] = format_or_file if isinstance(format_or_file, str) else formats[0]
            command(output_file=output_file, **more)

        return with_file

    return add
