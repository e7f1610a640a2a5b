"""CloudEvents 1.0 in structured mode: how a message becomes bytes and comes back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache, lru_cache
from json.encoder import encode_basestring_ascii as _text
from typing import Annotated, Any, Literal, Union

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model

from bus import messages
from bus.errors import Malformed
from bus.messages import Message, Observation, WebhookPost, WorkloadCopy, Zones, iso

MESSAGES: tuple[type[Message], ...] = tuple(
    one for one in vars(messages).values() if isinstance(one, type) and issubclass(one, Message) and "type" in vars(one)
)
"""Every message there is, those of `bus.messages` that have a type: the documents of the bus are checked against it."""


class Event(BaseModel):
    """A message in its envelope. Unknown attributes are CloudEvents extensions: allowed, and left alone."""

    model_config = ConfigDict(frozen=True, extra="allow")

    specversion: Literal["1.0"]
    id: Annotated[str, Field(min_length=1, max_length=2048)]
    source: Annotated[str, Field(min_length=1, max_length=2048)]
    type: str
    subject: str | None = None
    time: AwareDatetime
    datacontenttype: Literal["application/json"] = "application/json"
    data: Any


class _Events:
    """The models of events, each made when the first of its type comes: those of all take up 5 MB of every process."""

    def __init__(self, *messages: type[Message]) -> None:
        self._messages = list(messages)
        self._adapter = self._made()

    def read(self, body: bytes) -> Event:
        """Raises ValidationError."""
        try:
            return self._adapter.validate_json(body)
        except ValidationError as error:
            if not (more := self._lacking(error)):
                raise
        self._messages += more
        self._adapter = self._made()
        return self._adapter.validate_json(body)

    def _lacking(self, error: ValidationError) -> Sequence[type[Message]]:
        """Give the message whose model lacks. All, where there is none of the type: the error then names all types."""
        [first, *_] = error.errors(include_url=False)
        if first["type"] != "union_tag_invalid":
            return ()
        lacking = [one for one in MESSAGES if one not in self._messages]
        return [one for one in lacking if one.type == first["ctx"]["tag"]] or lacking

    def _made(self) -> TypeAdapter[Event]:
        union: Any = Union[tuple(map(_event, self._messages))]  # noqa: UP007 - the members are known at run time only
        return TypeAdapter(Annotated[union, Field(discriminator="type")])


@cache
def _event(message: type[Message]) -> type[Event]:
    named: Any = Literal[message.type]  # known at run time only
    return create_model(f"{message.__name__}Event", __base__=Event, type=(named, ...), data=(message, ...))


_EVENTS = _Events(Observation, WebhookPost)


def encode(message: Message, *, id: str, source: str, time: datetime) -> bytes:  # noqa: A002 - CloudEvents' own word
    """Give the message in its envelope as JSON.

    `id` is deterministic: the same message published again has the same id. `source` is a URI reference, such as
    `/reactor/observer`.
    """
    head = (
        f'{{"specversion": "1.0", "id": {_text(id)}, "source": {_text(source)}, "type": {_text(message.type)}, '
        f'"subject": {_text(message.about)}, "time": {_text(iso(time))}, "datacontenttype": "application/json"'
    )
    # Of all that is stored most are observations, and most of what one could say is as usual. An older release reads
    # zones only without keys that it does not know.
    data = message.model_dump_json(exclude_defaults=isinstance(message, Observation | Zones | WorkloadCopy))
    return f'{head}, "data": {data}}}'.encode()


DECODED_KEPT = 512
"""Number of newest events that are not decoded again: what is routed is passed on as it came, and a decider of the same
process reads it at once, once for each partition. Two to three times what is on its way between them."""
DECODED_BYTES_MAX = 2 << 10
"""Most bytes of an event that is kept decoded: all together they take two or three MB."""


def decode(body: bytes) -> Event:
    """Read an event back. Raises Malformed, with what is wrong and where, never with the whole body."""
    return _kept(body) if len(body) <= DECODED_BYTES_MAX else _decoded(body)


def _decoded(body: bytes) -> Event:
    try:
        return _EVENTS.read(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        raise Malformed(f"not a message of this bus: {where}: {first['msg']}") from error


_kept = lru_cache(DECODED_KEPT)(_decoded)
