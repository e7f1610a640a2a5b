"""`reactor doctor` as people and pipelines use it: exit codes, keys, and what is printed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from reactor.cli.doctor import GROUPS
from reactor.cli.main import cli

NO_BUS = "nats://127.0.0.1:1"


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder without settings of other people."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("REACTOR_")]:
        monkeypatch.delenv(name)


def doctor(*words: str) -> Result:
    done = CliRunner().invoke(cli, ["doctor", *words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def test_before_an_install_with_an_embedded_bus_nothing_fails() -> None:
    done = doctor("--pre", "-o", "json")
    assert done.exit_code == 0, done.output
    checks = json.loads(done.stdout)["checks"]
    assert {tuple(one) for one in checks} == {("group", "name", "status", "detail", "fix")}
    assert {one["status"] for one in checks} == {"ok", "skipped"}
    assert all(one["detail"] for one in checks), "what is skipped says why"


@pytest.mark.parametrize("words", [(), ("--bus", NO_BUS), ("--pre", "--bus", NO_BUS)])
def test_a_bus_that_is_not_there_ends_with_1_and_the_other_groups_are_printed(words: tuple[str, ...]) -> None:
    done = doctor(*words, "-o", "yaml")
    assert done.exit_code == 1
    checks = yaml.safe_load(done.stdout)["checks"]
    assert [(one["group"], one["name"]) for one in checks if one["status"] == "failed"] == [("bus", "connection")]
    assert all(one["fix"] for one in checks if one["status"] == "failed")
    assert {one["group"] for one in checks} == {*GROUPS}


def test_settings_that_cannot_be_used_skip_all_others_and_end_with_1() -> None:
    done = doctor("--config", "nowhere.yaml", "-o", "json")
    assert done.exit_code == 1
    checks = json.loads(done.stdout)["checks"]
    assert [(one["group"], one["status"]) for one in checks] == [
        ("settings", "failed"), *((group, "skipped") for group in GROUPS[1:])
    ]  # fmt: skip


def test_a_table_has_groups_one_line_for_each_check_and_the_fix_below() -> None:
    done = doctor("--bus", NO_BUS)
    lines = done.output.splitlines()
    assert [line for line in lines if line in GROUPS] == list(GROUPS)
    failed = next(index for index, line in enumerate(lines) if line.startswith("  failed   connection: "))
    assert lines[failed + 1].startswith("           fix: ")
    assert lines[-1].endswith("1 failed")


def test_rule_files_are_taken_from_the_command_line() -> None:
    Path("shop.yaml").write_text("apiVersion: reactor/v1\nrulez: []\n")
    done = doctor("--pre", "shop.yaml")
    assert done.exit_code == 1
    assert "fix: reactor check shop.yaml" in done.output
