"""The settings: which names of the environment count, and what is said of a file that cannot be used."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from reactor.runtime.errors import SettingsError
from reactor.settings import model as settings
from reactor.settings.model import Settings

File = Callable[[str | bytes], Path]


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.upper().startswith("REACTOR_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def file(tmp_path: Path) -> File:
    """Write a settings file."""

    def write(content: str | bytes) -> Path:
        path = tmp_path / "reactor.yaml"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


# --- the environment ---------------------------------------------------------------------------------------------


def test_no_name_without_the_prefix_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    for field in Settings.model_fields.values():
        for name in {str(field.alias), str(field.alias).upper()}:
            monkeypatch.setenv(name, "x")
            monkeypatch.setenv(f"{name}__url", "x")
    assert settings.load(None).model_fields_set == set()


def test_the_name_of_the_machine_does_not_beat_the_name_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAME", "b")
    monkeypatch.setenv("REACTOR_NAME", "a")
    assert settings.load(None).name == "a"


def test_the_environment_beats_the_file_in_every_part(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file(
        "logFormat: json\nruleFiles: [a]\nbus: {caFile: /a, url: nats://a}\n"
        "prometheus: {main: {url: http://a, bearerTokenFile: /a}}\n"
    )
    monkeypatch.setenv("REACTOR_LOG_FORMAT", "logfmt")
    monkeypatch.setenv("REACTOR_RULE_FILES", '["b"]')
    monkeypatch.setenv("REACTOR_BUS__CA_FILE", "/b")
    monkeypatch.setenv("REACTOR_PROMETHEUS__MAIN__BEARER_TOKEN_FILE", "/b")
    read = settings.load(path)
    assert (read.log_format, read.rule_files, read.bus.ca_file) == ("logfmt", ("b",), Path("/b"))
    assert (read.bus.url, read.prometheus["main"].bearer_token_file) == ("nats://a", Path("/b"))
    assert settings.load(path, rule_files=("c",)).rule_files == ("c",)


@pytest.mark.parametrize("name", ["REACTOR_RULE_FILES", "REACTOR_RECEIVER__BEARER_TOKEN_FILES", "REACTOR_CLUSTERS"])
def test_a_variable_that_is_no_json_is_named_with_what_to_write(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "rules.yaml")
    with pytest.raises(SettingsError, match=rf"^{name}: not JSON .*: lists are JSON, as in "):
        settings.load(None)


def test_a_variable_with_a_wrong_value_is_named_and_not_the_file(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACTOR_BUS__REPLICAS", "9")
    with pytest.raises(SettingsError, match=r"^REACTOR_BUS__REPLICAS: Input should be less than or equal to 5$"):
        settings.load(file("bus:\n  replicas: 3\n"))


# --- the file ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('name: x\nbus: {url: "nats://x\n', ":3:1: not YAML: "),
        ("name: x\n---\nname: y\n", ":2:1: not YAML: "),
        ("# these\n- a\n- b\n", ":2: settings are keys with values"),
        (b"name: x\nbus: \xff\n", ":2: not UTF-8: byte 0xff; save it as UTF-8"),
        ("clusterz: {}\n", ":1:1: clusterz: there is no such key: `reactor schema settings` prints all"),
        ("1: x\n", ":1:1: 1: there is no such key"),
        ("name: 2020-13-45\n", ": not YAML: "),
        ("bus:\n  url: x\n  replicas: 9\n", ":3:3: bus.replicas: Input should be less than or equal to 5"),
        ("bus: {user: me}\n", ":1:1: bus: user goes together with password or passwordFile"),
        ("clusters: {east: {labels: [a]}}\n", ":1:19: clusters.east.labels: "),
    ],
)
def test_a_file_that_cannot_be_used_is_told_with_its_line(content: str | bytes, says: str, file: File) -> None:
    path = file(content)
    with pytest.raises(SettingsError) as told:
        settings.load(path)
    assert str(told.value).startswith(f"{path}{says}")
    assert len(str(told.value).splitlines()) == 1


def test_every_key_that_is_wrong_is_told(file: File) -> None:
    with pytest.raises(SettingsError, match=r"a: there is no such key(.*)\n(.*)b: there is no such key"):
        settings.load(file("a: 1\nb: 2\n"))


def test_a_file_that_is_not_there_and_a_folder_are_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="gone: no such file"):
        settings.load(tmp_path / "gone")
    with pytest.raises(SettingsError, match="it is a folder"):
        settings.load(tmp_path)


def test_an_empty_file_is_the_defaults(file: File) -> None:
    assert settings.load(file("# nothing\n")).model_fields_set == set()


@pytest.mark.parametrize(
    ("receiver", "health", "wanted"),
    [
        ("127.0.0.1:8484", None, ("127.0.0.1", 8485)),
        ("[::1]:9000", None, ("::1", 9001)),
        ("127.0.0.1:0", None, ("127.0.0.1", 0)),
        ("127.0.0.1:65535", None, ("127.0.0.1", 0)),
        ("127.0.0.1:8484", "0.0.0.0:9100", ("0.0.0.0", 9100)),
    ],
)
def test_health_is_served_beside_the_receiver_unless_it_has_an_address_of_its_own(
    receiver: str, health: str | None, wanted: tuple[str, int]
) -> None:
    given = {"receiver": {"listen": receiver}, "health": {"listen": health} if health else {}}
    assert Settings.model_validate(given).health_address == wanted


@pytest.mark.parametrize("listen", ["8485", "127.0.0.1:", "127.0.0.1:99999", ":8485", "127.0.0.1:\u0663"])
def test_an_address_for_health_that_is_none_is_told(listen: str, file: File) -> None:
    with pytest.raises(SettingsError, match=r"health\.listen"):
        settings.load(file(f"health: {{listen: '{listen}'}}"))


# --- load balancers ------------------------------------------------------------------------------------------------


def test_load_balancers_are_read_by_their_kind_from_the_file_and_the_environment(
    file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file(
        "loadBalancers:\n  edge: {kind: HAProxy, socket: /run/haproxy/admin.sock, backend: web}\n"
        "  psp: {kind: Webhook, url: 'https://psp.example/weights'}\n"
    )
    monkeypatch.setenv("REACTOR_LOAD_BALANCERS__PSP__SECRET_FILE", "/run/secrets/psp")
    found = settings.load(path).load_balancers
    assert [(name, one.kind, one.every_seconds) for name, one in found.items()] == [
        ("edge", "HAProxy", 2), ("psp", "Webhook", 5),
    ]  # fmt: skip
    monkeypatch.setenv("REACTOR_LOAD_BALANCERS__PSP__SECRET", "s3cret")
    with pytest.raises(SettingsError, match="needs either secret or secretFile") as raised:
        settings.load(path)
    assert "s3cret" not in str(raised.value)


def test_what_is_wrong_with_load_balancers_is_said_all_at_once_with_its_place(file: File) -> None:
    path = file(
        "loadBalancers:\n"
        "  one: {kind: HAProxy, socket: /x, address: 'h:1', backend: web}\n"
        "  two:\n    kind: HAProxy\n    socket: /x\n    backend: 'a; shutdown'\n"
        "  three: {kind: Nginx}\n"
        "  Fo_ur: {kind: HAProxy, address: nowhere, backend: web}\n"
        "  five: {kind: Webhook, url: 'https://ann:pass@x/', secret: k}\n"
        "  six: {kind: Route53, hostedZone: Z1, record: shop.example.com, type: MX}\n"
        "  seven: {kind: TargetGroups, ruleArn: 'arn:aws:elasticloadbalancing:x:1:listener/app/a/b/c'}\n"
    )
    with pytest.raises(SettingsError) as raised:
        settings.load(path)
    lines = str(raised.value).splitlines()
    for line, words in {
        2: "loadBalancers.one: needs either socket or address",
        6: "loadBalancers.two.backend: ",
        7: "loadBalancers.three: ",
        8: "loadBalancers.Fo_ur: ",
        9: "loadBalancers.five: url: no user and no password in it",
        10: "loadBalancers.six.type: ",
        11: "loadBalancers.seven.ruleArn: ",
    }.items():
        assert any(f"{path}:{line}:" in one and words in one for one in lines), (words, lines)
    assert "pass" not in str(raised.value).replace("password", "")


# --- route kinds ---------------------------------------------------------------------------------------------------


def test_a_route_kind_of_the_settings_is_described_as_a_built_in_one(file: File) -> None:
    path = file(
        "routeKinds:\n"
        "  Pool: {group: example.com, plural: pools, versions: [v1], backends: 'spec.rules[*].pool.members',\n"
        "         name: target.ref, weight: share, ruleName: id, sumTo: 1000}\n"
    )
    found = settings.load(path).described_route_kinds["Pool"]
    assert (found.group, found.plural, found.versions, found.backends) == (
        "example.com", "pools", ("v1",), ("spec.rules[*].pool.members",),
    )  # fmt: skip
    assert (found.name, found.weight, found.rule_name, found.sum_to, found.default_weight, found.all_zero) == (
        "target.ref", "share", "id", 1000, None, False,
    )  # fmt: skip


def test_what_is_wrong_with_route_kinds_is_said_all_at_once_with_its_place(file: File) -> None:
    path = file(
        "routeKinds:\n"
        "  One: {plural: ones, versions: [v1], backends: spec.backends}\n"
        "  Two: {group: a.b, plural: twos, versions: [], backends: spec.backends}\n"
        "  Three: {group: a.b, plural: threes, versions: [v1], backends: '$.spec[0]'}\n"
        "  Four: {group: a.b, plural: fours, versions: [v1], backends: spec.backends, ruleName: id}\n"
        "  Fi_ve: {group: a.b, plural: fives, versions: [v1], backends: spec.backends}\n"
        "  Six: {group: a.b, plural: sixes, versions: [v1], backends: spec.backends, sumTo: 0, sum: 100}\n"
    )
    with pytest.raises(SettingsError) as raised:
        settings.load(path)
    lines = str(raised.value).splitlines()
    for line, words in (
        (2, "routeKinds.One.group: "),
        (3, "routeKinds.Two.versions: "),
        (4, "routeKinds.Three.backends: "),
        (5, "routeKinds.Four: ruleName goes with a list of rules"),
        (6, "routeKinds.Fi_ve"),
        (7, "routeKinds.Six.sumTo: "),
        (7, "routeKinds.Six.sum: "),
    ):
        assert any(f"{path}:{line}:" in one and words in one for one in lines), (words, lines)


def test_a_route_kind_may_not_have_the_name_of_a_built_in_one(file: File) -> None:
    path = file("routeKinds:\n  HTTPRoute: {group: a.b, plural: c, versions: [v1], backends: spec.backends}\n")
    with pytest.raises(SettingsError, match="HTTPRoute is built in"):
        settings.load(path)
