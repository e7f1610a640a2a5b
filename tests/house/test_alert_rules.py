"""The alerts about the reactor: Prometheus takes them, each is tested, and each metric that they name is there."""

from __future__ import annotations

import re
from typing import Any

import yaml

from reactor.runtime import telemetry
from rules.core.reasons import Held
from rules.summary import State
from tests.house.test_deploy_files import DEPLOY, run, tool

FOLDER = DEPLOY / "prometheus"
ALERTS, TESTS = FOLDER / "reactor-alerts.yml", FOLDER / "reactor-alerts_test.yml"


def alerts() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def test_prometheus_takes_them() -> None:
    run(tool("promtool"), "check", "rules", ALERTS)


def test_they_fire_when_they_should_and_not_before() -> None:
    run(tool("promtool"), "test", "rules", TESTS)


def test_each_is_shown_to_fire_and_to_be_quiet_when_all_is_well() -> None:
    well, *others = yaml.safe_load(TESTS.read_text())["tests"]
    names = {alert["alert"] for alert in alerts()}
    assert {one["alertname"] for one in well["alert_rule_test"]} == names
    assert not any(one.get("exp_alerts") for one in well["alert_rule_test"])
    firing = {one["alertname"] for test in others for one in test["alert_rule_test"] if one.get("exp_alerts")}
    assert firing == names


def test_each_metric_reason_and_state_that_they_name_is_there() -> None:
    known = {name for metric in telemetry.REGISTRY.collect() for name in (metric.name, f"{metric.name}_total")}
    text = " ".join(alert["expr"] for alert in alerts())
    assert set(re.findall(r"\b(?:reactor|process)_\w+", text)) <= known
    reasons = {word for found in re.findall(r'reason=~?"([^"]+)"', text) for word in found.split("|")}
    assert reasons <= {held.value for held in Held}
    assert set(re.findall(r'state="(\w+)"', text)) <= {state.value for state in State}


def test_each_says_what_to_do() -> None:
    for alert in alerts():
        assert alert["labels"]["severity"] in ("critical", "warning")
        assert {"summary", "do"} == alert["annotations"].keys()
