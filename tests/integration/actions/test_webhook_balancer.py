"""SetWeights by signed POST: the example of the docs is the other side, as a process of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web

from reactor.actions.execution import ExecutionContext
from reactor.actions.outcomes import Declined
from reactor.actions.traffic.balancer_weights import carry_out
from reactor.clients.balancers.balancer_port import WeightChange
from reactor.clients.balancers.webhook_balancer import Webhook, signature
from reactor.clients.kubernetes_port import ApiUnavailable, Conflict, Forbidden, Invalid, NotFound
from reactor.runtime.clock import Clock
from reactor.runtime.errors import SettingsError
from reactor.settings.balancer_settings import WebhookSettings as Settings
from tests.e2e.weights_server import Server
from tests.integration.actions.balancing import Crash, Meddled, once, set_weights

HOME, AWAY = {"blue": 1, "green": 0}, {"blue": 0, "green": 1}
ASKED = set_weights(AWAY, "Webhook")


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with Server(tmp_path / "other-side") as running:
        yield running


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Webhook]:
    client = server.client()
    yield client
    await client.close()


async def test_it_is_read_and_written_once(client: Webhook) -> None:
    assert (await client.read()).by_name == HOME
    outcome = await carry_out(client, ASKED, Clock(), ExecutionContext())
    assert (outcome.status, outcome.wrote, outcome.detail) == ("Done", True, "blue 1→0, green 0→1")
    outcome = await carry_out(client, ASKED, Clock(), ExecutionContext())
    assert (outcome.status, outcome.wrote) == ("Done", False)
    found = await client.read()
    assert (found.by_name, found.version) == (AWAY, "2")


async def test_no_other_writer_is_overwritten_without_being_read(client: Webhook) -> None:
    async def other_writer() -> None:
        await client.write(await client.read(), WeightChange({"blue": 7, "green": 7}, "theirs", "theirs"))

    meddled = Meddled(client, before_write=once(other_writer))
    outcome = await carry_out(meddled, ASKED, Clock(), ExecutionContext())
    assert (outcome.status, outcome.detail) == ("Done", "blue 7→0, green 7→1")
    assert len(meddled.writes) == 2
    assert (await client.read()).version == "3"


@pytest.mark.parametrize("after", [False, True])
async def test_a_crash_at_the_write_leaves_one_change(client: Webhook, *, after: bool) -> None:
    crashing = Meddled(client, None if after else 0, 0 if after else None)
    with pytest.raises(Crash):
        await carry_out(crashing, ASKED, Clock(), ExecutionContext())
    outcome = await carry_out(client, ASKED, Clock(), ExecutionContext())
    assert (outcome.status, outcome.wrote) == ("Done", not after)
    assert ((await client.read()).by_name, (await client.read()).version) == (AWAY, "2")


async def test_an_answer_that_is_lost_changes_nothing_twice(client: Webhook) -> None:
    async def lost() -> None:
        raise ApiUnavailable("the answer was lost")

    outcome = await carry_out(Meddled(client, after_write=once(lost)), ASKED, Clock(), ExecutionContext())
    assert (outcome.status, outcome.wrote) == ("Done", True)
    assert (await client.read()).version == "2"


async def test_what_is_called_off_after_it_was_read_is_not_written(client: Webhook) -> None:
    async def no() -> None:
        raise Declined("CalledOff", "the decider wants something else")

    for own in (client, meddled := Meddled(client)):
        outcome = await carry_out(own, ASKED, Clock(), ExecutionContext(no))
        assert (outcome.status, outcome.reason) == ("Refused", "CalledOff")
    assert meddled.writes == []
    assert (await client.read()).version == "1"


async def test_the_same_change_sent_twice_has_one_key_and_happens_once(client: Webhook) -> None:
    seen = await client.read()
    change = WeightChange(AWAY, "web/edge/Webhook/edge/1", "key")
    assert (await client.write(seen, change)).version == "2"
    assert (await client.write(seen, change)).version == "2"
    with pytest.raises(Conflict):
        await client.write(seen, WeightChange(AWAY, "web/edge/Webhook/edge/2", "another"))


class Late(Clock):
    """Ten minutes behind."""

    def now(self) -> datetime:
        return super().now() - timedelta(minutes=10)


async def test_who_does_not_know_the_secret_or_comes_too_late_is_refused(server: Server, tmp_path: Path) -> None:
    for client in (server.client(secretFile=None, secret="other"), server.client(Late())):
        with pytest.raises(Forbidden, match="the same secret, and clocks that agree"):
            await client.read()
        await client.close()
    for file in (tmp_path / "none", tmp_path / "empty"):
        (tmp_path / "empty").write_text("\n")
        client = server.client(secretFile=file)
        with pytest.raises(SettingsError, match=r"loadBalancers\.edge\.secretFile"):
            await client.read()


def test_a_signature_is_good_for_one_method_one_path_one_body_and_one_time() -> None:
    signed = {
        signature(b"k", *words)
        for words in (
            ("1", "GET", "/w", b""), ("2", "GET", "/w", b""), ("1", "POST", "/w", b""), ("1", "GET", "/x", b""),
            ("1", "GET", "/w", b"a"),
        )
    }  # fmt: skip
    assert len(signed) == 5
    assert all(word.startswith("sha256=") and len(word) == 71 for word in signed)


async def test_a_rotated_secret_is_used_at_once(server: Server, client: Webhook) -> None:
    await client.read()
    server.secret.write_text("another")
    assert (await client.read()).by_name == HOME


@pytest.mark.parametrize(
    ("status", "body", "error", "why"),
    [
        (200, "{}", Invalid, "weights: Field required"),
        (200, '{"weights": {"a": 1}}', Invalid, "version: Field required"),
        (200, '{"weights": {"a": -1}, "version": "1"}', Invalid, "greater than or equal to 0"),
        (200, '{"weights": {"a": true}, "version": "1"}', Invalid, "valid integer"),
        (200, "<html>", Invalid, "not as documented"),
        (200, " " * 400_000, Invalid, "more than"),
        (302, "", Invalid, "answered 302"),
        (403, "no", Forbidden, "answered 403: no"),
        (404, "no", NotFound, "answered 404"),
        (429, "later", ApiUnavailable, "answered 429"),
        (503, "later", ApiUnavailable, "answered 503"),
    ],
)
async def test_odd_answers_are_told_as_what_they_are(
    status: int, body: str, error: type[Exception], why: str, tmp_path: Path
) -> None:
    async def answer(_: web.BaseRequest) -> web.Response:
        return web.Response(status=status, text=body, headers={"Location": "http://127.0.0.1:1/"})

    runner = web.ServerRunner(web.Server(answer, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    settings = Settings.model_validate({"kind": "Webhook", "url": f"http://{host}:{port}/", "secret": "k"})
    client = Webhook("edge", settings, Clock())
    try:
        with pytest.raises(error, match=why):
            await client.read()
    finally:
        await client.close()
        await runner.cleanup()
