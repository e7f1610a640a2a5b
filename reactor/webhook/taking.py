"""Splits the body of a post: the messages of the journal, and what of it cannot be used. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from bus.port import Outgoing
from reactor.webhook import body, journal

REASONS_MAX = 100
"""Most different reasons that are reported."""


@dataclass(frozen=True, slots=True)
class TakenBody:
    """A body that has been read."""

    alerts: int
    """Number of its alerts that can be used."""
    quarantined: int
    """Number of its alerts that cannot be used."""
    reasons: tuple[str, ...]
    """Reasons for these, each once."""
    truncated: int
    """Number of alerts that Alertmanager left out (max_alerts)."""
    messages: list[Outgoing] = field(repr=False)
    sizes: tuple[int, ...] = ()
    """Number of alerts in each of the messages."""


def take(raw: bytes, *, source: str, at: datetime, alerts_max: int = body.ALERTS_MAX) -> TakenBody:
    """Read a body and give what is to be stored of it. Raises BadBody."""
    read = body.read_body(raw, alerts_max=alerts_max)
    reasons = tuple(dict.fromkeys(read.quarantined))[:REASONS_MAX]
    messages = journal.outgoing(source, read, at)
    counts = len(read.alerts), len(read.quarantined)
    return TakenBody(*counts, reasons, read.truncated, messages, journal.sizes(read))
