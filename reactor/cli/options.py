"""Options that several commands have, so that they mean the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from reactor.settings_sources import NATS_SCHEMES, is_nats

F = TypeVar("F", bound=Callable[..., Any])


def _usable(_context: click.Context, _option: click.Parameter, url: str | None) -> str | None:
    if url is not None and not is_nats(url):
        raise click.BadParameter(f"write nats://HOST:PORT ({', '.join(NATS_SCHEMES)}); settings may list several")
    return url


def bus_option(*names: str, otherwise: str = "the one that a local reactor has embedded") -> Callable[[F], F]:
    """Give `--bus URL`."""
    return click.option(
        "--bus", *names, metavar="URL", callback=_usable, help=f"NATS server; default: the settings', else {otherwise}."
    )
