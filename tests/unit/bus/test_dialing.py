"""An attempt to connect ends when its time is over."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from nats.aio.client import Client

from bus.errors import Unavailable
from bus.jetstream.connection import Credentials, connect
from tests.serving import serving

INFO = b'INFO {"server_id":"x","version":"2.12.0","max_payload":1048576,"proto":1,"headers":true}\r\n'


@pytest.mark.parametrize("step", ["_connect_to_server", "_process_connect_init"])
async def test_a_cancellation_that_meets_an_error_is_not_lost(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """As asyncio.wait_for of Python 3.11 does it where a server refuses a login just when the time is over."""

    async def refused_at_the_end(*_: object) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ConnectionResetError("refused") from None

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(INFO)
        await reader.read()
        writer.close()

    monkeypatch.setattr(Client, step, refused_at_the_end)
    patience = timedelta(seconds=0.05)
    async with serving(greet) as port, asyncio.timeout(10):
        with pytest.raises(Unavailable, match="no NATS server at"):
            async with connect(
                f"nats://127.0.0.1:{port}", name="t", credentials=Credentials(), timeout=patience, patience=patience
            ):
                pass
