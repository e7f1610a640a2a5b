"""The protocol of NATS as it is read and written: in whatever pieces it comes, and with any payload."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.aio.msg import Msg
from nats.errors import BadSubjectError, MaxPayloadError, ProtocolError

from bus.jetstream.client import FailFastClient
from bus.jetstream.wire import LINE_MAX, DirectParser, OutgoingMessage, written

DIRECT, OTHER = 1, 2


class Client(FailFastClient):
    """One that notes what is left to nats-py."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[Msg] = []
        self.left: list[tuple[Any, ...]] = []
        self.errors: list[Exception] = []
        self._error_cb = self._noted

    async def _noted(self, error: Exception) -> None:
        self.errors.append(error)

    async def _process_msg(self, *given: Any) -> None:
        self.left.append(given)

    async def _process_pong(self) -> None:
        self.left.append(("PONG",))


def parser(client: Client) -> DirectParser:
    return DirectParser(client, {DIRECT: client.taken.append})


HEADERS = b"NATS/1.0\r\nNats-Msg-Id: a/b: c\r\ntraceparent:00\r\n\xff: left out\r\n\r\n"
STREAM = (
    b"MSG a.b 1 $JS.ACK.x 5\r\nhe\r\no\r\n"
    b"PONG\r\n"
    b"HMSG a.c 1 _INBOX.r %d %d\r\n%shello\r\n" % (len(HEADERS), len(HEADERS) + 5, HEADERS) + b"MSG a.d 2 0\r\n\r\n"
    b"HMSG a.e 1 16 16\r\nNATS/1.0 404\r\n\r\n\r\n"
    b"MSG a.f 1 2\r\nok\r\n"
)


@given(st.lists(st.integers(0, len(STREAM)), max_size=6).map(sorted))
async def test_messages_are_the_same_in_whatever_pieces_they_come(cuts: list[int]) -> None:
    client = Client()
    reading = parser(client)
    for begin, end in zip([0, *cuts], [*cuts, len(STREAM)], strict=True):
        await reading.parse(STREAM[begin:end])
    assert [(one.subject, one.reply, one.data, one.headers) for one in client.taken] == [
        ("a.b", "$JS.ACK.x", b"he\r\no", None),
        ("a.c", "_INBOX.r", b"hello", {"Nats-Msg-Id": "a/b: c", "traceparent": "00"}),
        ("a.e", "", b"", {"Status": "404"}),
        ("a.f", "", b"ok", None),
    ]
    assert client.left == [("PONG",), (OTHER, b"a.d", b"", b"", b"")]


async def test_what_a_sink_does_not_bear_ends_no_reading() -> None:
    client = Client()

    def fails(message: Msg) -> None:
        if message.data == b"bad":
            raise ValueError(message.data)
        client.taken.append(message)

    await DirectParser(client, {DIRECT: fails}).parse(b"MSG a 1 3\r\nbad\r\nMSG \xff 1 4\r\ngood\r\n")
    assert [type(error) for error in client.errors] == [ValueError]
    assert [(one.subject, one.data) for one in client.taken] == [("\ufffd", b"good")]


async def test_half_a_message_of_a_lost_connection_belongs_to_no_other() -> None:
    client = Client()
    reading = parser(client)
    await reading.parse(b"MSG a 1 5\r\nhal")
    reading.reset()
    await reading.parse(b"MSG b 1 2\r\nok\r\n")
    assert [one.subject for one in client.taken] == ["b"]


@pytest.mark.parametrize(
    "said",
    [b"MSG a one 2\r\nok\r\n", b"MSG a 1\r\n", b"HELLO\r\n", b"x" * (LINE_MAX + 1)],
    ids=["id", "short", "word", "long"],
)
async def test_what_is_no_nats_ends_the_connection(said: bytes) -> None:
    with pytest.raises(ProtocolError):
        await parser(Client()).parse(said)


@given(st.binary(), st.text(st.characters(codec="utf-8")))
async def test_what_is_written_is_read_back(body: bytes, id_: str) -> None:
    """Also where a value has line breaks in it: it could end its header, and begin a command."""
    client = Client()
    piece = written([OutgoingMessage("a.b", "r", body, {"Nats-Msg-Id": id_})], payload_max=1 << 20)
    await parser(client).parse(piece.replace(b"HPUB a.b r", b"HMSG a.b 1 r", 1))
    [read] = client.taken
    assert (read.subject, read.reply, read.data) == ("a.b", "r", body)
    assert [*(read.headers or {})] == ["Nats-Msg-Id"]
    assert (read.headers or {})["Nats-Msg-Id"].split() == id_.split()


def test_a_message_that_cannot_be_sent_sends_none() -> None:
    good = OutgoingMessage("a", "", b"x")
    for bad, error in (
        (OutgoingMessage("a b", "", b""), BadSubjectError),
        (OutgoingMessage("a", "", b"xx"), MaxPayloadError),
    ):
        with pytest.raises(error):
            written([good, bad], payload_max=1)


async def test_a_heartbeat_has_the_headers_that_nats_py_would_read() -> None:
    block = b"NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 7\r\nNats-Consumer-Stalled: $JS.FC.x\r\n\r\n"
    client = Client()
    await parser(client).parse(b"HMSG a.b 1 %d %d\r\n%s\r\n" % (len(block), len(block), block))
    theirs = await client._process_headers(block)
    assert theirs is not None
    assert client.taken[0].headers == {name: value for name, value in theirs.items() if name != "Description"}
