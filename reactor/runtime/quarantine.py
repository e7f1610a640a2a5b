"""Quarantines messages that cannot be read: counted, logged, and left behind, so that they stop nothing else.

A publisher may send such messages as fast as the bus takes them, so each has one log line in LOG_SECONDS, with the
number of those that were left out. The metric counts them all.
"""

from __future__ import annotations

import logging

from bus import subjects
from bus.errors import Malformed
from bus.port import Delivery
from bus.topology import Stream
from reactor.runtime import telemetry
from reactor.runtime.clock import Clock
from reactor.runtime.log_limit import LogLimit

LOG_SECONDS = 10.0
PUBLISHERS_MAX = 100
"""Publishers with a line of their own in LOG_SECONDS; further ones share one."""

log = logging.getLogger(__name__)
limit = LogLimit(LOG_SECONDS, PUBLISHERS_MAX, Clock().monotonic)


def quarantine(delivery: Delivery, stream: Stream, error: Malformed) -> None:
    """Count a message of this stream as one that cannot be read, and say why."""
    telemetry.quarantined.labels(stream.name).inc()
    if (left_out := limit.due(_publisher(delivery, stream))) is not None:
        more = _more(left_out)
        log.warning("message %s on %s is quarantined: %s%s", delivery.sequence, delivery.subject, error, more)


def failed(delivery: Delivery, stream: Stream, error: Exception) -> None:
    """The same for a message over which our own code fails, with the traceback."""
    telemetry.quarantined.labels(stream.name).inc()
    if (left_out := limit.due(("failed", *_publisher(delivery, stream)))) is not None:
        text = "message %s on %s is quarantined%s"
        log.error(text, delivery.sequence, delivery.subject, _more(left_out), exc_info=error)


def unreadable(bucket: str, key: str, error: Malformed) -> None:
    """Count an entry of a bucket that cannot be read, and say why."""
    telemetry.quarantined.labels(f"KV_{bucket}").inc()
    if (left_out := limit.due(bucket)) is not None:
        extra = {"key": key}
        log.warning("an entry of bucket %s cannot be read: %s%s", bucket, error, _more(left_out), extra=extra)


def foreign(stream: str, subject: str) -> None:
    """Count a message that another client pushed into a reading of this stream. The bus has ignored it."""
    telemetry.quarantined.labels(stream).inc()
    if (left_out := limit.due(("foreign", stream))) is not None:
        text = "a message on %s did not come from stream %s, and is ignored: who may publish there?%s"
        log.error(text, subject, stream, _more(left_out))


def _publisher(delivery: Delivery, stream: Stream) -> tuple[str, str]:
    return stream.name, subjects.publisher_in(delivery.subject)


def _more(left_out: int) -> str:
    return f" ({left_out} more since the last line of this kind)" if left_out else ""
