"""Reading what the bus keeps: the audit and the facts, or a file that holds the audit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from pydantic import ValidationError

from bus.errors import Malformed
from bus.messages import DecisionRecord, Message
from reactor.runtime.errors import SettingsError
from reactor.runtime.visible import visible

if TYPE_CHECKING:
    from bus.jetstream import JetStreamBus
    from bus.topology import Stream

OnUnreadable = Callable[[str], None]
"""Receives one line for people for each stored record that cannot be read."""
END = timedelta(seconds=1)
"""Time without a record after which the stream counts as read."""


async def stored(
    bus: JetStreamBus, stream: Stream, subject: str | None = None, *, unreadable: OnUnreadable
) -> AsyncIterator[Message]:
    """Give the messages of a stream, in order, up to its end.

    One that cannot be read is told to `unreadable` and left out. Raises Unavailable."""
    from bus.message_admission import read_message

    async with bus.read(stream, subject or stream.subjects[0], after=0) as reading:
        while not reading.current:
            for one in await reading.next(END):
                try:
                    yield read_message(one.subject, one.body).data
                except Malformed as error:
                    unreadable(visible(f"{stream.name} {one.sequence} is left out: {error}"))


def from_lines(lines: Iterable[str], name: str) -> Iterator[DecisionRecord]:
    """Read records, one JSON object a line, as `reactor audit export` writes them. Raises SettingsError."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield DecisionRecord.model_validate_json(line)
            except ValidationError as error:
                first = error.errors(include_url=False, include_input=False)[0]
                where = ".".join(map(str, first["loc"]))
                raise SettingsError(f"{name}:{number}: no decision record: {where}: {first['msg']}") from error
