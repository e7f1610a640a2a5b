"""Authentication of posts."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from reactor.runtime.errors import SettingsError
from reactor.settings.receiver_settings import Receiver
from reactor.webhook.auth import Guard, tls


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    return Guard(
        Receiver(
            bearer_token_files=(write(tmp_path / "old", "old-token\n"), write(tmp_path / "new", "new-token")),
            basic_user="am", basic_password_file=write(tmp_path / "password", "päss:word\n"),
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    ("header", "admitted"),
    [
        ("Bearer old-token", True), ("Bearer new-token", True), ("bearer  new-token ", True),
        (basic("am:päss:word"), True),
        (None, False), ("", False), ("Bearer", False), ("Bearer ", False), ("Bearer other", False),
        ("old-token", False), ("Token old-token", False), ("Bearer old-token new-token", False),
        ("Bearer \udcff", False), (basic("am:wrong"), False), (basic("other:päss:word"), False), (basic(""), False),
        ("Basic ***", False), ("Basic é", False), (basic("old-token"), False), ("Bearer am:päss:word", False),
    ],
)  # fmt: skip
def test_only_a_known_secret_opens_the_door(guard: Guard, header: str | None, admitted: bool) -> None:
    assert guard.admits(header, certificate=False) is admitted


def test_the_challenge_names_both_ways(guard: Guard) -> None:
    assert guard.challenge == 'Bearer realm="alert-reactor", Basic realm="alert-reactor"'


def test_without_settings_every_client_on_loopback_may_post() -> None:
    assert Guard(Receiver()).admits(None, certificate=False)


def test_a_token_is_read_again_when_its_file_changes(tmp_path: Path) -> None:
    path = write(tmp_path / "token", "before")
    guard = Guard(Receiver(bearer_token_files=(path,)))
    write(tmp_path / "next", "after").replace(path)  # as Kubernetes swaps a mounted Secret
    assert guard.admits("Bearer after", certificate=False)
    assert not guard.admits("Bearer before", certificate=False)


def test_a_token_file_that_is_away_or_empty_for_a_moment_locks_no_client_out(tmp_path: Path) -> None:
    path = write(tmp_path / "token", "secret")
    guard = Guard(Receiver(bearer_token_files=(path,)))
    path.unlink()
    assert guard.admits("Bearer secret", certificate=False)
    path.write_text("")
    assert guard.admits("Bearer secret", certificate=False)
    assert not guard.admits("Bearer ", certificate=False)
    path.write_text("next")
    assert guard.admits("Bearer next", certificate=False)


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_a_missing_or_empty_secret_is_an_error_at_the_start(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "token"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SettingsError, match="token"):
        Guard(Receiver(bearer_token_files=(path,)))


def test_with_a_client_ca_a_certificate_is_needed_and_a_token_too_where_one_is_set(tmp_path: Path) -> None:
    pem = write(tmp_path / "pem", "x")
    only = Guard(Receiver(tls_cert_file=pem, tls_key_file=pem, client_ca_file=pem))
    assert only.admits(None, certificate=True)
    assert not only.admits(None, certificate=False)
    both = Guard(Receiver(tls_cert_file=pem, tls_key_file=pem, client_ca_file=pem, bearer_token_files=(pem,)))
    assert both.admits("Bearer x", certificate=True)
    assert not both.admits("Bearer x", certificate=False)
    assert not both.admits(None, certificate=True)


def test_a_certificate_that_is_none_is_an_error_at_the_start(tmp_path: Path) -> None:
    pem = write(tmp_path / "pem", "no certificate")
    with pytest.raises(SettingsError, match="tlsCertFile"):
        tls(Receiver(tls_cert_file=pem, tls_key_file=pem))
    assert tls(Receiver()) is None
