"""`reactor import prometheus`: alerting rules in, sources and Notification rules out."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from reactor.cli.alerting import BadDuration, as_message, seconds
from reactor.cli.main import cli
from rules.bench import tester
from rules.language import loader
from rules.language.matchers import Matchers

ALERTS = """\
groups:
  - name: shop
    interval: 30s
    labels: {team: shop}
    rules:
      - record: job:up:sum
        expr: sum(up)
      - alert: ServiceDown
        expr: |
          up{job="shop"}
            == 0
        for: 5m
        keep_firing_for: 1m30s
        labels: {severity: page, az: '{{ $labels.zone }}'}
        annotations: {summary: '{{ $labels.service }} is down', runbook_url: https://runbooks.example/down}
"""
TARGET = "service/{cluster}/{namespace}/{service}"


def imported(text: str, *words: str) -> Result:
    return CliRunner().invoke(cli, ["import", "prometheus", "--target", TARGET, *words, "-"], input=text)


def file(result: Result) -> dict[str, Any]:
    """What was printed; our own reader has to take it."""
    loader.load([("out.yaml", result.stdout)])
    found: dict[str, Any] = yaml.safe_load(result.stdout)
    return found


def test_an_alert_becomes_a_webhook_source_and_a_rule_that_waits_as_the_alert_did() -> None:
    result = imported(ALERTS)
    found = file(result)
    [source], [rule] = found["sources"], found["rules"]
    assert (source["kind"], source["target"]) == ("AlertmanagerWebhook", TARGET)
    assert (rule["kind"], rule["mode"], rule["match"]) == ("Notification", "DryRun", "service/*/*/*")
    assert (rule["tolerationSeconds"], rule["recoverySeconds"], rule["signals"]) == (300, 90, ["ServiceDown"])
    assert result.exit_code == 0


def test_the_source_takes_this_alert_and_no_other() -> None:
    [source] = file(imported(ALERTS))["sources"]
    matchers = Matchers.parse(",".join(source["matchers"]))
    assert matchers.matches({"alertname": "ServiceDown", "severity": "page", "team": "shop", "az": "any"})
    assert not matchers.matches({"alertname": "ServiceDown", "severity": "warning", "team": "shop"})
    assert not matchers.matches({"alertname": "Other", "severity": "page", "team": "shop"})


def test_the_report_says_what_came_along_and_what_did_not_with_its_line() -> None:
    lines = imported(ALERTS).stderr.splitlines()
    told = {int(line.split(":")[1]): line for line in lines if line.startswith("<stdin>")}
    assert "passed over: recording rule job:up:sum" in told[6]
    assert any(line.startswith("<stdin>:8:9: carried over: ") and "/v1/alerts/ServiceDown" in line for line in lines)
    assert any("nothing could confirm" in line for line in lines)
    assert "for is tolerationSeconds now: take it out of the alert" in told[12]
    assert "keep_firing_for is recoverySeconds now" in told[13]
    assert "not carried over: a template makes its value" in told[14]
    assert "not carried over: runbook_url" in told[15]


def test_as_query_the_expression_is_asked_as_often_as_its_group_was() -> None:
    result = imported(ALERTS, "--as", "query", "--prometheus", "infra")
    found = file(result)
    [source], [rule] = found["sources"], found["rules"]
    assert source["query"] == 'up{job="shop"}\n  == 0'
    assert (source["prometheus"], source["everySeconds"]) == ("infra", 30)
    assert rule["message"] == "{service} is down ({target} is {status} since {since})"
    assert "add up" not in result.stderr


def test_a_label_that_only_the_alert_has_is_written_out_for_a_query() -> None:
    text = ALERTS.replace("severity: page", "cluster: east/1")
    [source] = file(imported(text, "--as", "query"))["sources"]
    assert source["target"] == "service/east%2F1/{namespace}/{service}"


def test_as_query_the_rule_speaks_when_the_alert_would_have_fired() -> None:
    result = imported(ALERTS, "--as", "query")
    played = {
        "apiVersion": "reactor/v1", "ruleFiles": ["rules.yaml"],
        "tests": [{
            "name": "five minutes", "intervalSeconds": 60,
            "inputs": [{"target": "service/a/b/c", "signal": "ServiceDown", "values": "Healthy Unhealthy x7"}],
            "expect": [{"at": 360, "action": "Notify", "rule": "ServiceDown"}],
        }],
    }  # fmt: skip
    suite = tester.load(yaml.safe_dump(played), "played_test.yaml", lambda _: result.stdout)
    assert [outcome.name for outcome in tester.run(suite) if not outcome.passed] == []


@pytest.mark.parametrize("interval", ["0s", "often"])
def test_a_group_without_a_usable_interval_is_asked_every_15_seconds(interval: str) -> None:
    result = imported(ALERTS.replace("interval: 30s", f"interval: {interval}"), "--as", "query")
    assert file(result)["sources"][0]["everySeconds"] == 15
    assert ("15 s instead" in result.stderr) is (interval == "often")


def test_prometheus_rule_objects_are_read_with_their_lines() -> None:
    inner = "\n".join(f"    {line}" for line in ALERTS.splitlines())
    text = f"""\
items:
- apiVersion: monitoring.coreos.com/v1
  kind: PrometheusRule
  metadata: {{name: a}}
  spec:
{inner}
- kind: ConfigMap
  apiVersion: v1
"""
    result = imported(text)
    assert [rule["name"] for rule in file(result)["rules"]] == ["ServiceDown"]
    assert "<stdin>:13:13: carried over: items[0].spec.groups[0].rules[1]" in result.stderr
    assert "passed over: ConfigMap has no groups of Prometheus rules" in result.stderr


def test_the_same_alert_for_two_severities_makes_two_rules() -> None:
    text = (
        "groups: [{name: a, rules: [{alert: A, expr: x, labels: {severity: page}}, "
        "{alert: A, expr: y, labels: {severity: info}}]}]"
    )
    found = file(imported(text))
    assert [rule["name"] for rule in found["rules"]] == ["A", "A-2"]
    assert [source["matchers"][1] for source in found["sources"]] == ['severity="page"', 'severity="info"']


def test_alerts_can_be_chosen_by_name() -> None:
    text = "groups: [{name: a, rules: [{alert: KubeDown, expr: x}, {alert: Other, expr: y}]}]"
    assert [rule["name"] for rule in file(imported(text, "--alert", "Kube*"))["rules"]] == ["KubeDown"]


def test_without_a_target_each_alert_is_one_of_its_own() -> None:
    result = CliRunner().invoke(cli, ["import", "prometheus", "--as", "query", "-"], input=ALERTS)
    assert file(result)["sources"][0]["target"] == "custom/alerts/ServiceDown"


def test_a_summary_that_calculates_is_not_carried_over_and_told() -> None:
    text = ALERTS.replace("{{ $labels.service }} is down", "{{ $value | humanize }} are down")
    result = imported(text, "--as", "query")
    assert file(result)["rules"][0]["message"].startswith("ServiceDown: ")
    assert "they calculate" in result.stderr


@pytest.mark.parametrize("bad", ["for: 5x", "for: [1]", "keep_firing_for: -5m", "expr: [1]", "expr: null"])
def test_an_alert_that_cannot_be_read_is_told_and_the_others_are_made(bad: str) -> None:
    text = f"groups: [{{name: a, rules: [{{alert: Good, expr: y}}, {{alert: Bad, expr: x, {bad}}}]}}]"
    if bad.startswith("expr"):
        text = text.replace("expr: x, ", "")
    result = imported(text)
    assert [rule["name"] for rule in file(result)["rules"]] == ["Good"]
    assert (result.exit_code, "alert Bad" in result.stderr) == (1, True)


@pytest.mark.parametrize("text", ["", "{}", "groups: 5", "groups: [5]", "groups: [{rules: [5]}]", "items: [5]"])
def test_nothing_to_import_is_an_error_and_no_trace(text: str) -> None:
    result = imported(text)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no alerting rule that can be used" in result.stderr


@pytest.mark.parametrize(
    "odd", ["labels: 5", "labels: [a]", "annotations: 5", "annotations: [a]", "labels: {a: null}", "for: 0"]
)
def test_odd_labels_and_annotations_are_no_trace(odd: str) -> None:
    for way in ("webhook", "query"):
        result = imported(f"groups: [{{name: a, rules: [{{alert: A, expr: x, {odd}}}]}}]", "--as", way)
        assert (result.exit_code, len(file(result)["rules"])) == (0, 1)


def test_a_target_that_is_none_is_a_wrong_command_line() -> None:
    assert imported(ALERTS, "--target", "shop/{service}").exit_code == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0), (0, 0), ("0s", 0), ("5m", 300), ("1h30m", 5400), ("1d", 86_400), ("1w", 604_800), ("100ms", 0.1)],
)
def test_durations_are_prometheus_own(text: object, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "5", "m", "-5m", "5m1h", "1.5h", "5 m", None])
def test_what_prometheus_takes_for_no_duration_is_none(text: object) -> None:
    with pytest.raises(BadDuration, match="write 30s"):
        seconds(text)


def test_a_summary_goes_before_a_description() -> None:
    both = {"summary": "{{ .Labels.a }} short", "description": "long"}
    assert as_message(both) == "{a} short ({target} is {status} since {since})"
    assert as_message({"description": "long"}) == "long ({target} is {status} since {since})"
    assert as_message({"summary": "{{ $value }}", "description": "long"}) is not None
