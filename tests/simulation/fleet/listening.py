"""Hears what the fleet itself calls a mistake: whatever it logs as an error while it runs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.simulation.fleet.loop import OWNER

LOGGERS = ("reactor", "rules", "bus")
ERRORS_MAX = 5


@dataclass
class Mistakes:
    """Records that were logged as errors."""

    errors: list[str] = field(default_factory=list)


class _Ear(logging.Handler):
    def __init__(self, mistakes: Mistakes) -> None:
        super().__init__(logging.ERROR)
        self._mistakes = mistakes

    def emit(self, record: logging.LogRecord) -> None:
        owner = OWNER.get()
        if getattr(owner, "dead", False) or len(self._mistakes.errors) >= ERRORS_MAX:
            return  # what a killed process still sends reaches no reader
        self._mistakes.errors.append(logging.Formatter("%(message)s").format(record))


@contextmanager
def listening(mistakes: Mistakes) -> Iterator[None]:
    """Listen while the block runs; warnings, of which faults cause thousands, are not even made."""
    ear = _Ear(mistakes)
    before = [(logging.getLogger(name), logging.getLogger(name).level) for name in LOGGERS]
    quiet = logging.getLogger("stamina"), logging.getLogger("asyncio")
    for logger, _ in before:
        logger.setLevel(logging.ERROR)
        logger.addHandler(ear)
    for logger in quiet:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, level in before:
            logger.setLevel(level)
            logger.removeHandler(ear)
        for logger in quiet:
            logger.disabled = False
