"""Rule files as they are on the disk: one snapshot, one digest, and a look that waits until they change no more."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import process_time

import pytest

from reactor.process import reloading
from reactor.process.reloading import RuleFiles
from reactor.rulefiles.snapshot import Snapshot, digest, load_alone, load_for
from reactor.runtime import telemetry
from reactor.runtime.errors import ReactorError, SettingsError
from reactor.settings.model import Settings
from rules.core.errors import InvalidFiles
from rules.loader import RuleSet
from tests.unit.cli.test_bad_rule_files import CPU_SECONDS
from tests.unit.cli.test_bad_rule_files import FILES as BAD

ONE = "apiVersion: reactor/v1\nrules:\n- {name: one, kind: Notification, match: 'service/**'}\n"
TWO = ONE + "- {name: two, kind: Notification, match: 'cluster/*'}\n"
WRONG = ONE + "- {name: one, kind: Nothing}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rules.yaml"
    path.write_text(ONE)
    return path


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Look again without a pause."""
    monkeypatch.setattr(reloading, "LOOK_SECONDS", 0.0)
    yield
    telemetry.rule_files_invalid.set(0)


def named(*files: Path) -> Settings:
    return Settings(rule_files=tuple(map(str, files)))


class Switched:
    """Rules to which a process was switched, one after the other."""

    def __init__(self, *, fails: bool = False) -> None:
        self.rules: list[list[str]] = []
        self._fails = fails

    async def __call__(self, rules: RuleSet) -> None:
        if self._fails:
            raise SettingsError("no such thing here")
        self.rules.append([rule.name for rule in rules.rules])


async def watched(files: RuleFiles, switch: Switched, seen: Sequence[Snapshot], monkeypatch: pytest.MonkeyPatch) -> int:
    """Let it see these snapshots, one a look; gives how often it told of a judgement."""
    looks, told = list(seen), 0

    def take(_: Settings) -> Snapshot:
        if not looks:
            raise EOFError
        return looks.pop(0)

    def tell() -> None:
        nonlocal told
        told += 1

    monkeypatch.setattr(Snapshot, "take", take)
    with pytest.raises(EOFError):
        await files.watch(switch, tell)
    return told


def text(content: str) -> Snapshot:
    return Snapshot((("rules.yaml", content),))


async def test_a_change_is_taken_once_the_files_change_no_more(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, switch = RuleFiles(named(file)), Switched()
    written = [text(TWO[:length]) for length in (30, 90, len(ONE) + 10)]  # an editor that is at it
    assert await watched(files, switch, [*written, text(TWO), text(TWO), text(TWO)], monkeypatch) == 1
    assert switch.rules == [["one", "two"]]
    assert files.digest == digest(load_for(named(file), text(TWO)))


async def test_files_that_come_back_to_what_they_were_change_nothing(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, switch = RuleFiles(named(file)), Switched()
    same = Snapshot.take(named(file))
    assert await watched(files, switch, [text(TWO), same, same, same], monkeypatch) == 0
    assert switch.rules == []


async def test_mistakes_are_told_once_and_forgotten_when_mended(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    files, switch = RuleFiles(named(file)), Switched()
    before = files.rules
    with caplog.at_level(logging.ERROR):
        assert await watched(files, switch, [text(WRONG)] * 5, monkeypatch) == 1
    with pytest.raises(InvalidFiles) as wrong:
        load_for(named(file), text(WRONG))
    assert files.problems == tuple(map(str, wrong.value.problems))
    assert len(caplog.records) == len(files.problems) >= 2
    assert all("rules.yaml:4:" in record.getMessage() for record in caplog.records)
    assert (files.rules, telemetry.rule_files_invalid._value.get()) == (before, 1)
    assert await watched(files, switch, [text(ONE)] * 3, monkeypatch) == 1
    assert (files.problems, switch.rules, telemetry.rule_files_invalid._value.get()) == ((), [], 0)


@pytest.mark.parametrize("name", BAD)
async def test_no_bad_rule_file_takes_the_place_of_the_rules_in_use(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    files, switch = RuleFiles(named(file)), Switched()
    before, began = files.digest, process_time()
    assert await watched(files, switch, [text(BAD[name][0])] * 3, monkeypatch) == 1
    assert process_time() - began < CPU_SECONDS
    assert (files.digest, switch.rules, telemetry.rule_files_invalid._value.get()) == (before, [], 1)
    assert any(BAD[name][1].replace("f.yaml", "rules.yaml") in one for one in files.problems)
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("a pipe", ": is no regular file"), ("an endless device", ": is no regular file"), ("bytes", ":3: not UTF-8"),
        ("17 MiB", ": is larger than 16 MiB"),
    ],
)  # fmt: skip
async def test_what_cannot_be_read_while_a_process_runs_is_a_problem_and_hangs_no_process(
    file: Path, monkeypatch: pytest.MonkeyPatch, kind: str, said: str
) -> None:
    settings = named(file)
    files, switch = RuleFiles(settings), Switched()
    file.unlink()
    if kind == "a pipe":
        os.mkfifo(file)
    elif kind == "an endless device":
        file.symlink_to("/dev/zero")
    else:
        file.write_bytes(b"a: b\n#\n\xff" if kind == "bytes" else b"#" * (17 << 20))
    assert await watched(files, switch, [Snapshot.take(settings)] * 3, monkeypatch) == 1
    [problem] = files.problems
    assert problem.startswith(f"{file}{said}")
    assert (switch.rules, telemetry.rule_files_invalid._value.get()) == ([], 1)


async def test_rules_that_cannot_be_taken_up_are_a_problem_and_those_of_before_stay(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = RuleFiles(named(file))
    before = files.digest
    await watched(files, Switched(fails=True), [text(TWO)] * 3, monkeypatch)
    assert (files.digest, files.problems) == (before, ("no such thing here",))


async def test_who_asks_is_not_kept_waiting(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reloading, "LOOK_SECONDS", 3600.0)
    files, switch, judged = RuleFiles(named(file)), Switched(), asyncio.Event()
    watching = asyncio.create_task(files.watch(switch, judged.set))
    file.write_text(TWO)
    files.look_now()
    async with asyncio.timeout(60):
        await judged.wait()
    watching.cancel()
    assert switch.rules == [["one", "two"]]


def test_files_that_vanish_are_a_problem_of_their_own(file: Path) -> None:
    settings = named(file)
    file.unlink()
    gone = Snapshot.take(settings)
    assert gone == Snapshot.take(settings)
    with pytest.raises(ReactorError, match="no such rule file"):
        load_for(settings, gone)


def test_a_digest_is_of_the_rules_and_not_of_how_they_are_written(tmp_path: Path) -> None:
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text("# of one file\n" + TWO)
    one = digest(load_for(named(first)))
    first.write_text(ONE)
    second.write_text(TWO.replace("- {name: one, kind: Notification, match: 'service/**'}\n", ""))
    assert digest(load_for(named(second, first))) == one
    first.write_text(ONE.replace("service/**", "service/*"))
    assert digest(load_for(named(second, first))) != one


@pytest.mark.parametrize(
    "more",
    [
        "guards:\n- {rules: [one], maxConcurrent: 1}\n",
        "sources:\n- {name: am, kind: AlertmanagerWebhook, matchers: 'a=b', target: 'service/east/shop/{service}'}\n",
    ],
)
def test_a_digest_tells_of_everything_that_a_file_can_say(file: Path, more: str) -> None:
    before = digest(load_for(named(file)))
    file.write_text(ONE + more)
    assert digest(load_for(named(file))) != before


ZONES = "rules:\n- {name: r, kind: ZoneIsolation, zones: [{name: a, id: a1}, {name: b, id: b1}]"
TAINT = "rules:\n- {name: r, kind: ClusterTaint, match: cluster/a, taints: [{key: a, effect: NoExecute}]"
ASKS = [
    ("sources:\n- {name: s, kind: ClusterProbe, cluster: typo}", "source s: cluster: 'typo'"),
    ("sources:\n- {name: s, kind: LeaseWatch, cluster: typo}", "source s: cluster: 'typo'"),
    ("sources:\n- {name: s, kind: EndpointsWatch, cluster: typo}", "source s: cluster: 'typo'"),
    ("sources:\n- {name: s, kind: WorkloadWatch, cluster: typo}", "source s: cluster: 'typo'"),
    ("sources:\n- {name: s, kind: NodeWatch, cluster: typo}", "source s: cluster: 'typo'"),
    (
        "sources:\n- {name: s, kind: PrometheusQuery, prometheus: typo, query: up, target: custom/a}",
        "source s: prometheus: 'typo' is not in the settings; prometheus has main",
    ),
    (
        "rules:\n- {name: r, kind: TrafficFailover, route: {cluster: typo, kind: TrafficSplit, namespace: n, name: a}}",
        "route.cluster: 'typo' is not in the settings; clusters has east",
    ),
    (
        ("rules:\n- {name: r, kind: TrafficFailover, route: {kind: HAProxy, name: typo}, "
        "backends: [{service: a, target: custom/a}, {service: b, target: custom/b}]}"),
        "route.name: 'typo' is not in the settings; loadBalancers has east",
    ),
    (f"{ZONES}, cluster: typo}}", "cluster: 'typo'"),
    (
        f"{ZONES}, cluster: east, verify: {{prometheus: typo, query: up}}}}",
        "verify.prometheus: 'typo'",
    ),
    (
        f"{ZONES}, cluster: east, carrier: Gardener, shoot: {{cluster: typo, namespace: n, name: s}}}}",
        "shoot.cluster: 'typo'",
    ),
    (f"{TAINT}, carrier: Karmada}}", "karmada.cluster: 'karmada'"),
    ("rules:\n- {name: r, kind: Notification, match: 'cluster/*', notify: [typo]}", "notify: 'typo'"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "refused"), ASKS, ids=[refused for _, refused in ASKS])
def test_what_rules_and_sources_ask_of_the_settings_has_to_be_there(file: Path, said: str, refused: str) -> None:
    settings = Settings.model_validate({
        "ruleFiles": [str(file)], "clusters": {"east": {}}, "prometheus": {"main": {"url": "http://main:9090"}},
        "loadBalancers": {"east": {"kind": "HAProxy", "socket": "/run/admin.sock", "backend": "web"}},
    })  # fmt: skip
    file.write_text(f"apiVersion: reactor/v1\n{said}\n")
    with pytest.raises(SettingsError, match=re.escape(refused)):
        load_for(settings, Snapshot.take(settings))
    assert load_alone(settings), "who only looks at them needs none of it"
    file.write_text(file.read_text().replace("typo", "main" if "prometheus" in refused else "east"))
    if not refused.startswith(("karmada", "notify")):
        assert load_for(settings, Snapshot.take(settings))


@pytest.mark.parametrize("meant", ["*.yaml", ""], ids=["by a glob", "by its folder"])
def test_rule_tests_beside_rule_files_are_no_rule_files(file: Path, meant: str) -> None:
    file.with_name("rules_test.yaml").write_text("apiVersion: reactor/v1\nruleFiles: [rules.yaml]\ntests: []\n")
    assert [rule.name for rule in load_for(named(file.parent / meant)).rules] == ["one"]


def test_a_rule_test_that_is_named_as_a_rule_file_is_refused(file: Path) -> None:
    test = file.with_name("rules_test.yaml")
    test.write_text("apiVersion: reactor/v1\nruleFiles: [rules.yaml]\ntests: []\n")
    with pytest.raises(InvalidFiles, match="tests"):
        load_for(named(file, test))
