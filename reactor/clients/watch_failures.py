"""Failures of a reflector's calls: how long it waits, what is counted, what is logged once."""

from __future__ import annotations

import logging
import random

from reactor.clients.hanging import Hung
from reactor.clients.kubernetes_port import NotFound
from reactor.clients.watching import Expired, Silent
from reactor.runtime import telemetry
from reactor.runtime.errors import Retryable, Terminal
from reactor.runtime.retry_backoff import RetryBackoff

GOOD_SECONDS = 30.0  # a failure after so long a good time is a new trouble, and the backoff starts small again
AWAY_SECONDS = 2.0  # what happens on a server that is back has to be seen soon
AWAY_SECONDS_LEAST = 0.5  # always the same wait misses a server that is there and away in turn, each for as long
REFUSED_SECONDS = 4.0  # so has what happens where rights are given back, or a proxy answers for the server no more,
# and where it has asked to wait for longer
FAILURES_BEFORE_RELIST = 2  # the list may work where the watch does not: then this is slow polling

log = logging.getLogger(__name__)


class NotServed(Exception):
    """The collection is not found, time and again: its version, or its kind, may not be served any more."""


class WatchFailures:
    """The failures of one collection of one cluster."""

    def __init__(self, cluster: str, path: str, backoff: RetryBackoff | None, not_found_max: float) -> None:
        """`not_found_max`: so many 404 in a row raise NotServed."""
        self._cluster = cluster
        self._path = path
        self._backoff = backoff or RetryBackoff(first_seconds=0.1, most_seconds=30)
        self._not_found_max = not_found_max
        self._not_found = 0  # in a row
        self._complaint = ""
        """The kind of error that was logged last; empty: it has recovered since."""

    def failed(self, error: Retryable | Terminal, *, lasted: float) -> float:
        """Count a failure and log it, unless the last one was of its kind. Gives the seconds to wait.

        `lasted`: seconds from the begin of the call or watch to its failure. Raises NotServed.
        """
        if lasted > GOOD_SECONDS or isinstance(error, Hung | Silent):
            self._backoff.succeeded()
        self._not_found = self._not_found + 1 if isinstance(error, NotFound) else 0
        if self._not_found >= self._not_found_max:
            raise NotServed(str(error)) from error
        after = error.after if isinstance(error, Retryable) else None
        wait = self._backoff.failed(asked_seconds=after)
        is_away = isinstance(error, Retryable) and after is None
        most = random.uniform(AWAY_SECONDS_LEAST, AWAY_SECONDS) if is_away else REFUSED_SECONDS  # noqa: S311 - spreads calls, guards no secret
        wait = min(wait, most)
        reason = type(error).__name__
        telemetry.watch_restarts.labels(self._cluster, reason).inc()
        if reason != self._complaint and not isinstance(error, Expired):  # 410 is everyday life, and heals itself
            log.warning("cannot watch, trying again", extra={"cluster": self._cluster, "reason": str(error)})
            self._complaint = reason
        return wait

    def cannot_watch(self, error: Exception) -> bool:
        """True if a LIST is to be tried in place of the watch, after this error."""
        return isinstance(error, Hung) or self._backoff.failures >= FAILURES_BEFORE_RELIST

    def succeeded(self) -> None:
        """A watch has ended in good order: the backoff starts small again."""
        self._backoff.succeeded()
        self.recovered()

    def listed(self) -> None:
        """A LIST was answered: 404 are counted from 0 again."""
        self._not_found = 0

    def recovered(self) -> None:
        """The server has answered: say so in the log if a failure was logged before."""
        if self._complaint:
            log.info("watching again", extra={"cluster": self._cluster, "path": self._path})
            self._complaint = ""
