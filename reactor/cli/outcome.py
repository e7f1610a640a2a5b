"""How a command that asks the bus ends when it cannot: one line, and an exit code that says whose turn it is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from bus.errors import BusError, NotFound, NotPermitted, WrongServer
from reactor.errors import ReactorError
from rules.errors import RulesError


@contextmanager
def told() -> Iterator[None]:
    """Exit 1 for what the caller has to mend, 3 where the bus cannot be reached."""
    try:
        yield
    except (ReactorError, RulesError, WrongServer, NotFound, NotPermitted) as error:
        click.echo(f"reactor: {error}", err=True)
        sys.exit(1)
    except BusError as error:
        click.echo(f"reactor: {error}", err=True)
        sys.exit(3)
