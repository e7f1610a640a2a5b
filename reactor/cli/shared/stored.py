"""Reading what the bus keeps: the audit and the facts, or a file that holds the audit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING

from pydantic import ValidationError

from bus.errors import Malformed
from bus.messages import DecisionRecord, Message
from reactor.cli.shared.printing import say
from reactor.runtime.errors import SettingsError
from reactor.runtime.visible import visible

if TYPE_CHECKING:
    from bus.jetstream import JetStreamBus
    from bus.topology import Stream

END = timedelta(seconds=1)
"""Nothing more for so long: the stream is read."""


async def stored(bus: JetStreamBus, stream: Stream, subject: str | None = None) -> AsyncIterator[Message]:
    """Give the messages of a stream, in order, up to its end; one that cannot be read is told and left out."""
    from bus.admission import read

    async with bus.read(stream, subject or stream.subjects[0], after=0) as reading:
        while not reading.current:
            for one in await reading.next(END):
                try:
                    yield read(one.subject, one.body).data
                except Malformed as error:
                    say(visible(f"{stream.name} {one.sequence} is left out: {error}"), err=True)


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
