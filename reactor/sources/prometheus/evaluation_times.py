"""Evaluation times of the answers to one query: an answer out of a cache shows what was so then, and not now.

A query frontend may give the same answer for a while, and so does a Prometheus that is stuck. Each series of an answer
carries the time of its evaluation, by Prometheus's clock. Clocks are not compared: the answers that came soonest after
their evaluation show how far the two are apart.

A server that gives 0 as the time tells none, and an answer without series has none: these are believed as they come. So
are the answers of a server whose time has never moved and is far from ours: it is no time of an evaluation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from datetime import timedelta

from reactor.clients.changes import ReadInterval

ANSWERS = 8
"""Number of evaluations that are compared. A clock that was set is no longer noticed after as many."""
FAR_SECONDS = 300.0
"""Seconds: clocks that are looked after differ by less, and no cache keeps an instant query for longer."""


class EvaluationTimes:
    """Dates the answers of one query."""

    def __init__(self) -> None:
        self._last = 0.0
        self._moves = False
        """True if two answers had different times: this server tells when it evaluated."""
        self._lags: deque[float] = deque(maxlen=ANSWERS)
        """Seconds from an evaluation, by Prometheus's clock, to its answer, by ours."""

    def dated(self, timestamps: Iterable[float], look: ReadInterval) -> ReadInterval | None:
        """Give when it was so what an answer to this look says; None: it is the answer before this one once more."""
        evaluated = max(timestamps, default=0.0)
        if evaluated <= 0:
            return look
        lag = look.ended.timestamp() - evaluated
        if evaluated == self._last:
            return None if self._moves or abs(lag) < FAR_SECONDS else look
        self._moves = self._last > 0
        self._last = evaluated
        self._lags.append(lag)
        at = look.ended - timedelta(seconds=lag - min(self._lags))
        return look if at >= look.began else ReadInterval(at, at)
