"""NATS' protocol for what there is much of: messages read without a queue and a task each, and written as one piece.

nats-py tries up to seven patterns on each line, puts each message into a queue and wakes a task for it, and looks after
its buffer with each message that it writes: 15 to 25 µs a message that comes and 10 to 15 for one that goes (measured).
Here both take 3 µs. Everything else is left to nats-py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from nats.aio.msg import Msg
from nats.errors import BadSubjectError, MaxPayloadError, ProtocolError
from nats.protocol.parser import Parser

if TYPE_CHECKING:
    from nats.aio.client import Client

Sink = Callable[[Msg], None]
"""Takes a message at once, and waits for nothing: what comes behind it is read afterwards."""

LINE_MAX = 64 << 10
"""Bytes of a line without an end: more is no NATS server. Its INFO, the longest, has some kilobytes."""
_END = b"\r\n"
_PLAIN_HEADERS = b"NATS/1.0\r\n"
"""First bytes of headers without a status."""
_HEARTBEAT = b"NATS/1.0 100 Idle Heartbeat\r\n"
"""First bytes of the headers of a consumer that has nothing to send: of all that comes to a reactor at rest, nearly
all."""
_ILLEGAL = re.compile(r"[ \t\r\n]")
_ONE_LINE = str.maketrans({"\r": " ", "\n": " "})


class OutgoingMessage(NamedTuple):
    """One message to be written."""

    subject: str
    reply: str
    body: bytes
    headers: Mapping[str, str] | None = None


def written(messages: Iterable[OutgoingMessage], *, payload_max: int) -> bytes:
    """Give all these messages as they are sent. Raises BadSubjectError, MaxPayloadError: then none is.

    Names of headers are our own. Values may be others' words: they are in one line, as nats-py has them.
    """
    pieces: list[bytes] = []
    for subject, reply, body, headers in messages:
        if not subject or _ILLEGAL.search(subject) or _ILLEGAL.search(reply):
            raise BadSubjectError
        if len(body) > payload_max:
            raise MaxPayloadError
        to = f"{subject} {reply}" if reply else subject
        if headers is None:
            pieces += f"PUB {to} {len(body)}\r\n".encode(), body, _END
            continue
        lines = "".join([f"{name}: {value.strip()}\r\n" for name, value in headers.items()])
        if not lines.count("\r") == lines.count("\n") == len(headers):
            lines = "".join([f"{name}: {value.strip().translate(_ONE_LINE)}\r\n" for name, value in headers.items()])
        head = f"NATS/1.0\r\n{lines}\r\n".encode()
        pieces += f"HPUB {to} {len(head)} {len(head) + len(body)}\r\n".encode(), head, body, _END
    return b"".join(pieces)


class DirectParser(Parser):
    """Reads what the server sends: messages for sinks go there at once, all else to nats-py."""

    def __init__(self, client: Client, sinks: Mapping[int, Sink]) -> None:
        """`sinks`: by the id of their subscription."""
        self._sinks = sinks
        self._rest = b""
        self._connections = 0
        super().__init__(client)

    def reset(self) -> None:
        """Another connection begins: what is left of the one before belongs to nothing."""
        super().reset()
        self._rest = b""
        self._connections += 1

    async def parse(self, data: bytes = b"") -> None:
        """Take the next bytes. Raises ProtocolError where they are no NATS."""
        data, self._rest = self._rest + data, b""
        at, connection = 0, self._connections
        while (end := data.find(_END, at)) >= 0:
            line, begin = data[at:end], end + len(_END)
            if not line.startswith((b"MSG ", b"HMSG ")):
                at = begin
                self.buf = bytearray(line + _END)
                await super().parse()
            else:
                head = _head_of(line)
                if len(data) < begin + head.size + len(_END):
                    break
                at = begin + head.size + len(_END)
                await self._message(head, data[begin : begin + head.size])
            if self._connections != connection:
                return  # it was lost, or left, meanwhile
        self._rest = data[at:]
        if end < 0 and len(self._rest) > LINE_MAX:
            raise ProtocolError("nats: unknown protocol")

    async def _message(self, head: _MessageLine, payload: bytes) -> None:
        block, body = payload[: head.header_size], payload[head.header_size :]
        sink, client = self._sinks.get(head.sid), self.nc
        if sink is None:
            await client._process_msg(head.sid, head.subject, head.reply, body, block)  # noqa: SLF001 - as its own parser
            return
        if block.startswith(_PLAIN_HEADERS):
            headers = _headers(block[len(_PLAIN_HEADERS) :])
        elif block.startswith(_HEARTBEAT):
            headers = {"Status": "100", **(_headers(block[len(_HEARTBEAT) :]) or {})}
        else:
            # The client has no public way to read headers of its own form.
            headers = await client._process_headers(block)  # noqa: SLF001
        subject, reply = head.subject.decode(errors="replace"), head.reply.decode(errors="replace")
        try:
            sink(Msg(client, subject, reply, body, headers))
        except Exception as error:  # noqa: BLE001 - as in a callback of nats-py: one message must not end the reading
            await client._error_cb(error)  # noqa: SLF001 - what the client itself would call


class _MessageLine(NamedTuple):
    """The line that a message begins with."""

    sid: int
    subject: bytes
    reply: bytes
    header_size: int
    size: int
    """Bytes of headers and body."""


def _head_of(line: bytes) -> _MessageLine:
    """Raises ProtocolError."""
    words = line.split(b" ")
    sizes = 2 if line.startswith(b"H") else 1
    reply = words[3] if len(words) == 4 + sizes else b""
    if len(words) != 3 + sizes + bool(reply):
        raise ProtocolError("nats: malformed MSG")
    try:
        return _MessageLine(int(words[2]), words[1], reply, int(words[-2]) if sizes == 2 else 0, int(words[-1]))
    except ValueError as error:
        raise ProtocolError("nats: malformed MSG") from error


def _headers(lines: bytes) -> dict[str, Any] | None:
    """Read headers as nats-py does: the last of one name counts, and names that are no ASCII are left out."""
    found: dict[str, Any] = {}
    for line in lines.split(_END):
        name, colon, value = line.partition(b":")
        if colon and name.isascii():
            found[name.strip().decode()] = value.strip().decode(errors="replace")
    return found or None
