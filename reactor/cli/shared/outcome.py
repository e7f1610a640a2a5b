"""Ends a command that cannot use the bus: one line, and an exit code that says whose turn it is."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bus.errors import BusError, KeyNotFound, NotPermitted, WrongServer
from reactor.cli.shared.printing import say
from reactor.runtime.errors import ReactorError
from rules.core.errors import RulesError

NOTHING_HERE = "this bus has no streams of a reactor: is it the right one? Run reactor bus init, or start a reactor"


@contextmanager
def told() -> Iterator[None]:
    """Exit 1 for what the caller has to mend, 3 where the bus cannot be reached."""
    log = logging.getLogger("bus")
    level = log.level
    log.setLevel(logging.ERROR)  # what it would warn of is what we say
    try:
        yield
    except (ReactorError, RulesError, WrongServer, KeyNotFound, NotPermitted) as error:
        say(f"reactor: {error}", err=True)
        sys.exit(1)
    except BusError as error:
        from bus.jetstream.provisioning import NO_STREAM  # who gets here has nats already

        if getattr(error, "code", None) == NO_STREAM:
            say(f"reactor: {NOTHING_HERE}", err=True)
            sys.exit(1)
        say(f"reactor: {error}", err=True)
        sys.exit(3)
    finally:
        log.setLevel(level)
