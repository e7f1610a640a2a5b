"""Answers of the receiver, and that 200 means journaled."""

from __future__ import annotations

import asyncio
import gzip
import logging
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from bus.errors import Unavailable
from reactor.runtime import telemetry
from reactor.runtime.errors import SettingsError
from reactor.webhook import receiver as role
from reactor.webhook.receiver import listening
from tests.integration.webhook.reception import Reception, SlowBus, reception
from tests.steps import step_limit, steps_measured
from tests.unit.webhook.builders import alert, body, counted
from tests.unit.webhook.test_body import BAD

ONE = body(alert())


@pytest.mark.parametrize("path", ["/v1/alerts/am", "/v1/alerts/am/", "/v1/alerts/team.ops"])
async def test_a_post_is_in_the_journal_when_it_is_answered(receiver: Reception, path: str) -> None:
    assert await receiver.post(ONE, to=path) == (200, {"taken": 1, "quarantined": 0})
    (post,) = await receiver.journal()
    assert post.source == path.strip("/").rpartition("/")[2]
    assert (post.chunks, post.observed_at) == (1, receiver.clock.now())
    assert post.alerts[0] == alert() | {"endsAt": None}


@pytest.mark.parametrize("path", ["/v1/alerts/am", "/v1/alerts/am/"])
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD"])
async def test_only_post_is_answered_and_never_by_a_redirect(receiver: Reception, method: str, path: str) -> None:
    async with receiver.session.request(method, receiver.url + path, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Allow"]) == (405, "POST")
        assert method == "HEAD" or "error" in await answer.json()


@pytest.mark.parametrize(
    "path", ["/", "/v1/alerts", "/v1/alerts/", "//v1/alerts/am", "/v1/alerts/am/x", "/v2/alerts/am"]
)
async def test_a_path_that_is_none_is_404_and_no_redirect(receiver: Reception, path: str) -> None:
    code, answer = await receiver.post(ONE, to=path)
    assert (code, "error" in answer) == (404, True)


async def test_an_unknown_source_is_told_the_known_ones_and_makes_no_time_series(receiver: Reception) -> None:
    before = counted("reactor_webhook_posts_total", source="unknown", code="404")
    code, answer = await receiver.post(ONE, to="/v1/alerts/stranger")
    assert code == 404
    assert "am, team.ops" in answer["error"]
    assert counted("reactor_webhook_posts_total", source="unknown", code="404") == before + 1
    assert counted("reactor_webhook_posts_total", source="stranger", code="404") == 0


@pytest.mark.parametrize(("raw", "code"), BAD.values(), ids=BAD)
async def test_bad_input_ends_in_a_clear_answer(receiver: Reception, raw: bytes, code: int) -> None:
    started = time.process_time()
    got, answer = await receiver.post(raw)
    assert (got, list(answer)) == (code, ["error"])
    assert time.process_time() - started < 1
    assert (await receiver.post(ONE))[0] == 200


async def test_one_bad_alert_costs_only_itself_and_is_logged_once(
    receiver: Reception, caplog: pytest.LogCaptureFixture
) -> None:
    before = counted("reactor_webhook_alerts_total", source="am", fate="quarantined")
    raw = body(alert("a"), alert(cluster="x\0y"), alert("b"))
    assert await receiver.post(raw) == (200, {"taken": 2, "quarantined": 1})
    await receiver.post(raw)
    assert counted("reactor_webhook_alerts_total", source="am", fate="quarantined") == before + 2
    assert [record.getMessage() for record in caplog.records].count("alerts are quarantined") == 1
    assert [one["fingerprint"] for one in (await receiver.journal())[0].alerts] == ["a", "b"]


async def test_alerts_that_are_null_are_answered_200(receiver: Reception) -> None:
    before = counted("reactor_webhook_posts_total", source="am", code="200")
    assert (await receiver.post(b'{"version":"4","alerts":null}'))[0] == 200
    assert (await receiver.post(b"{}"))[0] == 200
    assert counted("reactor_webhook_posts_total", source="am", code="200") == before + 2
    assert await receiver.journal() == []


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Encoding": "gzip"}, {"Content-Encoding": "deflate"}, {"Content-Encoding": "br"},
        {"Content-Type": "text/plain"}, {"Content-Type": "application/x-www-form-urlencoded"},
    ],
)  # fmt: skip
async def test_compressed_bodies_and_other_types_are_415(receiver: Reception, headers: dict[str, str]) -> None:
    raw = gzip.compress(b" " * 1_000_000) if headers.get("Content-Encoding") == "gzip" else ONE
    assert (await receiver.post(raw, headers=headers))[0] == 415


async def test_json_with_a_charset_is_taken(receiver: Reception) -> None:
    assert (await receiver.post(ONE, headers={"Content-Type": "application/json; charset=utf-8"}))[0] == 200


async def test_a_body_over_the_limit_is_413_whether_it_says_its_length_or_not() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(4):
            yield b" " * 1000

    async with reception(max_body_bytes=2048) as receiver:
        assert (await receiver.post(b" " * 2049))[0] == 413
        assert (await receiver.post(pieces()))[0] == 413
        assert (await receiver.post(ONE))[0] == 200


def exceeded(limit: str) -> float:
    return counted("reactor_webhook_limits_exceeded_total", limit=limit)


async def test_each_limit_of_a_post_is_answered_and_counted_by_its_name() -> None:
    three = body(alert("a"), alert("b"), alert("c"))
    async with reception(max_body_bytes=4096, max_alerts_per_post=2, body_seconds=0.5) as receiver:
        before = {name: exceeded(name) for name in ("maxBodyBytes", "maxAlertsPerPost", "depth", "bodySeconds")}
        assert (await receiver.post(b" " * 4097))[0] == 413
        assert (await receiver.post(three))[0] == 413
        assert (await receiver.post(b'{"x":' + b"[" * 1000))[0] == 400
        head = b"POST /v1/alerts/am HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        assert (await receiver.raw(head + b"Content-Length: 100\r\n\r\n{")).startswith(b"HTTP/1.1 408 ")
        assert {name: exceeded(name) - count for name, count in before.items()} == dict.fromkeys(before, 1)
        assert (await receiver.post(body(alert("a"), alert("b"))))[0] == 200


async def test_a_length_of_gigabytes_is_refused_before_the_body_comes(receiver: Reception) -> None:
    head = b"POST /v1/alerts/am HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    got = await receiver.raw(head + b"Content-Length: 10000000000\r\n\r\n{")
    assert got.startswith(b"HTTP/1.1 413 ")


async def test_two_lengths_are_400(receiver: Reception) -> None:
    head = b"POST /v1/alerts/am HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    got = await receiver.raw(head + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    assert got.startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 "))


async def test_a_slow_body_is_cut() -> None:
    async with reception(body_seconds=0.5) as receiver:
        head = b"POST /v1/alerts/am HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        got = await receiver.raw(head + b"Content-Length: 100\r\n\r\n{")
        assert got.startswith(b"HTTP/1.1 408 ")
        assert (await receiver.post(ONE))[0] == 200


async def test_slow_headers_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(role, "HEADER_SECONDS", 0.5)
    async with reception() as receiver:
        assert await receiver.raw(b"POST /v1/alerts/am HTTP/1.1\r\nHost: ") == b""
        assert (await receiver.post(ONE))[0] == 200


async def test_a_sender_that_leaves_mid_body_affects_no_other(receiver: Reception) -> None:
    head = b"POST /v1/alerts/am HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    await receiver.raw(head, close=True)
    assert (await receiver.post(ONE))[0] == 200


@pytest.mark.parametrize("key", ["token", "access_token", "api_key", "password", "Authorization", "secret", "key"])
async def test_a_secret_in_the_url_is_refused_and_never_logged(
    receiver: Reception, caplog: pytest.LogCaptureFixture, key: str
) -> None:
    caplog.set_level(logging.DEBUG)
    code, answer = await receiver.post(ONE, to=f"/v1/alerts/am?{key}=c4n4ry")
    assert code == 400
    assert "c4n4ry" not in str(answer)
    assert "c4n4ry" not in "".join(str(vars(record)) for record in caplog.records if record.name.startswith("reactor"))


async def test_a_stranger_is_401_and_learns_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "token").write_text("s3cret")
    async with reception(bearer_token_files=(tmp_path / "token",)) as receiver:
        async with receiver.session.post(receiver.url + "/v1/alerts/stranger", data=ONE) as answer:
            assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, 'Bearer realm="alert-reactor"')
            assert await answer.json() == {"error": "unauthorized"}
        assert (await receiver.post(ONE, headers={"Authorization": "Bearer wr0ng"}))[0] == 401
        assert await receiver.journal() == []
        assert (await receiver.post(ONE, headers={"Authorization": "Bearer s3cret"}))[0] == 200
        assert (await receiver.get("/livez"))[0] == 200
    assert "wr0ng" not in "".join(str(vars(record)) for record in caplog.records)


async def test_a_bus_that_is_down_is_503_and_the_retry_is_delivered(receiver: Reception) -> None:
    receiver.bus.down = True
    code, answer = await receiver.post(ONE)
    assert (code, "bus" in answer["error"]) == (503, True)
    receiver.bus.down = False
    assert (await receiver.post(ONE))[0] == 200
    assert len(await receiver.journal()) == 1


async def test_a_bus_that_does_not_confirm_in_time_is_503(receiver: Reception) -> None:
    receiver.server.journal_seconds = 0.05
    receiver.server.bus = SlowBus(receiver.bus)
    assert (await receiver.post(ONE))[0] == 503


async def test_starting_up_and_stopping_are_503(receiver: Reception) -> None:
    receiver.server.bus = None
    assert (await receiver.post(ONE))[0] == 503
    assert (await receiver.get("/readyz"))[0] == 503
    receiver.server.bus = receiver.bus
    receiver.server.stopping = True
    assert (await receiver.post(ONE))[0] == 503
    assert "stopping" in (await receiver.get("/readyz"))[1]


async def test_a_process_that_takes_no_posts_is_ready_without_a_bus_of_the_receiver(receiver: Reception) -> None:
    receiver.server.bus, receiver.server.sources = None, frozenset()
    assert (await receiver.get("/readyz"))[0] == 200
    assert (await receiver.post(ONE))[0] == 404


async def test_too_many_posts_at_once_are_503_and_never_429() -> None:
    async with reception(posts_at_once=4, posts_of_a_source=2) as receiver:
        slow = SlowBus(receiver.bus)
        receiver.server.bus = slow
        receiver.server.sources = frozenset(["a", "b", "am"])
        before = exceeded("postsAtOnce")
        async with asyncio.TaskGroup() as group:
            taken = [group.create_task(receiver.post(ONE, to=f"/v1/alerts/{name}")) for name in "aabb"]
            while receiver.server._posts.total() < 4:
                await asyncio.sleep(0)
            code, answer = await receiver.post(ONE)
            assert (code, answer["error"]) == (503, "4 posts are being taken already")
            slow.go.set()
        assert {task.result()[0] for task in taken} == {200}
        assert exceeded("postsAtOnce") == before + 1


async def test_a_post_that_is_being_taken_when_we_stop_is_still_journaled() -> None:
    async with aiohttp.ClientSession() as session, asyncio.TaskGroup() as group:
        async with reception() as receiver:
            slow = SlowBus(receiver.bus)
            receiver.server.bus = slow
            receiver.session, own = session, receiver.session
            await own.close()
            task = group.create_task(receiver.post(ONE))
            await slow.asked.wait()
            group.create_task(_let_go(receiver, slow))
        assert (await task)[0] == 200
    assert len(await receiver.journal()) == 1


async def _let_go(receiver: Reception, slow: SlowBus) -> None:
    while not receiver.server.stopping:
        await asyncio.sleep(0.001)
    slow.go.set()


@pytest.mark.alone
async def test_five_thousand_alerts_are_taken_in_half_a_second(receiver: Reception) -> None:
    raw = body(*(alert(f"{number:016x}", instance=f"pod-{number}", text="x" * 300) for number in range(5_000)))
    assert len(raw) > 2_900_000
    seconds = []
    for _ in range(3):  # the best of three: the machine may be busy
        started = time.perf_counter()
        assert await receiver.post(raw) == (200, {"taken": 5_000, "quarantined": 0})
        seconds.append(time.perf_counter() - started)
    assert min(seconds) < 0.5
    assert sum(len(post.alerts) for post in await receiver.journal()) == 5_000


async def test_we_live_while_a_large_body_is_read(receiver: Reception) -> None:
    """No probe waits for all of it, on a busy machine either. The best of three, as a ratio in one run."""
    raw = body(*(alert(f"{number:016x}", text="x" * 200) for number in range(20_000)))
    assert min([await longest_wait(receiver, raw) for _ in range(3)]) < 1 / 2


async def longest_wait(receiver: Reception, raw: bytes) -> float:
    """Give the longest wait for /livez while a body is taken, as a part of the time that it takes."""
    began, waits = time.perf_counter(), list[float]()
    async with asyncio.TaskGroup() as group:
        post = group.create_task(receiver.post(raw))
        while not post.done():
            started = time.perf_counter()
            assert (await receiver.get("/livez"))[0] == 200
            waits.append(time.perf_counter() - started)
    assert post.result()[0] == 200
    return max(waits) / (time.perf_counter() - began)


async def test_no_step_of_the_loop_takes_long_for_the_largest_body(receiver: Reception) -> None:
    raw = body(*(alert(f"{number:016x}", instance=f"pod-{number}", text="x" * 300) for number in range(50_000)))
    assert len(raw) > 0.9 * receiver.server.settings.max_body_bytes
    with steps_measured() as taken:
        assert await receiver.post(raw) == (200, {"taken": 50_000, "quarantined": 0})
    assert max(taken) < step_limit()
    assert sum(len(post.alerts) for post in await receiver.journal()) == 50_000


async def test_readiness_says_why_not_and_costs_the_bus_one_write_a_second(receiver: Reception) -> None:
    assert await receiver.get("/readyz") == (200, '{"ready": true}')
    receiver.bus.down = True
    assert (await receiver.get("/readyz"))[0] == 200
    assert receiver.asked_ready == 1
    receiver.clock.seconds += 1
    code, answer = await receiver.get("/readyz")
    assert (code, "bus" in answer) == (503, True)
    receiver.bus.down, receiver.unready = False, ["rules cannot be read"]
    receiver.clock.seconds += 1
    assert "rules cannot be read" in (await receiver.get("/readyz"))[1]


async def test_a_readiness_probe_that_never_answers_is_503(
    receiver: Reception, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("reactor.webhook.health_routes.ANSWER_SECONDS", 0.05)
    monkeypatch.setattr(receiver.bus, "probe", never)
    assert (await receiver.get("/readyz"))[0] == 503


async def test_metrics_are_there_and_count_posts(receiver: Reception) -> None:
    await receiver.post(ONE)
    code, text = await receiver.get("/metrics")
    assert code == 200
    assert 'reactor_webhook_posts_total{code="200",source="am"}' in text
    assert 'reactor_webhook_seconds_bucket{le="0.5",source="am"}' in text


async def test_who_names_metrics_gets_these_alone(receiver: Reception) -> None:
    await receiver.post(ONE)
    code, text = await receiver.get("/metrics?name[]=reactor_webhook_posts_total&name[]=reactor_bus_up")
    assert code == 200
    assert 'reactor_webhook_posts_total{code="200",source="am"}' in text
    assert "reactor_bus_up" in text
    assert "reactor_webhook_seconds" not in text


async def test_an_address_that_is_taken_is_an_error_that_names_it(receiver: Reception) -> None:
    address = receiver.url.removeprefix("http://")
    with pytest.raises(SettingsError, match=address):
        async with reception(listen=address):
            pass


async def test_a_receiver_that_stopped_listens_no_more() -> None:
    async with reception() as one:
        server = one.server
    with pytest.raises(OSError, match="Connect call failed"):
        await one.raw(b"")
    server.stopping = False
    async with listening(server) as url:
        assert url


async def test_the_bus_in_memory_is_a_bus() -> None:
    async with reception() as one:
        one.bus.down = True
        with pytest.raises(Unavailable):
            await one.bus.probe()


NO_HTTP = (
    b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\n\x1b[2J: \x1b\r\n\r\n",
    b"\x16\x03\x01" + b"\xff" * 100 + b"\r\n\r\n",
    b"POST /v1/alerts/am HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n",
)  # fmt: skip


async def test_what_is_no_http_is_counted_and_fills_no_log(
    receiver: Reception, caplog: pytest.LogCaptureFixture
) -> None:
    host, port = receiver.url.removeprefix("http://").split(":")
    before = telemetry.malformed_requests._value.get()
    for raw in NO_HTTP * 10:
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(raw)
        assert (await reader.read(100)).startswith(b"HTTP/1.0 400")
        writer.close()
    assert telemetry.malformed_requests._value.get() - before >= 10
    told = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(told) <= 2
    assert not any(record.exc_info for record in told)
