"""Options that several commands have, so that they mean the same everywhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
NO_TIME = float("nan")
"""Time that is within no limits."""
_DURATION = re.compile(r"(?:\d+(?:w|d|h|m|s))+")


class Duration(click.ParamType[float]):
    """A time as Prometheus writes it (`1h30m`), in seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Give the seconds, at most a year."""
        from rules.rulefile.fields import YEAR  # pydantic: not for --help

        if isinstance(value, int | float):
            return float(value)
        seconds = _seconds_of(value) if _DURATION.fullmatch(value) else 0
        if not 0 < seconds <= YEAR:
            self.fail(f"{value!r}: invalid time: write 90s, 30m, 1h30m, 2d, at most a year", param, ctx)
        return seconds


class SecondsType(click.ParamType[float]):
    """Seconds as a number (`90`), or a time as Prometheus writes it (`1m30s`)."""

    name = "time"

    def __init__(self, least: float, most: float) -> None:
        self._least, self._most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Give the seconds."""
        try:
            seconds = float(value)
        except ValueError:
            seconds = _seconds_of(value) if _DURATION.fullmatch(value) else NO_TIME
        if not self._least <= seconds <= self._most:
            wanted = f"write {self._least:g} to {self._most:g} seconds, or a time: 90s, 10m, 1h30m"
            self.fail(f"{value!r}: invalid time: {wanted}", param, ctx)
        return seconds


def _seconds_of(text: str) -> float:
    from rules.rulefile.promql import seconds_of

    return seconds_of(text)


def _usable(_context: click.Context, _option: click.Parameter, url: str | None) -> str | None:
    from reactor.settings.sources import NATS_SCHEMES, is_nats  # pydantic: not for --help

    if url is not None and not is_nats(url):
        raise click.BadParameter(f"write nats://HOST:PORT ({', '.join(NATS_SCHEMES)}); settings may list several")
    return url


def bus_option(*names: str, otherwise: str = "the one that a local reactor has embedded") -> Callable[[F], F]:
    """Give `--bus URL`."""
    return click.option(
        "--bus", *names, metavar="URL", callback=_usable, help=f"NATS server; default: the settings', else {otherwise}."
    )


def output_option(*formats: str, about: str = "Output format.") -> Callable[[F], F]:
    """Give `-o FORMAT`; the first of `formats` (table, json, yaml) is the default."""
    found = formats or ("table", "json", "yaml")
    return click.option("-o", "--output", type=click.Choice(found), default=found[0], show_default=True, help=about)
