"""Reading what is stored without a consumer, by direct gets in batches: for users who may only look.

A consumer delivers to any subject that it is made with, so the right to make one is the right to publish.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from nats.aio.msg import Msg
from nats.errors import Error

from bus.errors import Unavailable
from bus.jetstream.connection import Connection
from bus.jetstream.incoming import REMOVED, TRACEPARENT, JetStreamDelivery
from bus.jetstream.lookup import last

BATCH = 500
LOOK_SECONDS = 0.2
END = ("204", "404")  # the end of a batch; nothing there


class ScannedReading:
    """A `bus.port.Reading` over one stream and filter."""

    def __init__(self, connection: Connection, stream: str, subject: str, *, after: int) -> None:
        self._connection, self._stream, self._subject = connection, stream, subject
        self._after = after
        self._drained = False
        self._pending = 0

    async def __aenter__(self) -> ScannedReading:
        """Raises Unavailable where there is no such stream or no answer."""
        await self._connection.api(f"STREAM.INFO.{self._stream}", {})
        return self

    async def __aexit__(self, *_: object) -> None:
        return

    async def next(self, timeout: timedelta) -> Sequence[JetStreamDelivery]:
        """Give what has come, at most 500 at once. Raises Unavailable."""
        loop, before = asyncio.get_running_loop(), self._drained
        until = loop.time() + timeout.total_seconds()
        while True:
            taken = await self._batch()
            self._drained = not taken or taken[-1].pending == 0
            self._pending = taken[-1].pending if taken else 0
            if taken:
                self._after = taken[-1].sequence
                return taken
            if not before or loop.time() >= until:
                return ()
            await asyncio.sleep(LOOK_SECONDS)

    @property
    def current(self) -> bool:
        """True while nothing more was there at the last look."""
        return self._drained

    @property
    def unread(self) -> int:
        """Number of further messages at the last look."""
        return self._pending

    @property
    def position(self) -> int:
        """Sequence of the last message that was given out."""
        return self._after

    async def newest(self) -> int:
        """Raises Unavailable."""
        return (await last(self._connection, self._stream, self._subject)).sequence

    async def _batch(self) -> list[JetStreamDelivery]:
        client, timeout = self._connection.client, self._connection.timeout
        inbox, found = client.new_inbox(), list[JetStreamDelivery]()
        request = {"seq": self._after + 1, "next_by_subj": self._subject, "batch": BATCH}
        try:
            subscription = await client.subscribe(inbox)
            try:
                await client.publish(f"$JS.API.DIRECT.GET.{self._stream}", json.dumps(request).encode(), reply=inbox)
                while (message := await subscription.next_msg(timeout)).headers is None or not _ended(message):
                    found.append(_stored(message))
            finally:
                await subscription.unsubscribe()
        except (Error, TimeoutError) as error:
            raise Unavailable(f"{self._stream} did not come to an end of {self._subject}: {error}") from error
        return found


def _ended(message: Msg) -> bool:
    """True if this ends a batch. Raises Unavailable where the server refuses."""
    headers = message.headers or {}
    code = headers.get("Status", "") if "Nats-Sequence" not in headers else ""
    if code and code not in END:
        raise Unavailable(f"the server refuses to read: {code} {headers.get('Description', '')}")
    return bool(code)


def _stored(message: Msg) -> JetStreamDelivery:
    headers = message.headers or {}
    return JetStreamDelivery(
        headers["Nats-Subject"], message.data, int(headers["Nats-Sequence"]),
        datetime.fromisoformat(headers["Nats-Time-Stamp"]), int(headers.get("Nats-Num-Pending", 0)),
        traceparent=headers.get(TRACEPARENT), removed=any(name in headers for name in REMOVED),
    )  # fmt: skip
