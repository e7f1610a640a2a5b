"""Messages of commands about unusable settings, an absent bus, and the user that they run for."""

from __future__ import annotations

import getpass
import logging
import os
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from reactor.cli.main import cli
from reactor.cli.run import _settings
from reactor.cli.shared.asking import whoami
from reactor.process.session import connected
from reactor.settings.bus_settings import BusSettings

WORD = ("--comment", "why", "--yes")
ASKING = [
    ["pause", "*", *WORD], ["resume", "*", *WORD], ["approve", "r", *WORD], ["zone", "isolate", "r", "z", *WORD],
    ["zone", "failback", "r", *WORD], ["zone", "abort", "r", *WORD], ["zone", "retry", "r", *WORD],
]  # fmt: skip
LOOKING = [
    ["status"], ["zone", "list"], ["zone", "plan", "r", "z"], ["zone", "drill"], ["members"],
    ["bus", "init"], ["bus", "check"], ["bus", "status"],
    ["explain", "id"], ["replay"], ["audit", "verify"], ["audit", "export"],
]  # fmt: skip
OTHERS = [["run"], ["init"]]
NO_BUS = "nats://127.0.0.1:1"
RULES = """
apiVersion: reactor/v1
rules:
  - {name: r, kind: ZoneIsolation, cluster: prod, zones: [{name: z, id: z1}, {name: y, id: y1}, {name: x, id: x1}]}
"""


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder with one rule, without any user's settings."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("REACTOR_") or name == "KUBECONFIG"]:
        monkeypatch.delenv(name)
    Path("some.yaml").write_text(RULES)
    monkeypatch.setenv("REACTOR_RULE_FILES", '["some.yaml"]')
    monkeypatch.setenv("REACTOR_CLUSTERS", '{"prod": {}}')


def reactor(*words: str) -> Result:
    done = CliRunner().invoke(cli, list(words))
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def ids(words: list[str]) -> str:
    return " ".join(words[:2])


@pytest.mark.parametrize("words", [*ASKING, *LOOKING, *OTHERS], ids=ids)
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "bad.yaml: no such file"),
        (b"bus: {", "bad.yaml:1:7: not YAML"),
        (b"- a\n", "bad.yaml:1: settings are keys"),
        (b"\xff", "bad.yaml:1: not UTF-8"),
        (b"clusterz: {}\n", "bad.yaml:1:1: clusterz: there is no such key"),
    ],
)
def test_settings_that_cannot_be_used_are_one_line_and_exit_1(
    words: list[str], content: bytes | None, says: str
) -> None:
    if content is not None:
        Path("bad.yaml").write_bytes(content)
    done = reactor(*words, "-c", "bad.yaml")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith(f"reactor: {says}")
    assert len(done.stderr.splitlines()) == 1


def test_a_variable_that_cannot_be_read_is_one_line_and_exit_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTOR_RULE_FILES", "some.yaml")
    for words in (*ASKING, *LOOKING, ["run"]):
        done = reactor(*words)
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr.startswith("reactor: REACTOR_RULE_FILES: not JSON")


@pytest.mark.parametrize("words", [*ASKING, *LOOKING], ids=ids)
def test_where_no_bus_is_named_and_none_runs_it_says_how_to_name_one(words: list[str]) -> None:
    done = reactor(*words)
    assert done.stderr.startswith("reactor: no reactor runs here with an embedded bus")
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)


@pytest.mark.parametrize("words", [*ASKING, *LOOKING], ids=ids)
def test_a_bus_out_of_reach_is_said_once_and_is_exit_3(
    words: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def hasty(settings: BusSettings, url: str, name: str, **_: object) -> object:
        return connected(settings, url, name, patience=timedelta(seconds=0.1))

    monkeypatch.setattr("reactor.process.session.connected", hasty)
    done = reactor(*words, "--bus", NO_BUS)
    assert done.stderr.startswith("reactor: no NATS server at nats://127.0.0.1:1")
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert caplog.records == []
    assert logging.getLogger("bus").level == logging.NOTSET, "who goes on in this process is not silenced"


@pytest.mark.parametrize("error", [KeyError("getpwuid(): uid not found: 65532"), OSError("No username set")])
@pytest.mark.parametrize("words", ASKING, ids=ids)
def test_a_user_without_a_name_can_give_every_command(
    words: list[str], error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nameless() -> str:
        raise error

    monkeypatch.setattr(getpass, "getuser", nameless)
    done = reactor(*words)
    assert done.exit_code == 1
    assert done.stderr.startswith("reactor: no ")
    assert whoami().startswith(f"uid-{os.getuid()}@")


def test_a_kubeconfig_that_is_not_there_is_named_by_init() -> None:
    done = reactor("init", "--kubeconfig", "gone")
    assert done.exit_code == 1
    assert done.stderr == "reactor: cluster local: kubeconfig gone: no such file\n"
    Path("reactor.yaml").write_text("clusters: {east: {kubeconfig: gone}}")
    assert reactor("init", "-c", "reactor.yaml").stderr == "reactor: cluster east: kubeconfig gone: no such file\n"


@pytest.mark.parametrize("words", [*ASKING, *LOOKING, ["run"]], ids=ids)
@pytest.mark.parametrize("url", ["nats://127.0.0.1:port", "http://127.0.0.1:1", "nats://127.0.0.1:99999", ""])
def test_a_bus_url_that_is_none_is_a_wrong_command_line(words: list[str], url: str) -> None:
    done = reactor(*words, "--bus", url)
    assert done.exit_code == 2
    assert done.stderr.endswith("write nats://HOST:PORT (nats, tls, ws, wss); settings may list several\n")


def test_a_bus_url_of_the_settings_that_is_none_is_told_without_its_password() -> None:
    Path("reactor.yaml").write_text("bus:\n  url: ['nats://a:4222', 'nats://me:secret@a:port']\n")
    done = reactor("status", "-c", "reactor.yaml")
    assert done.exit_code == 1
    assert done.stderr == "reactor: reactor.yaml:2:3: bus.url: write nats://HOST:PORT, or a list of them\n"


def test_an_address_to_listen_on_goes_together_with_what_the_file_says_of_the_receiver() -> None:
    Path("reactor.yaml").write_text("receiver: {bearerTokenFiles: [token], maxBodyBytes: 2048}")
    wanted = _settings(Path("reactor.yaml"), rules=(), bus=None, listen="0.0.0.0:1", log_level=None).receiver
    assert (wanted.listen, wanted.bearer_token_files, wanted.max_body_bytes) == ("0.0.0.0:1", (Path("token"),), 2048)


@pytest.mark.parametrize("content", [b"bus: {", b"- a\n", b"\xff", b"clusterz: {}\n"])
def test_check_against_unusable_settings_is_a_wrong_command_line(content: bytes) -> None:
    Path("bad.yaml").write_bytes(content)
    done = reactor("check", "some.yaml", "--against", "-c", "bad.yaml")
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].startswith("Error: bad.yaml:1")


def test_explaining_an_alert_by_unusable_settings_is_one_line() -> None:
    Path("bad.yaml").write_text("bus: {")
    done = reactor("explain", "--match", 'a="b"', "-c", "bad.yaml")
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)


def test_what_waits_for_no_approval_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reactor.cli.approve.look", lambda *_: [])
    done = reactor("approve", "r", *WORD)
    assert (done.exit_code, done.stderr) == (
        1, "reactor: r waits for no approval: `reactor status` lists pending actions\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bus: {url: ''}", "reactor.yaml:1:7: bus.url: write nats://HOST:PORT, or a list of them"),
        ("bus: {url: ['']}", "reactor.yaml:1:7: bus.url: write nats://HOST:PORT, or a list of them"),
        ("bus: {url: []}", "reactor.yaml:1:7: bus.url: the list is empty"),
        ("bus: {url: 'nats://127.0.0.1:1', nkeySeedFile: seed}", "bus: nkeySeedFile: seed holds no seed of an nkey"),
        ("bus: {url: 'nats://127.0.0.1:1', credentials: seed}", "bus: credentials: seed is no .creds file"),
        ('bus: {store: "a\\0b"}', "reactor.yaml:1:7: bus.store: a path has no NUL character"),
        ("bus: {store: /dev/null/x}", "the bus's folder /dev/null/x cannot be used: Not a directory"),
        ("bus: " + "[" * 2000 + "]" * 2000, "reactor.yaml: nested too deep"),
    ],
)
def test_odd_settings_are_told_in_one_line_with_their_place(text: str, said: str) -> None:
    Path("seed").write_text("nonsense")
    Path("reactor.yaml").write_text(text + "\nreceiver: {listen: '127.0.0.1:0'}\n")
    done = reactor("run", "-c", "reactor.yaml")
    assert done.exit_code == 1
    [line] = [line for line in done.stderr.splitlines() if "level=info" not in line]
    assert line.startswith(f"reactor: {said}"), line


def test_what_is_no_file_among_rule_files_hangs_no_command() -> None:
    os.mkfifo("pipe.yaml")
    Path("endless.yaml").symlink_to("/dev/zero")
    for name in ("pipe.yaml", "endless.yaml"):
        done = reactor("check", name)
        assert (done.exit_code, "is no regular file" in done.output) == (1, True), done.output
