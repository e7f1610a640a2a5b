"""Limits the log about what is no HTTP: any client that reaches the port could fill a disk with tracebacks."""

from __future__ import annotations

import logging

from aiohttp.http_exceptions import HttpProcessingError

from reactor.runtime import telemetry
from reactor.runtime.clock import Clock

AGAIN_SECONDS = 10.0

log = logging.getLogger(__name__)


class MalformedLog(logging.Filter):
    """Filter for the HTTP server's own logger: counts what is no HTTP, and logs one line about it in AGAIN_SECONDS."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._said_at = float("-inf")

    def filter(self, record: logging.LogRecord) -> bool:
        """True if the server's own record is logged."""
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, HttpProcessingError) or error.code >= 500:
            return True
        telemetry.malformed_requests.inc()
        now = self._clock.monotonic()
        if now - self._said_at >= AGAIN_SECONDS:
            self._said_at = now
            words = error.message.splitlines()[0].rstrip(":") if error.message else type(error).__name__
            log.warning("what came is no HTTP request", extra={"reason": words, "request": record.getMessage()})
        return False


def server_logger(name: str, clock: Clock) -> logging.Logger:
    """Give the logger for one HTTP server."""
    logger = logging.getLogger(f"reactor.http.{name}")
    for old in [*logger.filters]:
        logger.removeFilter(old)  # of a server that was there before
    logger.addFilter(MalformedLog(clock))
    return logger
