"""Giving a person's command: stored on the bus, and followed once a reactor reads it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import uuid4

from bus import subjects
from bus.envelope import encode
from bus.port import Outgoing

if TYPE_CHECKING:
    from bus.jetstream import JetStreamBus
    from bus.messages import AnyCommand


async def give(bus: JetStreamBus, command: AnyCommand, at: datetime, origin: str) -> str:
    """Store a command of `by`, given at a moment. Gives its ID.

    `origin`: the way it came: `cli`, `web`, `link`. Raises Unavailable, Refused.
    """
    id_ = str(uuid4())
    body = encode(command, id=id_, source=f"/reactor/{origin}/{subjects.token(command.by)}", time=at)
    await bus.publish_all([Outgoing(subjects.command(type(command).__name__.lower(), bus.user), body, id_)])
    return id_
