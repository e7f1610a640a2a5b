"""Telling people: over real HTTP, by servers that answer badly."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from pydantic import SecretStr

from bus.messages import Notify, Outcome
from reactor.actions.notify.notify import NotifiedLog, carry_out
from reactor.runtime.clock import Clock
from reactor.settings.notifier_settings import Notifier
from tests.unit.actions.builders import notify

SECRET = "T0K3N"


@dataclass
class Inbox:
    """A server that keeps what is posted, and answers as told: first the given codes, then 200."""

    url: str = ""
    codes: list[int] = field(default_factory=list)
    posts: list[tuple[str, bytes]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    authorized: list[str] = field(default_factory=list)
    hang: bool = False

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.posts.append((request.content_type, await request.read()))
        self.paths.append(request.path)
        self.authorized.append(request.headers.get("Authorization", ""))
        if self.hang:
            await asyncio.get_running_loop().create_future()
        code = self.codes.pop(0) if self.codes else 200
        return web.Response(status=code, headers={"Location": f"{self.url}/elsewhere"} if code == 302 else {})

    @property
    def notifier(self) -> Notifier:
        return Notifier(kind="webhook", url=SecretStr(f"{self.url}/{SECRET}"))


@pytest.fixture
async def inbox() -> AsyncIterator[Inbox]:
    box = Inbox()
    runner = web.ServerRunner(web.Server(box.answer, handler_cancellation=True), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    box.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield box
    await runner.cleanup()


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@dataclass
class Teller:
    http: aiohttp.ClientSession
    notifiers: dict[str, Notifier]
    told: NotifiedLog = field(default_factory=NotifiedLog)

    async def __call__(self, action: Notify) -> Outcome:
        return await carry_out(action, Clock(), notifiers=self.notifiers, http=self.http, told=self.told)


@pytest.fixture
def tell(inbox: Inbox, http: aiohttp.ClientSession) -> Teller:
    slack = Notifier(kind="slack", url=SecretStr(f"{inbox.url}/{SECRET}"))
    return Teller(http, {"ops": inbox.notifier, "chat": slack, "log": Notifier()})


async def test_each_receiver_is_told_once(inbox: Inbox, tell: Teller) -> None:
    outcome = await tell(notify("ops", "chat", "ops"))
    assert (outcome.status, outcome.wrote) == ("Done", True)
    assert sorted(kind for kind, _ in inbox.posts) == ["application/cloudevents+json", "application/json"]


async def test_a_repeat_tells_no_receiver_again(inbox: Inbox, tell: Teller) -> None:
    outcomes = [await tell(notify("ops")) for _ in range(2)]
    assert [(outcome.status, outcome.wrote) for outcome in outcomes] == [("Done", True), ("Done", False)]
    assert len(inbox.posts) == 1


async def test_the_log_gets_the_message(tell: Teller, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        outcome = await tell(notify("log", message="checkout is down"))
    assert (outcome.status, [record.getMessage() for record in caplog.records]) == ("Done", ["checkout is down"])


async def test_a_misspelt_name_is_reported_and_the_others_are_told(inbox: Inbox, tell: Teller) -> None:
    outcome = await tell(notify("opps", "ops"))
    assert (outcome.status, outcome.reason, len(inbox.posts)) == ("Failed", "UnknownNotifier", 1)
    assert "notifiers.opps" in outcome.detail
    tell.notifiers["opps"] = Notifier()
    assert (await tell(notify("opps", "ops"))).status == "Done"
    assert len(inbox.posts) == 1


@pytest.mark.parametrize("code", [429, 500, 503])
async def test_a_notifier_that_is_busy_is_asked_again(inbox: Inbox, tell: Teller, code: int) -> None:
    inbox.codes = [code, code]
    outcome = await tell(notify("ops"))
    assert (outcome.status, len(inbox.posts)) == ("Done", 3)


async def test_a_notifier_that_stays_down_is_reported_after_three_tries(inbox: Inbox, tell: Teller) -> None:
    inbox.codes = [500] * 9
    outcome = await tell(notify("ops"))
    assert (outcome.status, outcome.reason, len(inbox.posts)) == ("Failed", "NotifierUnavailable", 3)


@pytest.mark.parametrize("code", [302, 400, 404])
async def test_a_refusal_is_not_repeated_and_a_redirect_not_followed(inbox: Inbox, tell: Teller, code: int) -> None:
    inbox.codes = [code]
    outcome = await tell(notify("ops"))
    assert (outcome.status, outcome.reason, len(inbox.posts)) == ("Failed", "NotifierRefused", 1)


async def test_a_notifier_that_hangs_is_given_up(inbox: Inbox, tell: Teller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reactor.actions.notify.posting.TIMEOUT_SECONDS", 0.1)
    inbox.hang = True
    outcome = await tell(notify("ops"))
    assert (outcome.status, outcome.reason, len(inbox.posts)) == ("Failed", "NotifierUnavailable", 3)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/T0K3N", "nonsense-T0K3N", "http://[T0K3N", "ftp://127.0.0.1/T0K3N"]
)
async def test_no_log_and_no_outcome_says_a_url(
    http: aiohttp.ClientSession, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    tell = Teller(http, {"ops": Notifier(kind="webhook", url=SecretStr(url))})
    with caplog.at_level(logging.DEBUG):
        outcome = await tell(notify("ops"))
    assert outcome.status == "Failed"
    everything = [outcome.model_dump_json(), *(json.dumps(record.__dict__, default=repr) for record in caplog.records)]
    assert [text for text in everything if SECRET in text] == []


async def test_a_url_file_is_read_every_time(inbox: Inbox, http: aiohttp.ClientSession, tmp_path: Path) -> None:
    path = tmp_path / "url"
    tell = Teller(http, {"ops": Notifier(kind="slack", url_file=path)})
    missing = await tell(notify("ops"))
    path.write_text(f"{inbox.url}/{SECRET}\n")
    mended = await tell(notify("ops"))
    assert [(missing.status, missing.reason), (mended.status, mended.reason)] == [
        ("Failed", "UrlUnreadable"),
        ("Done", None),
    ]


async def test_a_dry_run_tells_no_receiver(inbox: Inbox, tell: Teller) -> None:
    outcome = await tell(notify("ops", mode="DryRun"))
    assert (outcome.status, outcome.reason, inbox.posts) == ("Refused", "DryRun", [])


async def test_without_receivers_no_message_is_sent(tell: Teller) -> None:
    outcome = await tell(notify())
    assert (outcome.status, outcome.wrote) == ("Done", False)


@pytest.mark.parametrize(
    ("kind", "path"), [("pagerduty", "/v2/enqueue"), ("opsgenie", "/v2/alerts"), ("alertmanager", "/api/v2/alerts")]
)
async def test_incidents_are_posted_where_each_kind_takes_them(
    kind: str, path: str, inbox: Inbox, http: aiohttp.ClientSession, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    key.write_text(f"{SECRET}\n")
    given = {"kind": kind, "url": f"{inbox.url}/"} | ({} if kind == "alertmanager" else {"key_file": key})
    outcome = await carry_out(
        notify("oncall"), Clock(), notifiers={"oncall": Notifier.model_validate(given)}, http=http, told=NotifiedLog()
    )  # fmt: skip
    assert outcome.status == "Done"
    assert inbox.paths == [path]
    assert inbox.posts[0][0] == "application/json"
    assert inbox.authorized == ([f"GenieKey {SECRET}"] if kind == "opsgenie" else [""])
    assert (SECRET.encode() in inbox.posts[0][1]) is (kind == "pagerduty")


async def test_a_key_that_cannot_be_read_is_told_without_it(
    inbox: Inbox, http: aiohttp.ClientSession, tmp_path: Path
) -> None:
    missing = Notifier.model_validate({"kind": "pagerduty", "url": inbox.url, "key_file": tmp_path / "none"})
    outcome = await carry_out(notify("oncall"), Clock(), notifiers={"oncall": missing}, http=http, told=NotifiedLog())
    assert (outcome.status, outcome.reason) == ("Failed", "UrlUnreadable")
    assert "notifiers.oncall.keyFile" in outcome.detail
    assert inbox.posts == []
