"""Over how many partitions the facts of a bus are spread: agreed on once, kept on the bus."""

from __future__ import annotations

from bus import subjects
from bus.errors import KeyNotFound
from bus.jetstream import JetStreamBus
from bus.jetstream.connection import ApiError
from bus.jetstream.provisioning import NO_STREAM
from bus.json_text import parsed
from bus.topology import LEASES
from reactor.runtime.errors import SettingsError

LAYOUT = subjects.key("layout")


async def partitions_of(bus: JetStreamBus) -> int | None:
    """Give over how many partitions facts are spread on this bus; None: not agreed on yet.

    Raises Unavailable, SettingsError.
    """
    try:
        entry = await bus.store(LEASES).get(LAYOUT)
    except KeyNotFound:
        return None
    except ApiError as error:
        if error.code == NO_STREAM:
            return None
        raise
    try:
        return int(parsed(entry.value)["partitions"])
    except (ValueError, KeyError, TypeError) as error:
        raise SettingsError(
            f"bus: entry {LAYOUT} of bucket {LEASES.name} cannot be read: {entry.value[:80]!r}; delete it"
        ) from error
