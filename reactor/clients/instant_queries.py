"""Port to a Prometheus: instant queries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from reactor.runtime.errors import Retryable, Terminal


class QueryFailed(Retryable):
    """A query got no answer: a timeout, a lost connection, an overloaded server, an expression that fails on today's
    series."""


class QueryRefused(Terminal):
    """The query, the address or the credentials have to be mended."""


class Sample(NamedTuple):
    """One series of the result."""

    labels: dict[str, str]
    value: float
    """Value of the sample; may be NaN or infinite."""
    timestamp: float
    """Seconds since 1970 by Prometheus's clock."""


class Queries(Protocol):
    """One Prometheus."""

    async def query(self, promql: str, *, at: datetime | None = None) -> Sequence[Sample]:
        """Give the series of an instant query, now or at a moment. Raises QueryFailed or QueryRefused."""
        ...
