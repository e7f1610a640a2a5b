"""Messages that nobody can read: counted, told, and left behind, so that they stop nothing."""

from __future__ import annotations

import logging

from bus.errors import Malformed
from bus.port import Delivery
from bus.topology import Stream
from reactor.runtime import telemetry

log = logging.getLogger(__name__)


def quarantine(delivery: Delivery, stream: Stream, error: Malformed) -> None:
    """Count a message of this stream as one that cannot be read, and say why."""
    telemetry.quarantined.labels(stream.name).inc()
    log.warning("message %s on %s is put aside: %s", delivery.sequence, delivery.subject, error)


def foreign(stream: str, subject: str) -> None:
    """Count a message that another client pushed into a reading of this stream. The bus has ignored it."""
    telemetry.quarantined.labels(stream).inc()
    log.error("a message on %s did not come from stream %s, and is ignored: who may publish there?", subject, stream)
