"""The demo's small parts: counts, routes, the rule file, the folder."""

from __future__ import annotations

import fcntl
import json
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reactor.demo import scene
from reactor.demo.demo_world import read_settings
from reactor.demo.folder import PREFIX, temporary_folder
from reactor.demo.follow import RouteName, weights_of
from reactor.demo.tally import RequestCount, TrafficSecond, TrafficTotal
from reactor.webhook.body import read_body
from rules.loader import load_rules

URLS = {name: f"http://127.0.0.1:{port}" for port, name in enumerate(scene.BACKENDS, start=8001)}


def test_a_second_travels_as_one_line() -> None:
    second = TrafficSecond(12.5, {"a": 1, "b": 0}, {"a": RequestCount(49, 1), "b": RequestCount()}, (11.9, 12.4))
    line = second.to_json()
    assert "\n" not in line
    assert TrafficSecond.from_json(line) == second


def test_seconds_add_up() -> None:
    traffic = TrafficTotal()
    traffic.add(TrafficSecond(1, {}, {"a": RequestCount(50, 0)}))
    traffic.add(TrafficSecond(2, {}, {"a": RequestCount(40, 10)}, (1.2, 1.9)))
    traffic.add(TrafficSecond(3, {}, {"a": RequestCount(0, 5), "b": RequestCount(45, 0)}, (2.0, 2.1)))
    assert (traffic.requests, traffic.failed) == (150, 15)
    assert (traffic.first_failure, traffic.last_failure) == (1.2, 2.1)


@pytest.mark.parametrize(
    "text", ["TrafficSplit/shop", "Ingress/shop/a", "TrafficSplit//a", "TrafficSplit/shop/a/b", ""]
)
def test_what_names_no_route_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="with one of the kinds TrafficSplit, HTTPRoute"):
        RouteName.parse(text)


ONE = {"backendRefs": [{"name": "a"}]}
TWO = {"backendRefs": [{"name": "a"}, {"name": "b", "weight": 0}]}
SPLIT = {"service": "a", "backends": [{"service": "a", "weight": 1}, {"service": "b", "weight": 0}]}
_BOTH = [{"destination": {"host": "a"}, "weight": 70}, {"destination": {"host": "b"}, "weight": 30}]
ISTIO = {"http": [{"route": _BOTH}]}


@pytest.mark.parametrize(
    ("kind", "spec", "weights"),
    [
        ("TrafficSplit", SPLIT, {"a": 1, "b": 0}),
        ("TrafficSplit", {"backends": [{"service": "a", "weight": "500m"}]}, {}),
        ("TrafficSplit", {}, {}),
        ("HTTPRoute", {"rules": [ONE, TWO]}, {"a": 1, "b": 0}),
        ("HTTPRoute", {"rules": [ONE]}, {"a": 1}),
        ("HTTPRoute", {"rules": [{}]}, {}),
        ("HTTPRoute", {}, {}),
        ("VirtualService", ISTIO, {"a": 70, "b": 30}),
    ],
)
def test_weights_are_read_from_each_kind_of_route(kind: str, spec: dict[str, Any], weights: dict[str, int]) -> None:
    assert weights_of(kind, {"metadata": {"namespace": "shop"}, "spec": spec}) == weights


def test_the_path_of_a_route_is_that_of_its_kind() -> None:
    assert RouteName.parse("HTTPProxy/shop/a").path == "/apis/projectcontour.io/v1/namespaces/shop/httpproxies"


def test_the_rule_file_has_neither_errors_nor_warnings() -> None:
    rules = load_rules([("rules.yaml", scene.rule_file(URLS))])
    assert rules.warnings == ()
    assert [rule.name for rule in rules.rules] == [scene.RULE]
    targets = {source.target for source in rules.sources if source.kind == "HttpProbe"}
    assert targets == {scene.target(backend) for backend in scene.BACKENDS}


@pytest.mark.parametrize("firing", [True, False])
def test_the_ready_made_alert_is_taken_and_is_about_the_primary(*, firing: bool) -> None:
    post = scene.alert(firing=firing, at=datetime(2026, 1, 1, tzinfo=UTC))
    taken = read_body(json.dumps(post).encode())
    assert (len(taken.alerts), taken.quarantined) == (1, [])
    labels = post["alerts"][0]["labels"]
    assert scene.target(scene.PRIMARY) == f"service/{labels['cluster']}/{labels['namespace']}/{labels['service']}"


def test_the_callers_environment_does_not_reach_the_demos_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REACTOR_BUS__URL", "nats://production:4222")
    file = tmp_path / "reactor.yaml"
    file.write_text("bus: {partitions: 4}\n")
    settings = read_settings(file)
    assert settings.bus.url is None
    assert settings.bus.partitions == 4


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_the_folder_is_gone_afterwards_also_after_an_error(temporary: Path) -> None:
    def use() -> None:
        with temporary_folder() as folder:
            assert folder.parent == temporary
            assert folder.stat().st_mode & 0o077 == 0  # no other user can enter
            (folder / "file").write_text("x")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        use()
    assert list(temporary.iterdir()) == []


def test_the_folder_of_a_demo_that_was_killed_goes_with_the_next_one(temporary: Path) -> None:
    left = temporary / f"{PREFIX}left"
    left.mkdir()
    (left / "lock").touch()
    others = [temporary / f"{PREFIX}running", temporary / f"{PREFIX}strange"]
    for folder in others:
        folder.mkdir()
    with (others[0] / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with temporary_folder():
            assert not left.exists()
    assert sorted(temporary.iterdir()) == others
