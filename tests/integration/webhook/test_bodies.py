"""Large bodies are read by a process of their own: what one does to it harms no other, and each source has its turn."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime

import pytest

from bus import subjects
from reactor.runtime.errors import Retryable
from reactor.settings.receiver_settings import Receiver
from reactor.webhook.bodies import INLINE_BYTES, Bodies
from reactor.webhook.body import BadBody
from reactor.webhook.taking import TakenBody, take
from reactor.webhook.webhook_server import BODY_MEMORY_BYTES, IN_HANDS_MAX
from tests.integration.webhook.reception import Reception, SlowBus, reception
from tests.unit.webhook.builders import alert, body, counted, labelled

AT = datetime(2026, 1, 1, tzinfo=UTC)
BROKEN = {"status": "burning"}
Made = Callable[[], bytes]
"""Makes a large body: each worker that collects these tests would hold all of them."""


@pytest.fixture
async def bodies() -> AsyncIterator[Bodies]:
    own = Bodies(BODY_MEMORY_BYTES)
    yield own
    await own.close()


def large(text: str = "x") -> bytes:
    return body(*(alert(f"{number:016x}", text=text * 300) for number in range(1000)), BROKEN)


async def taken(bodies: Bodies, raw: bytes, source: str = "am") -> TakenBody:
    return await bodies.take(raw, source=source, at=AT, alerts_max=2000)


async def test_a_large_body_becomes_what_a_small_one_would(bodies: Bodies) -> None:
    raw = large()
    assert len(raw) > INLINE_BYTES
    found = await taken(bodies, raw)
    assert found == take(raw, source="am", at=AT)
    assert (found.alerts, found.quarantined, len(found.reasons)) == (1000, 1, 1)
    assert len(found.messages) > 1


@pytest.mark.parametrize(
    "made",
    [
        lambda: b'{"alerts":[' + b'{"labels":{}},' * 1_900_000 + b"{}]}",
        lambda: b'{"alerts":"' + "\N{GRINNING FACE}".encode() * 7_000_000 + b'"}',
        lambda: b'{"alerts":[],' + b",".join(b'"k%d":1' % number for number in range(2_000_000)) + b"}",
    ],
    ids=["objects", "text", "keys"],
)
async def test_where_the_parser_finds_no_memory_the_body_is_refused_for_good(made: Made) -> None:
    small = Bodies(100 << 20)
    try:
        with pytest.raises(BadBody) as refused:
            await taken(small, made())
        assert (refused.value.code, refused.value.limit) == (413, "bodyWork")
        assert (await taken(small, large())).alerts == 1000
    finally:
        await small.close()


@pytest.mark.parametrize(
    ("made", "code", "limit"),
    [
        (lambda: large()[:-9], 400, ""), (lambda: b"[" * (1 << 20), 400, "depth"),
        (lambda: b'{"alerts": 1, "x": "' + b"x" * (1 << 20) + b'"}', 422, ""),
        (lambda: body(*({} for _ in range(100_000))), 413, "maxAlertsPerPost"),
        (lambda: b'{"alerts":[' + b"[]," * 8_000_000 + b"[]]}", 413, "bodyWork"),
    ],
    ids=["no JSON", "too deep", "no webhook", "too many alerts", "too much memory"],
)  # fmt: skip
async def test_a_body_that_cannot_be_used_is_refused_and_the_next_one_is_read(
    bodies: Bodies, made: Made, code: int, limit: str
) -> None:
    with pytest.raises(BadBody) as refused:
        await taken(bodies, made())
    assert (refused.value.code, refused.value.limit) == (code, limit)
    assert (await taken(bodies, large())).alerts == 1000


@pytest.mark.alone
async def test_real_alerts_with_many_labels_fill_a_body_of_the_default_size(bodies: Bodies) -> None:
    """32 MiB of them: 413 would lose every alert of the group, at each flush again."""
    names = [f"label{number}" for number in range(8)]
    raw = body(*(labelled({name: f"value-{name}-{one}" for name in names}, f"{one:016x}") for one in range(60_000)))
    assert 28 << 20 < len(raw) <= Receiver().max_body_bytes
    for _ in range(2):  # the second one finds what the first has left in memory
        assert (await bodies.take(raw, source="am", at=AT, alerts_max=100_000)).alerts == 60_000


async def test_a_process_that_is_killed_costs_one_try(bodies: Bodies) -> None:
    await taken(bodies, large())
    assert bodies._process is not None
    os.kill(bodies._process.pid, signal.SIGSTOP)
    waits = asyncio.create_task(taken(bodies, large("y")))
    await asyncio.sleep(0)
    os.kill(bodies._process.pid, signal.SIGKILL)
    with pytest.raises(Retryable, match="has ended"):
        await waits
    assert (await taken(bodies, large("y"))).alerts == 1000


async def test_who_goes_away_takes_no_other_answer_along(bodies: Bodies) -> None:
    await taken(bodies, large())
    gone = asyncio.create_task(taken(bodies, large("y")))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    assert await taken(bodies, large("z")) == take(large("z"), source="am", at=AT)


async def test_a_source_that_floods_has_one_turn_for_each_of_the_others(bodies: Bodies) -> None:
    done: list[str] = []

    async def one(source: str) -> None:
        await taken(bodies, large(), source)
        done.append(source)

    flood = [asyncio.create_task(one("noise")) for _ in range(6)]
    await asyncio.sleep(0)
    await asyncio.gather(one("shop"), *flood)
    assert done.index("shop") <= 1, done


async def test_a_source_has_a_quarter_of_the_posts_that_are_taken_at_once() -> None:
    assert Receiver().posts_of_a_source == Receiver().posts_at_once / 4
    before = counted("reactor_webhook_limits_exceeded_total", limit="postsOfASource")
    async with reception(posts_of_a_source=3) as receiver:
        slow = SlowBus(receiver.bus)
        receiver.server.bus = slow
        async with asyncio.TaskGroup() as group:
            flood = [group.create_task(receiver.post(body(alert(f"{one:016x}")))) for one in range(3)]
            while receiver.server._posts["am"] < 3:
                await asyncio.sleep(0.001)
            code, answer = await receiver.post(body(alert()))
            assert (code, "3 posts of this source" in answer["error"]) == (503, True)
            other = group.create_task(receiver.post(body(alert()), to="/v1/alerts/team.ops"))
            while not receiver.server._posts["team.ops"]:
                await asyncio.sleep(0.001)
            slow.go.set()
        assert [one.result()[0] for one in (*flood, other)] == [200] * 4
    assert counted("reactor_webhook_limits_exceeded_total", limit="postsOfASource") == before + 1


async def test_what_a_source_posts_beyond_its_pace_waits_at_the_door_and_others_go_past_it() -> None:
    most = Receiver().alerts_at_once
    burst = [alert(f"{one:016x}", text="x" * 300) for one in range(most)]
    async with reception(alerts_per_second=1000) as receiver:
        flood = asyncio.create_task(receiver.post(body(*burst, *(alert(f"{one:016x}") for one in range(most, 6500)))))
        while not (stored := sum(len(post.alerts) for post in await receiver.journal())):
            await asyncio.sleep(0.01)
        assert stored <= most
        assert not flood.done()
        assert (await receiver.post(body(alert()), to="/v1/alerts/team.ops"))[0] == 200
        assert not flood.done(), "it waits for more than a second"
        assert await flood == (200, {"taken": 6500, "quarantined": 0})
        assert stored + sum(len(post.alerts) for post in await receiver.journal()) == 6501


async def test_how_much_a_source_posts_at_once_is_a_setting() -> None:
    async with reception(alerts_per_second=100, alerts_at_once=10) as receiver:
        assert (await receiver.post(body(*(alert(f"{one:016x}") for one in range(10)))))[0] == 200
        waits = asyncio.create_task(receiver.post(body(*(alert(f"{one:016x}") for one in range(10, 15)))))
        assert (await receiver.post(body(alert()), to="/v1/alerts/team.ops"))[0] == 200
        assert not waits.done()
        assert (await waits)[0] == 200


async def test_a_source_that_owes_a_minute_is_told_to_come_again() -> None:
    before = counted("reactor_webhook_limits_exceeded_total", limit="alertsPerSecond")
    async with reception(alerts_per_second=100) as receiver:
        flood = asyncio.create_task(receiver.post(body(*(alert(f"{one:016x}") for one in range(10_000)))))
        while not (bucket := receiver.server._buckets.get("am")):
            await asyncio.sleep(0.01)
        bucket.take(7000, asyncio.get_running_loop().time())
        code, answer = await receiver.post(body(alert()))
        assert (code, "faster than 100 a second" in answer["error"]) == (503, True)
        assert (await receiver.post(body(alert()), to="/v1/alerts/team.ops"))[0] == 200
        flood.cancel()
        await asyncio.gather(flood, return_exceptions=True)
    assert counted("reactor_webhook_limits_exceeded_total", limit="alertsPerSecond") == before + 1


async def test_what_routers_have_enough_of_waits_at_the_door(receiver: Reception) -> None:
    """Their hands are what windows wait for."""
    in_hands = receiver.server._in_hands = Counter({subjects.webhook("am"): IN_HANDS_MAX})
    waits = asyncio.create_task(receiver.post(body(alert())))
    assert (await receiver.post(body(alert()), to="/v1/alerts/team.ops"))[0] == 200
    assert not waits.done()
    in_hands.clear()
    assert (await waits)[0] == 200
