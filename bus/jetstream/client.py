"""nats-py's client, made to give up in time.

As it comes it closes a connection that it has found dead in an orderly way: it waits until the peer has taken all that
was written, over TCP for a quarter of an hour, over TLS for half a minute, before it reports that or dials another
server. And it swallows a cancellation that reaches a caller who waits for room in a full buffer, so that no timeout
ever ends that call. And where TLS is asked for and the server has none it connects in plain text. All were seen, and
are put right here, in the places that everything goes through.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import ParseResult

from nats.aio.client import Client, Srv
from nats.aio.subscription import Subscription
from nats.aio.transport import TcpTransport
from nats.errors import ConnectionClosedError, ConnectionDrainingError, Error, OutboundBufferLimitError

from bus.jetstream.wire import DirectParser, OutgoingMessage, Sink, written

LEAVE_SECONDS = 2.0  # what is still to be sent when we hang up may take so long
WEBSOCKET = ("ws", "wss")  # aiohttp closes those, and gives up by itself


class PromptTransport(TcpTransport):
    """A connection whose closing is not waited for."""

    def __init__(self, leaving: Callable[[], bool]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # nats-py has none there
        self._leaving = leaving

    async def connect(self, uri: ParseResult, buffer_size: int, connect_timeout: int) -> None:
        """Connect. What an attempt before left open would stay open: a server that accepts and never says a word."""
        self.abort()
        await super().connect(uri, buffer_size, connect_timeout)

    def close(self) -> None:
        """Close in an orderly way where it was our will; what has failed is dropped with all that was written to it."""
        if self._leaving():
            super().close()  # type: ignore[no-untyped-call]  # nats-py has none there
        else:
            self.abort()

    async def drain(self) -> None:
        """Wait until the socket has taken what was written. A client that closes anyway loses nothing if it is gone."""
        try:
            await super().drain()  # type: ignore[no-untyped-call]  # nats-py has none there
        except ConnectionError:
            if not self._leaving():
                raise

    async def wait_closed(self) -> None:
        """Wait until the connection is closed, at most LEAVE_SECONDS: a stream whose TLS handshake was broken off never
        learns that it is."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_SECONDS):
                await super().wait_closed()  # type: ignore[no-untyped-call]  # nats-py has none there

    def abort(self) -> None:
        """End it at once. Tasks that wait for it go on."""
        if self._io_writer is not None:
            self._io_writer.transport.abort()

    def __bool__(self) -> bool:
        """True, always: nats-py would take one of its own in the place of one that was not connected yet."""
        return True


class FailFastClient(Client):
    """A `nats.aio.client.Client` that does not wait for the dead."""

    def __init__(self, renewed: Callable[[], Mapping[str, Any]] = dict) -> None:
        """`renewed`: options that have changed, asked before each attempt to connect."""
        super().__init__()
        self._renewed = renewed
        self._sinks: dict[int, Sink] = {}
        """Sinks by the id of their subscription."""
        self._ps = DirectParser(self, self._sinks)
        self.leaving = False
        """True from the moment at which we ourselves hang up."""

    async def subscribe_directly(self, subject: str, sink: Sink) -> Subscription:
        """Hand each message to the sink as soon as it is read. No message is dropped: the sink bounds what comes."""
        subscription = await self.subscribe(subject)
        self._sinks[subscription._id] = sink  # noqa: SLF001 - it has no public name for it
        return subscription

    def _remove_sub(self, sid: int, max_msgs: int = 0) -> None:
        self._sinks.pop(sid, None)
        super()._remove_sub(sid, max_msgs)

    async def publish_together(self, messages: Iterable[OutgoingMessage]) -> None:
        """Publish many in one piece: as `publish` for each, with its errors, of which none is published then."""
        if self.is_closed:
            raise ConnectionClosedError
        if self.is_draining_pubs:
            raise ConnectionDrainingError
        piece = written(messages, payload_max=self._max_payload)
        if not self.is_connected and len(piece) + self._pending_data_size > self._max_pending_size:
            raise OutboundBufferLimitError
        await self._send_command(piece)
        if self._flush_queue is not None and self._flush_queue.empty():
            await self._flush_pending()

    async def leave(self) -> None:
        """Send what is still to be sent, and close: whatever the peer does, within LEAVE_SECONDS."""
        self.leaving = True
        giving_up = asyncio.get_running_loop().call_later(LEAVE_SECONDS, self._abort)
        try:
            await self.close()
        finally:
            giving_up.cancel()

    def _abort(self) -> None:
        if isinstance(self._transport, PromptTransport):
            self._transport.abort()

    async def _process_pong(self) -> None:
        # Who waited for this pong may have been cancelled: nats-py would take its own error for a broken connection.
        if self._pongs and self._pongs[0].done():
            self._pongs[0] = asyncio.get_running_loop().create_future()
        await super()._process_pong()

    async def _connect_to_server(self, s: Srv) -> None:
        _heed_cancellation()
        self.options.update(self._renewed())
        if self._transport is None and s.uri.scheme not in WEBSOCKET:
            self._transport = PromptTransport(lambda: self.leaving)
        try:
            await super()._connect_to_server(s)
        except Exception:  # whatever it is: a cancellation that it took the place of comes first
            _heed_cancellation()
            raise

    async def _process_connect_init(self) -> None:
        try:
            await super()._process_connect_init()
        except Exception:  # as above
            _heed_cancellation()
            raise

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        """Check, before we identify ourselves, that TLS is used where it was asked for: nothing goes out in plain
        text."""
        scheme = self._current_server.uri.scheme if self._current_server is not None else ""
        wanted = scheme == "tls" or ("tls" in self.options and scheme not in WEBSOCKET)  # wss is encrypted already
        if initial_connection and wanted:
            if not info.get("tls_required") and not info.get("tls_available"):
                raise Error("nats: TLS is asked for, by tls:// or certificates, and this server has none")
            info["tls_required"] = True  # what it merely offers we take
        await super()._process_info(info, initial_connection)

    async def _flush_pending(self, force_flush: bool = False) -> Any:
        task = asyncio.current_task()
        before = task.cancelling() if task else 0
        flushed = await super()._flush_pending(force_flush)
        if task and task.cancelling() > before:
            raise asyncio.CancelledError  # it came while we waited, and was swallowed
        return flushed


def _heed_cancellation() -> None:
    """End a task that is to end. asyncio.wait_for of Python 3.11 loses a cancellation that meets an error, and nats-py
    would try to connect without end.
    """
    if (task := asyncio.current_task()) is not None and task.cancelling():
        raise asyncio.CancelledError
