"""`reactor simulate --world`: what is printed, where to, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bus.messages import SetWeights
from reactor.cli.main import cli
from rules.core.reasons import Because
from rules.kinds.traffic import secondaries
from rules.kinds.traffic.wanted_weights import DesiredWeights
from rules.rehearsal.world import promises
from rules.rehearsal.world.checkers.promise_finding import Promise

SHOP = """\
apiVersion: reactor/v1
rules:
  - name: checkout
    kind: TrafficFailover
    mode: DryRun
    route: {cluster: east, kind: TrafficSplit, namespace: shop, name: checkout}
    backends: [{service: checkout}, {service: checkout-west, target: service/west/shop/checkout}]
    tolerationSeconds: 20
    recoverySeconds: 60
  - {name: people, kind: Notification, match: "service/**"}
"""


@pytest.fixture
def shop(tmp_path: Path) -> str:
    file = tmp_path / "shop.yaml"
    file.write_text(SHOP)
    return str(file)


@pytest.fixture
def broken_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """No weight at all where everything is down."""

    def zero(_rule: Any, primary: Any, secondaries: Any) -> DesiredWeights:
        return DesiredWeights(weights={one.service: 0 for one in [primary, *secondaries]}, because=Because.ALL_DOWN)

    monkeypatch.setattr(secondaries, "all_down", zero)


def simulated(*args: str) -> Result:
    return CliRunner().invoke(cli, ["simulate", *args], catch_exceptions=False)


def test_whom_a_guard_counts_is_known_of_every_kind_without_being_written(tmp_path: Path) -> None:
    """As often as where the same peers are written, and not only for a WorkloadFailover."""
    tested = []
    for peers in ("", ", peers: service/**"):
        file = tmp_path / "people.yaml"
        rule = "name: n, kind: Notification, mode: Enforce, match: service/**, tolerationSeconds: 5"
        file.write_text(f"apiVersion: reactor/v1\nrules: [{{{rule}, guards: {{maxUnhealthy: 1{peers}}}}}]\n")
        result = simulated("--rules", str(file), "--world", "1", "--hours", "12")
        rows = [line.rsplit(maxsplit=2) for line in result.stdout.splitlines()[1:]]
        tested += [(int(times), broken) for name, times, broken in rows if name == Promise.BLIND.value]
    assert tested[0] == tested[1]
    assert tested[0][0] > 0


def test_a_world_that_keeps_all_promises_ends_with_0_and_says_how_often_each_was_tested(shop: str) -> None:
    result = simulated("--rules", shop, "--world", "3", "--hours", "6")
    assert (result.exit_code, result.stderr) == (0, "")
    rows = [line.rsplit(maxsplit=2) for line in result.stdout.splitlines()[1:]]
    assert [row[0] for row in rows] == [promise.value for promise in Promise]
    assert all(broken == "0" for _, _, broken in rows)
    assert int(rows[0][1]) > 0


def test_the_same_seed_gives_the_same_report_byte_for_byte(shop: str) -> None:
    args = ("--rules", shop, "--world", "3", "--hours", "3", "--seeds", "2", "-o", "json")
    first, again = simulated(*args), simulated(*args)
    assert first.stdout == again.stdout
    assert json.loads(first.stdout)["seeds"] == [3, 4]


def test_a_world_that_tests_no_promise_of_a_rule_ends_with_1_and_names_it(
    shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a kind of rule of which the checkers know nothing, in a world in which it does not act."""
    silent: promises.Checks = (lambda _: (), lambda *_: ())
    checks = dict(promises._CHECKS)
    checks[SetWeights] = silent
    monkeypatch.setattr(promises, "_CHECKS", checks)
    result = simulated("--rules", shop, "--world", "3", "--hours", "0.1")
    assert result.exit_code == 1
    assert result.stderr == "no promise was tested of checkout: play more --hours or --seeds\n"


@pytest.mark.usefixtures("broken_core")
def test_a_broken_promise_ends_with_1_and_its_history_alone_is_on_stdout(shop: str, tmp_path: Path) -> None:
    result = simulated("--rules", shop, "--world", "2", "--hours", "6", "--seeds", "1")
    assert result.exit_code == 1
    assert "Never the last one: checkout: east/shop/TrafficSplit/checkout gets no weight at all" in result.stderr
    history = tmp_path / "broken.jsonl"
    history.write_text(result.stdout)
    assert 0 < len(history.read_text().splitlines()) <= 8

    [command] = [line for line in result.stderr.splitlines() if line.startswith("  reactor simulate")]
    words = command.replace("FILE", shop).replace("broken.jsonl", str(history)).split()[2:]
    replayed = simulated(*words)
    assert replayed.exit_code == 0
    asked = [json.loads(line) for line in replayed.stdout.splitlines()]
    assert {"checkout": 0, "checkout-west": 0} in [one.get("weights") for one in asked]


@pytest.mark.usefixtures("broken_core")
def test_a_broken_promise_is_in_the_json_with_its_seed_its_rule_and_the_rules_that_are_needed(shop: str) -> None:
    result = simulated("--rules", shop, "--world", "2", "--hours", "6", "--seeds", "1", "-o", "json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert {one["rule"] for one in report["broken"]} == {"checkout"}
    assert report["shortest"]["rules"] == ["checkout"]


def test_a_rule_that_is_off_promises_nothing(shop: str) -> None:
    Path(shop).write_text(SHOP.replace("mode: DryRun", "mode: Off"))
    result = simulated("--rules", shop, "--world", "5", "--hours", "6")
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize("args", [(), ("--world", "1", "--history", "-")])
def test_it_is_either_a_history_or_a_world(shop: str, args: tuple[str, ...]) -> None:
    result = simulated("--rules", shop, *args)
    assert result.exit_code == 2
    assert "--history FILE, or a world with --world SEED" in result.stderr
