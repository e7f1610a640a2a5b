"""The alerts about the reactor: Prometheus takes them, each is tested, and each metric that they name is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from reactor.runtime import telemetry
from rules.core.reasons import Held
from rules.summary import GroupStatus
from tests.house.test_deploy_files import DEPLOY, run, tool

FOLDER = DEPLOY / "prometheus"
FILES = [FOLDER / "reactor-alerts.yml", FOLDER / "reactor-slos.yml"]
PAGE = "https://github.com/alert-reactor/alert-reactor/blob/main/docs/runbooks.md"
RUNBOOKS = DEPLOY.parent / "docs/runbooks.md"


def its_tests(file: Path) -> list[Path]:
    return sorted(FOLDER.glob(f"{file.stem}*_test.yml"))


def rules(file: Path) -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]]


def alerts(*files: Path) -> list[dict[str, Any]]:
    return [rule for file in files or FILES for rule in rules(file) if "alert" in rule]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_prometheus_takes_them(file: Path) -> None:
    run(tool("promtool"), "check", "rules", file)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_they_fire_when_they_should_and_not_before(file: Path) -> None:
    run(tool("promtool"), "test", "rules", *its_tests(file), env={"GOGC": "800"})  # a fifth of its time is collection


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_is_shown_to_fire_and_to_be_quiet_when_all_is_well(file: Path) -> None:
    tests = [test for path in its_tests(file) for test in yaml.safe_load(path.read_text())["tests"]]
    [well], others = [[one for one in tests if (one["name"] == "all is well") is which] for which in (True, False)]
    names = {alert["alert"] for alert in alerts(file)}
    assert {one["alertname"] for one in well["alert_rule_test"]} == names
    assert not any(one.get("exp_alerts") for one in well["alert_rule_test"])
    firing = {one["alertname"] for test in others for one in test["alert_rule_test"] if one.get("exp_alerts")}
    assert firing == names


def test_each_metric_reason_and_state_that_they_name_is_there() -> None:
    endings = ("", "_total", "_bucket", "_count", "_sum")
    known = {f"{metric.name}{ending}" for metric in telemetry.REGISTRY.collect() for ending in endings}
    text = " ".join(rule["expr"] for file in FILES for rule in rules(file))
    assert set(re.findall(r"\b(?:reactor|process)_\w+", text)) <= known
    reasons = {word for found in re.findall(r'reason=~?"([^"]+)"', text) for word in found.split("|")}
    assert reasons <= {held.value for held in Held}
    assert set(re.findall(r'state="(\w+)"', text)) <= {state.value for state in GroupStatus}


def test_each_says_what_to_do_and_has_its_runbook() -> None:
    headings = set(re.findall(r"^## (Reactor\w+)$", RUNBOOKS.read_text(), re.MULTILINE))
    assert headings == {alert["alert"] for alert in alerts()}
    for alert in alerts():
        assert alert["labels"]["severity"] in ("critical", "warning")
        assert {"summary", "do", "runbook_url"} == alert["annotations"].keys()
        assert alert["annotations"]["runbook_url"] == f"{PAGE}#{alert['alert'].lower()}"
