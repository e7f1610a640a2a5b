"""Reading the whole audit from the bus, with what it is checked against."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from bus.errors import Malformed
from bus.jetstream import JetStreamBus
from bus.message_admission import read_message
from bus.messages import DecisionRecord
from bus.port import Delivery
from bus.topology import DECISIONS, GROUPS
from reactor.audit.chain import Head, digest
from reactor.audit.links import StoredRecord
from reactor.audit.position import Position

log = logging.getLogger(__name__)

END = timedelta(seconds=1)
"""Time without a record after which the stream counts as read."""
CLOCKS = timedelta(minutes=1)
"""Most by which the clock of the process that dated a record may be ahead of the bus's."""
FULL = 0.9
"""Share of its bytes from which on a stream may have dropped records that were not old."""


@dataclass(slots=True)
class AuditTrail:
    """Stored audit of all partitions."""

    heads: Mapping[str, Head]
    """Newest record of each partition, as the partition's state names it."""
    kept_since: datetime | None
    """Time since which retention has removed no decision; None: the stream was full."""
    records: list[DecisionRecord] = field(default_factory=list)
    stored: list[StoredRecord] = field(default_factory=list)


async def audit_of(bus: JetStreamBus) -> AuditTrail:
    """Read the states first: what they name was stored before. Raises Unavailable."""
    heads: dict[str, Head] = {}
    for entry in await bus.store(GROUPS).entries("*.position"):
        try:
            heads[entry.key.partition(".")[0]] = Position.read(entry.value).audited
        except Malformed as error:
            log.warning(
                "%s: %s; it is not known whether the newest records of its audit were cut off", entry.key, error
            )
    found = AuditTrail(heads, _kept_since(await bus.connection.api(f"STREAM.INFO.{DECISIONS.name}", {})))
    async with bus.read(DECISIONS, DECISIONS.subjects[0], after=0) as reading:
        while not reading.current:
            for one in await reading.next(END):
                _take(found, one)
    return found


def _kept_since(info: Mapping[str, Any]) -> datetime | None:
    config, now = info["config"], datetime.fromisoformat(info["ts"])
    if 0 < config.get("max_bytes", -1) * FULL <= info["state"]["bytes"]:
        return None
    age = timedelta(microseconds=config.get("max_age", 0) / 1000)
    return now - age + CLOCKS if age else datetime.fromisoformat(info["created"])


def _take(audit: AuditTrail, one: Delivery) -> None:
    try:
        record = read_message(one.subject, one.body).data
    except Malformed:
        record = None
    if not isinstance(record, DecisionRecord):
        audit.stored.append(
            StoredRecord(one.sequence, one.subject.split(".")[2], "?", one.stored_at, one.stored_at, "", None)
        )
        return
    audit.records.append(record)
    audit.stored.append(StoredRecord.of(one, record, digest(one.body)))
