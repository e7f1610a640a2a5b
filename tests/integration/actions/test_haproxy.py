"""SetWeights on a real HAProxy: what is written, read back, refused, and the results of crashes and other writers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from reactor.actions.execution import ExecutionContext
from reactor.actions.traffic.balancer_weights import carry_out
from reactor.clients.balancers.haproxy import HAProxy as Client
from reactor.clients.kubernetes_port import ApiUnavailable, Forbidden, Invalid, NotFound
from reactor.runtime.clock import Clock
from reactor.settings.balancer_settings import HAProxySettings as Settings
from tests.e2e.haproxy import HAProxy
from tests.integration.actions.balancing import Crash, Meddled, once, set_weights
from tests.ports import free_port
from tests.serving import serving

HOME, AWAY = {"here": 1, "there": 0}, {"here": 0, "there": 1}
NOBODY = {"here": "127.0.0.1:1", "there": "127.0.0.1:2", "spare": "127.0.0.1:3"}


@pytest.fixture
async def haproxy(tmp_path: Path) -> AsyncIterator[HAProxy]:
    async with HAProxy(tmp_path / "haproxy", NOBODY) as running:
        yield running


async def test_what_is_read_is_the_current_weight_and_what_is_configured(haproxy: HAProxy) -> None:
    await haproxy.put(here=5, spare=7)
    found = await haproxy.client.read()
    assert (found.by_name, found.configured) == (
        {"here": 5, "there": 0, "spare": 7}, {"here": 1, "there": 0, "spare": 0},
    )  # fmt: skip
    assert found.life
    assert (await haproxy.client.read()).life == found.life
    await haproxy.reload()
    again = await haproxy.client.read()
    assert again.life != found.life
    assert again.by_name == again.configured


async def test_it_writes_once_and_leaves_the_others_alone(haproxy: HAProxy) -> None:
    await haproxy.put(spare=3)
    balancer = Meddled(haproxy.client)
    outcome = await carry_out(balancer, set_weights(AWAY), Clock(), ExecutionContext())
    assert (outcome.status, outcome.wrote, outcome.detail) == ("Done", True, "here 1→0, there 0→1")
    again = await carry_out(balancer, set_weights(AWAY), Clock(), ExecutionContext())
    assert (again.status, again.wrote) == ("Done", False)
    assert balancer.writes == [AWAY]
    assert await haproxy.weights() == {**AWAY, "spare": 3}


async def test_tcp_is_as_good_as_a_unix_socket(haproxy: HAProxy) -> None:
    settings = Settings(kind="HAProxy", address=f"127.0.0.1:{haproxy.tcp}", backend="web")
    outcome = await carry_out(Client("edge", settings), set_weights(AWAY), Clock(), ExecutionContext())
    assert (outcome.status, outcome.wrote) == ("Done", True)
    assert await haproxy.weights() == {**AWAY, "spare": 0}


@pytest.mark.parametrize(("before", "after"), [(0, None), (None, 0), (1, None), (None, 1)])
async def test_a_crash_at_each_write_leaves_it_to_the_next_to_end_what_was_begun(
    haproxy: HAProxy, before: int | None, after: int | None
) -> None:
    meddler = once(lambda: haproxy.put(here=9))  # so that there is a second write
    balancer = Meddled(haproxy.client, before, after, after_write=meddler)
    with pytest.raises(Crash):
        await carry_out(balancer, set_weights(AWAY), Clock(), ExecutionContext())
    next_one = Meddled(haproxy.client)
    outcome = await carry_out(next_one, set_weights(AWAY), Clock(), ExecutionContext())
    assert outcome.status == "Done"
    assert {name: (await haproxy.weights())[name] for name in AWAY} == AWAY
    assert len(next_one.writes) == (0 if after == 1 else 1)


async def test_another_writer_is_overwritten_once_and_told_of(
    haproxy: HAProxy, caplog: pytest.LogCaptureFixture
) -> None:
    balancer = Meddled(haproxy.client, after_write=once(lambda: haproxy.put(here=9)))
    with caplog.at_level(logging.WARNING):
        outcome = await carry_out(balancer, set_weights(AWAY), Clock(), ExecutionContext())
    assert (outcome.status, outcome.wrote) == ("Done", True)
    assert "another writer had made it here=9, there=1, spare=0, and was overwritten once" in outcome.detail
    assert "another writer was overwritten" in caplog.text
    assert len(balancer.writes) == 2


async def test_one_who_does_not_stop_is_not_fought_with(haproxy: HAProxy) -> None:
    balancer = Meddled(haproxy.client, after_write=lambda: haproxy.put(here=9))
    outcome = await carry_out(balancer, set_weights(AWAY), Clock(), ExecutionContext())
    assert (outcome.status, outcome.reason) == ("Failed", "NotAsAsked")
    assert "another writer changes it too" in outcome.detail
    assert len(balancer.writes) == 2


async def test_the_weights_are_never_all_zero(haproxy: HAProxy) -> None:
    lines: list[str] = []

    class Overheard(Client):
        async def _exchange(self, line: str) -> str:
            lines.append(line)
            return await super()._exchange(line)

    settings = Settings(kind="HAProxy", socket=haproxy.socket, backend="web")
    for weights in (AWAY, HOME):
        assert (
            await carry_out(Overheard("edge", settings), set_weights(weights), Clock(), ExecutionContext())
        ).status == "Done"
    assert [line for line in lines if "set" in line] == [
        "set weight web/there 1; set weight web/here 0", "set weight web/here 1; set weight web/there 0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("weights", "reason", "why"),
    [
        ({"here": 0, "nobody": 1}, "BackendMissing", "it has: here, there, spare"),
        ({"here": 0, "there": 0}, "AllZero", "never left with all weights zero"),
        ({"here": 0, "there": 257}, "Invalid", "0 to 256"),
    ],
)
async def test_what_cannot_be_is_not_written(haproxy: HAProxy, weights: dict[str, int], reason: str, why: str) -> None:
    outcome = await carry_out(haproxy.client, set_weights(weights), Clock(), ExecutionContext())
    assert (outcome.reason, outcome.wrote) == (reason, False)
    assert why in outcome.detail
    assert await haproxy.weights() == {**HOME, "spare": 0}


async def test_an_algorithm_that_takes_no_weights_says_so(haproxy: HAProxy) -> None:
    haproxy.configure({**HOME, "spare": 0}, balance="static-rr")
    await haproxy.reload()
    outcome = await carry_out(haproxy.client, set_weights({"here": 0, "there": 9}), Clock(), ExecutionContext())
    assert outcome.reason == "Invalid"
    assert "static LB algorithm" in outcome.detail


async def test_what_is_not_there_is_said_to_be(haproxy: HAProxy, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="Can't find backend"):
        await Client("edge", Settings(kind="HAProxy", socket=haproxy.socket, backend="other")).read()
    with pytest.raises(ApiUnavailable, match="No such file"):
        await Client("edge", Settings(kind="HAProxy", socket=tmp_path / "none", backend="web")).read()
    with pytest.raises(ApiUnavailable):
        await Client("edge", Settings(kind="HAProxy", address=f"127.0.0.1:{free_port()}", backend="web")).read()


@pytest.mark.parametrize(
    ("answer", "error", "why"),
    [
        (b"Permission denied\n", Forbidden, "level admin"),
        (b"", ApiUnavailable, "without an answer"),
        (b"Pid: 1\n\nwhat?\n", Invalid, "what?"),
        (b"Pid: 1\n\n1\n# srv_name srv_uweight srv_iweight\na x 1\n", Invalid, "cannot be read"),
        (b"x" * (2 << 20), Invalid, "more than"),
        (None, ApiUnavailable, "no answer within"),
    ],
)
async def test_a_server_on_tcp_that_answers_oddly_or_never_delays_no_other(
    answer: bytes | None, error: type[Exception], why: str
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        with suppress(ConnectionError):
            if answer is not None:
                writer.write(answer)
            else:
                await reader.read()  # until the other side goes away
            writer.close()
            await writer.wait_closed()
        served.set()

    served = asyncio.Event()
    async with serving(serve) as port:
        settings = Settings(kind="HAProxy", address=f"127.0.0.1:{port}", backend="web", timeout_seconds=0.5)
        with pytest.raises(error, match=why):
            await Client("edge", settings).read()
        await served.wait()
