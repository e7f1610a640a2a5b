"""Asking a Kubernetes API until it answers: a CRD may be installed, a permission granted, later."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from reactor.clients.watch_failures import REFUSED_SECONDS
from reactor.runtime import telemetry
from reactor.runtime.clock import Clock
from reactor.runtime.errors import Retryable, Terminal
from reactor.runtime.retry_backoff import RetryBackoff

log = logging.getLogger(__name__)

T = TypeVar("T")


async def retry_forever(
    call: Callable[[], Awaitable[T]], clock: Clock, *, source: str, what: str, where: Mapping[str, str]
) -> T:
    """Call until there is an answer, at least every REFUSED_SECONDS. Why there is none is counted, and logged once:
    `cannot read the <what>`."""
    backoff, complaint = RetryBackoff(first_seconds=0.5, most_seconds=REFUSED_SECONDS), ""
    while True:
        try:
            return await call()
        except (Retryable, Terminal) as error:
            reason = type(error).__name__
            telemetry.source_errors.labels(source, reason).inc()
            if reason != complaint:
                log.warning("cannot read the %s, trying again", what, extra={**where, "reason": str(error)})
                complaint = reason
            asked = error.after if isinstance(error, Retryable) else None
        await clock.sleep(min(backoff.failed(asked_seconds=asked), REFUSED_SECONDS))
