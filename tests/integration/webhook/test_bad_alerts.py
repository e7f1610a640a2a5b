"""One alert that cannot be used, in a post of good ones: it alone is quarantined, and nothing of it stays."""

from __future__ import annotations

import asyncio
import gc
import time
from pathlib import Path
from typing import Any

import pytest

from reactor.webhook import receiver as role
from tests.integration.webhook.reception import Reception, reception
from tests.unit.webhook.builders import alert, body, counted
from tests.unit.webhook.test_alerts import BAD as BAD_ALERTS
from tests.unit.webhook.test_body import BAD as BAD_BODIES

ROUNDS = 10
KEPT_BYTES_MAX = 16 << 20
"""Less than a fifth of what is posted in these rounds."""
HEAD = b"POST /v1/alerts/am HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize("bad", BAD_ALERTS.values(), ids=BAD_ALERTS)
async def test_a_bad_alert_is_counted_and_told_without_its_words_and_the_others_are_taken(
    receiver: Reception, bad: Any, caplog: pytest.LogCaptureFixture
) -> None:
    before = counted("reactor_webhook_alerts_total", source="am", fate="quarantined")
    began = time.process_time()
    assert await receiver.post(body(alert("a"), bad, alert("b"))) == (200, {"taken": 2, "quarantined": 1})
    assert time.process_time() - began < 1
    assert counted("reactor_webhook_alerts_total", source="am", fate="quarantined") == before + 1
    assert [one["fingerprint"] for one in (await receiver.journal())[0].alerts] == ["a", "b"]
    [told] = [record for record in caplog.records if record.name.startswith("reactor")]
    assert told.getMessage() == "alerts are quarantined"
    assert told.exc_info is None
    assert 5 < len(told.__dict__["reason"]) < 200


def resident() -> int:
    """Give how many bytes of memory this process has now."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def test_bad_posts_leave_nothing_in_memory(receiver: Reception) -> None:
    async def all_of_them() -> None:
        for raw, code in BAD_BODIES.values():
            assert (await receiver.post(raw))[0] == code
        for bad in BAD_ALERTS.values():
            assert (await receiver.post(body(bad)))[0] == 200

    await all_of_them()
    before = resident()
    for _ in range(ROUNDS):
        await all_of_them()
    assert resident() - before < KEPT_BYTES_MAX


async def cut(receiver: Reception, head: bytes, drop: bytes) -> bytes:
    """Send a drop every 10 ms until the other side has had enough; give what it said."""
    reader, writer = await receiver.connect()
    answer = asyncio.create_task(reader.read(1000))
    writer.write(head)
    try:
        async with asyncio.timeout(60):
            while not answer.done():
                writer.write(drop)
                await asyncio.sleep(0.01)
            return await answer
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_a_body_that_drips_is_cut() -> None:
    async with reception(body_seconds=0.5) as receiver:
        assert (await cut(receiver, HEAD + b"Content-Length: 100000\r\n\r\n", b" ")).startswith(b"HTTP/1.1 408 ")
        assert (await receiver.post(body(alert())))[0] == 200


async def test_headers_that_drip_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(role, "HEADER_SECONDS", 0.5)
    async with reception() as receiver:
        assert await cut(receiver, b"POST /v1/alerts/am HTTP/1.1\r\nX: ", b"x") == b""
        assert (await receiver.post(body(alert())))[0] == 200


@pytest.mark.parametrize(
    "lengths",
    [
        b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n",
        b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
        b"Content-Length: 2, 3\r\n\r\n{}", b"Content-Length: +2\r\n\r\n{}", b"Content-Length: 0x2\r\n\r\n{}",
        b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    ],
)  # fmt: skip
async def test_a_body_whose_end_two_readers_would_see_differently_is_400(receiver: Reception, lengths: bytes) -> None:
    got = await receiver.raw(HEAD + lengths)
    assert got.startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 ")), got
    assert (await receiver.post(body(alert())))[0] == 200
    assert len(await receiver.journal()) == 1
