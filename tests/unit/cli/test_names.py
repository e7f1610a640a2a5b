"""Commands and options have one name each; the names that they had before 0.1.0 go on working."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner, Result

from reactor.cli.main import COMMANDS, cli
from reactor.cli.shared.old_names import OLD
from reactor.views.zone_words import drill_row
from rules.core.group import Group
from rules.core.reasons import Held
from rules.kinds.zone.model import ZoneIsolation
from rules.kinds.zone.state import Isolation, RefusedZoneCommand, ZoneState
from rules.loader import load_rules
from tests.unit.cli.test_cli import OUTAGE, SHOP, SHOP_TEST

POLICY = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: web}]
  placement: {clusterAffinity: {clusterNames: [east, west]}}
"""
ZONES = """
apiVersion: reactor/v1
rules:
  - name: prod-zones
    kind: ZoneIsolation
    cluster: prod
    zones: [{name: z1, id: i1}, {name: z2, id: i2}, {name: z3, id: i3}]
    practice: {cron: "0 10 * * WED", timezone: UTC, durationSeconds: 1800, steps: [Fence]}
"""
NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


def reactor(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words))


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shop.yaml").write_text(SHOP)
    Path("shop_test.yaml").write_text(SHOP_TEST)
    Path("past.jsonl").write_text(OUTAGE)
    Path("policy.yaml").write_text(POLICY)


def test_zones_have_one_command_with_seven_words() -> None:
    command = cli.get_command(click.Context(cli), "zone")
    assert isinstance(command, click.Group)
    assert {*command.commands} == {"list", "plan", "drill", "isolate", "failback", "abort", "retry"}


@pytest.mark.parametrize("old", OLD)
def test_an_old_name_works_is_not_in_the_help_and_names_the_new_one(old: str) -> None:
    done = reactor(old, "--help")
    assert done.exit_code == 0
    assert done.stdout.startswith(f"Usage: cli {' '.join(OLD[old])} ")
    assert done.stderr == f"`reactor {old}` is the old name of `reactor {' '.join(OLD[old])}`\n"
    assert old not in COMMANDS


def test_the_second_word_of_the_old_drill_goes_with_it() -> None:
    done = reactor("drill", "zone", "--help")
    assert done.stdout.startswith("Usage: cli zone plan ")
    assert done.stderr == "`reactor drill zone` is the old name of `reactor zone plan`\n"


def options(command: click.Command, path: str) -> Iterator[tuple[str, click.Option]]:
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            inner = command.get_command(click.Context(command), name)
            assert inner is not None
            yield from options(inner, f"{path} {name}")
    else:
        yield from ((path, one) for one in command.params if isinstance(one, click.Option))


def test_o_is_a_format_everywhere_and_yaml_is_wherever_json_is() -> None:
    outputs = [(path, one) for path, one in options(cli, "reactor") if "-o" in one.opts and not one.hidden]
    assert len(outputs) > 15
    for path, one in outputs:
        assert "--output" in one.opts, path
        formats = one.type.choices if isinstance(one.type, click.Choice) else str(one.metavar).strip("[]").split("|")
        assert {"json", "yaml"} <= {*formats}, path
        assert {*formats} <= {"table", "text", "json", "yaml", "github", "helm"}, path


@pytest.mark.parametrize("words", [
    ("check", "shop.yaml"), ("test", "shop.yaml"), ("test", "--coverage", "shop.yaml"), ("schema", "test"),
    ("version",), ("simulate", "--rules", "shop.yaml", "--world", "1", "--hours", "0.1"),
])  # fmt: skip
def test_yaml_says_what_json_says(words: tuple[str, ...]) -> None:
    as_json, as_yaml = reactor(*words, "-o", "json"), reactor(*words, "-o", "yaml")
    assert as_json.exit_code == as_yaml.exit_code == 0
    assert yaml.safe_load(as_yaml.stdout) == json.loads(as_json.stdout)


def test_a_simulation_in_yaml_is_one_document_for_each_line() -> None:
    words = ("simulate", "--rules", "shop.yaml", "--history", "past.jsonl")
    lines = reactor(*words).stdout.splitlines()
    assert lines
    assert [*yaml.safe_load_all(reactor(*words, "-o", "yaml").stdout)] == [json.loads(line) for line in lines]


def test_imported_rules_go_to_a_file_also_by_the_old_option() -> None:
    words = ("import", "karmada", "policy.yaml")
    printed = reactor(*words).stdout
    assert "WorkloadFailover" in printed
    assert reactor(*words, "--output-file", "new.yaml").stdout == ""
    old = reactor(*words, "-o", "old.yaml")
    assert (old.exit_code, old.stdout) == (0, "")
    assert "`-o FILE` is the old name of `--output-file FILE`" in old.stderr
    assert Path("new.yaml").read_text() == Path("old.yaml").read_text() == printed


def test_imported_rules_are_printed_as_json_that_is_a_rule_file() -> None:
    words = ("import", "karmada", "policy.yaml")
    Path("rules.json").write_text(reactor(*words, "-o", "json").stdout)
    assert json.loads(Path("rules.json").read_text()) == yaml.safe_load(reactor(*words, "-o", "yaml").stdout)
    assert reactor("check", "rules.json").exit_code == 0


@pytest.mark.parametrize("words", [("init", "-o", "json"), ("import", "karmada", "policy.yaml", "-o", "table")])
def test_a_format_that_a_command_does_not_have_is_no_file_name(words: tuple[str, ...]) -> None:
    done = reactor(*words)
    assert done.exit_code == 2
    assert "use --output-file FILE" in done.stderr


def drills(state: ZoneState | None) -> dict[str, object]:
    rule = load_rules([("zones.yaml", ZONES)]).rules[0]
    assert isinstance(rule, ZoneIsolation)
    return drill_row(rule, Group(rule.name, rule.object, state or ZoneState()), NOW)


def test_a_drill_shows_the_next_one_the_running_one_and_the_last_one() -> None:
    assert drills(None) == {
        "rule": "prod-zones", "schedule": "0 10 * * WED UTC", "next": "2026-11-25T10:00:00+00:00", "zone": "z2",
        "running": "", "last": "", "outcome": "", "detail": "",
        "comesBack": "no signal is about zone/prod/z2: only reactor zone failback --force opens it",
    }  # fmt: skip
    running = Isolation("z3", "Failover", "Done", "Practice", NOW, NOW, practice=True)
    shown = drills(ZoneState(isolation=running, practised_at=NOW, practice_outcome="PENDING"))
    assert (shown["running"], shown["last"], shown["outcome"]) == ("z3", "2026-11-23T12:00:00+00:00", "PENDING")
    refused = RefusedZoneCommand("z1", Held.PRACTICE_BLOCKED.value, "a signal is bad", NOW)
    assert drills(ZoneState(refused=refused))["detail"] == "a signal is bad"
    in_earnest = Isolation("z3", "Failover", "Done", "ZoneUnhealthy", NOW, NOW)
    assert drills(ZoneState(isolation=in_earnest))["running"] == ""
