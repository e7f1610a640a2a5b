"""Telling people by e-mail: by a real SMTP session, over TLS, to servers that answer badly."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bus.messages import Notify, Outcome
from reactor.actions.notify.notify import NotifiedLog, carry_out
from reactor.runtime.clock import Clock
from reactor.settings.notifier_settings import Notifier
from tests.integration.actions.smtp_server import SmtpServer, smtp
from tests.integration.bus.authority import certificates
from tests.unit.actions.builders import notify

SECRET = "p4ssw0rd"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("authority")
    certificates(folder)
    return folder


def served(folder: Path, who: str = "server") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{who}.pem", folder / f"{who}.key")
    return context


async def tell(
    server: SmtpServer, action: Notify | None = None, told: NotifiedLog | None = None, **email: Any
) -> Outcome:
    given = {
        "host": "127.0.0.1", "port": server.port, "tls": "None", "from": "Alert reactor <reactor@example.com>",
        "to": ["Ann <ann@example.com>", "bob@example.com"], **email,
    }  # fmt: skip
    notifier = Notifier.model_validate({"kind": "email", "email": given})
    async with aiohttp.ClientSession() as http:
        return await carry_out(
            action or notify("mail"), Clock(), notifiers={"mail": notifier}, http=http,
            told=told if told is not None else NotifiedLog(),
        )  # fmt: skip


async def test_a_mail_says_what_why_how_long_and_what_to_type() -> None:
    action = notify("mail", message="checkout holds: ä", because="AwaitingApproval")
    async with smtp() as server:
        outcome = await tell(server, action)
    [mail] = server.mails
    assert (outcome.status, outcome.wrote, mail.sender) == ("Done", True, "reactor@example.com")
    assert mail.to == ["ann@example.com", "bob@example.com"]
    read = mail.message
    assert read["From"] == "Alert reactor <reactor@example.com>"
    assert read["To"] == "Ann <ann@example.com>, bob@example.com"
    assert read["Subject"] == f"checkout: AwaitingApproval on {action.object}"
    assert read.get_content_type() == "text/plain"
    text = read.get_content().replace("\r\n", "\n")
    assert text.startswith("checkout holds: ä\n")
    assert "AwaitingApproval: a person has to approve it" in text
    assert "2026-01-01 00:00:00 UTC" in text
    assert f"  reactor approve checkout {action.object} --comment" in text
    assert f"  reactor reject checkout {action.object} --comment" in text


async def test_it_logs_in_over_starttls_with_the_password_of_a_file(authority: Path, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text(f"{SECRET}\n")
    asks: dict[str, Any] = {
        "tls": "StartTls",
        "ca_file": authority / "ca.pem",
        "user": "reactor",
        "password_file": password,
    }
    async with smtp(tls=served(authority), password=SECRET) as server:
        assert (await tell(server, **asks)).status == "Done"
        password.write_text("another one")
        refused = await tell(server, **asks)
    assert [(mail.encrypted, mail.login) for mail in server.mails] == [(True, ("reactor", SECRET))]
    assert (refused.status, refused.reason) == ("Failed", "NotifierRefused")
    assert "535" in refused.detail


async def test_tls_from_the_first_byte(authority: Path) -> None:
    async with smtp(tls=served(authority), implicit=True) as server:
        outcome = await tell(server, tls="Implicit", ca_file=authority / "ca.pem")
    assert (outcome.status, [mail.encrypted for mail in server.mails]) == ("Done", [True])


@pytest.mark.parametrize("implicit", [False, True])
async def test_a_server_with_a_certificate_of_another_ca_gets_nothing(authority: Path, implicit: bool) -> None:
    async with smtp(tls=served(authority, "stranger"), implicit=implicit) as server:
        outcome = await tell(server, tls="Implicit" if implicit else "StartTls", ca_file=authority / "ca.pem")
    assert (outcome.status, outcome.reason, server.mails) == ("Failed", "NotifierRefused", [])
    assert "its certificate is not trusted" in outcome.detail


async def test_a_server_that_does_not_offer_starttls_gets_neither_mail_nor_password(tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text(SECRET)
    async with smtp(password=SECRET) as server:
        outcome = await tell(server, tls="StartTls", user="reactor", password_file=password)
    assert (outcome.status, outcome.reason, server.mails) == ("Failed", "NotifierRefused", [])
    assert "STARTTLS" in outcome.detail


async def test_no_label_adds_a_header_or_a_recipient() -> None:
    evil = "shop\r\nBcc: eve@example.com\r\n\r\nlook here"
    text = "line\r\n.\r\nMAIL FROM:<eve@example.com>\r\n\x1b[2J"
    async with smtp() as server:
        action = notify("mail", message=text).model_copy(update={"object": f"service/east/{evil}"})
        outcome = await tell(server, action)
    assert outcome.status == "Done"
    [mail] = server.mails
    assert mail.to == ["ann@example.com", "bob@example.com"]
    assert mail.message["Bcc"] is None
    assert "Bcc: eve" in mail.message["Subject"]
    assert "\x1b" not in mail.message.get_content()


async def test_a_repeat_has_the_id_of_the_first_and_an_objects_mails_are_one_thread() -> None:
    async with smtp() as server:
        first, after = notify("mail"), notify("mail", id="another", resolves=True)
        for action in (first, first, after):
            assert (await tell(server, action)).status == "Done"
    one, again, other = (mail.message for mail in server.mails)
    assert one["Message-ID"] == again["Message-ID"] != other["Message-ID"]
    assert one["References"] == other["References"]
    assert other["Subject"].startswith("over: checkout")


async def test_a_busy_server_is_asked_again_for_those_only_who_have_not_got_it() -> None:
    async with smtp() as server:
        server.answers = {"CONNECT": ["421 busy"], "RCPT TO:<BOB": ["451 grey"]}
        outcome = await tell(server)
    assert outcome.status == "Done"
    assert [mail.to for mail in server.mails] == [["ann@example.com"], ["bob@example.com"]]


async def test_who_is_unknown_there_is_named_and_the_others_are_told() -> None:
    async with smtp() as server:
        server.answers = {"RCPT TO:<BOB": ["550 no such user"]}
        outcome = await tell(server)
    assert [mail.to for mail in server.mails] == [["ann@example.com"]]
    assert (outcome.status, outcome.reason) == ("Failed", "NotifierRefused")
    assert "bob@example.com: 550 no such user" in outcome.detail


@pytest.mark.parametrize(("answer", "reason"), [("554 spam", "NotifierRefused"), ("452 full", "NotifierUnavailable")])
async def test_a_mail_that_is_not_taken_is_reported(answer: str, reason: str) -> None:
    async with smtp() as server:
        server.answers = {"DATA": [answer] * 9}
        outcome = await tell(server)
    assert (outcome.status, outcome.reason, server.mails) == ("Failed", reason, [])
    assert server.sessions == (1 if reason == "NotifierRefused" else 3)


async def test_a_server_that_drips_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reactor.actions.notify.mailing.TIMEOUT_SECONDS", 0.5)
    async with smtp(drips=True) as server:
        outcome = await tell(server)
        async with asyncio.timeout(60):
            while server.ended < server.sessions:
                await asyncio.sleep(0.01)
    assert (outcome.status, outcome.reason, server.sessions) == ("Failed", "NotifierUnavailable", 3)


async def test_no_log_and_no_outcome_says_the_password(
    authority: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    password = tmp_path / "password"
    password.write_text(SECRET)
    asks: dict[str, Any] = {
        "tls": "StartTls",
        "ca_file": authority / "ca.pem",
        "user": "reactor",
        "password_file": password,
    }
    with caplog.at_level(logging.DEBUG):
        async with smtp(tls=served(authority), password="other") as server:
            outcome = await tell(server, **asks)
        password.unlink()
        missing = await tell(server, **asks)
    assert (outcome.reason, missing.reason) == ("NotifierRefused", "UrlUnreadable")
    assert "notifiers.mail.email.passwordFile" in missing.detail
    everything = [outcome.model_dump_json(), *(json.dumps(record.__dict__, default=repr) for record in caplog.records)]
    assert [text for text in everything if SECRET in text] == []
