"""`reactor import prometheus`: alerting rules in, sources and Notification rules out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from reactor.cli.main import cli
from reactor.cli.shared.alerting import BadDuration, as_message, seconds
from rules import loader
from rules.rehearsal.rule_tests import tester
from rules.rulefile.matchers import Matchers

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


def bare(text: str, *words: str) -> Result:
    """Without --target: each alert by its labels."""
    return CliRunner().invoke(cli, ["import", "prometheus", *words, "-"], input=text)


def group(*expressions: str, annotations: str = "{}") -> str:
    rules = [f"{{alert: A{index}, expr: {one!r}, annotations: {annotations}}}" for index, one in enumerate(expressions)]
    return f"groups: [{{name: g, rules: [{', '.join(rules)}]}}]"


def file(result: Result) -> dict[str, Any]:
    """Printed rule file; our own reader has to take it."""
    loader.load_rules([("out.yaml", result.stdout)])
    found: dict[str, Any] = yaml.safe_load(result.stdout)
    return found


def test_an_alert_becomes_a_webhook_source_and_a_rule_that_adds_no_waiting_to_prometheus_own() -> None:
    result = imported(ALERTS)
    found = file(result)
    [source], [rule] = found["sources"], found["rules"]
    assert (source["kind"], source["target"]) == ("AlertmanagerWebhook", TARGET)
    assert (rule["kind"], rule["mode"], rule["match"]) == ("Notification", "DryRun", "service/*/*/*")
    assert (rule["signals"], rule.keys() & {"tolerationSeconds", "recoverySeconds"}) == ([source["name"]], set())
    assert result.exit_code == 0


def test_the_source_takes_the_alerts_of_its_group_and_no_other() -> None:
    text = "groups: [{name: shop, rules: [{alert: Down, expr: up == 0}, {alert: A.b, expr: up == 2}]}]"
    [source] = file(imported(text, "--target", "custom/i/{instance}"))["sources"]
    matchers = Matchers.parse(",".join(source["matchers"]))
    assert [matchers.matches({"alertname": name}) for name in ("Down", "A.b", "Axb", "Other")] == [
        True, True, False, False,
    ]  # fmt: skip


def test_the_report_says_what_came_along_and_what_did_not_with_its_line_and_counts_it() -> None:
    lines = imported(ALERTS).stderr.splitlines()
    assert any(
        line.startswith("<stdin>:6:7: ") and "recording rules are not alerts: job:up:sum" in line for line in lines
    )
    assert any(line.startswith("<stdin>:8:9: carried over: ") and "1 alert of group shop (ServiceDown)" in line
               and "/v1/alerts/shop-alerts" in line for line in lines)  # fmt: skip
    assert any("nothing could confirm" in line for line in lines)
    assert lines[-2] == "1 of 1 alerting rule converted"


def test_as_query_the_expression_is_asked_as_often_as_its_group_was() -> None:
    result = imported(ALERTS, "--as", "query", "--prometheus", "infra")
    found = file(result)
    [source], [rule] = found["sources"], found["rules"]
    assert source["query"] == 'up{job="shop"}\n  == 0'
    assert (source["prometheus"], source["everySeconds"]) == ("infra", 30)
    assert rule["message"] == "{service} is down ({target} is {status} since {since})"
    assert (rule["tolerationSeconds"], rule["recoverySeconds"]) == (300, 90)
    assert "not carried over: labels az, severity and annotations runbook_url" in result.stderr


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
            "expect": [{"at": 360, "action": "Notify", "rule": "shop-alerts"}],
        }],
    }  # fmt: skip
    suite = tester.load_suite(yaml.safe_dump(played), "played_test.yaml", lambda _: result.stdout)
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
    assert [rule["name"] for rule in file(result)["rules"]] == ["shop-alerts"]
    assert "<stdin>:13:13: carried over: items[0].spec.groups[0].rules[1]" in result.stderr
    assert "skipped: ConfigMap has no groups of Prometheus rules" in result.stderr


def test_the_same_alert_for_two_severities_is_one_source_and_one_rule() -> None:
    text = (
        "groups: [{name: a, rules: [{alert: A, expr: x, labels: {severity: page}}, "
        "{alert: A, expr: y, labels: {severity: info}}]}]"
    )
    result = imported(text)
    found = file(result)
    assert [source["matchers"] for source in found["sources"]] == [['alertname=~"A"']]
    assert len(found["rules"]) == 1
    assert "2 of 2 alerting rules converted" in result.stderr


def test_alerts_can_be_chosen_by_name() -> None:
    text = "groups: [{name: a, rules: [{alert: KubeDown, expr: x}, {alert: Other, expr: y}]}]"
    [source] = file(imported(text, "--alert", "Kube*"))["sources"]
    assert source["matchers"] == ['alertname=~"KubeDown"']


def test_a_summary_of_one_alert_is_the_message_and_several_have_a_plain_one() -> None:
    one = "groups: [{name: a, rules: [{alert: A, expr: up == 0, annotations: {summary: 'x {{ $labels.job }}'}}"
    assert file(bare(one + "]}]", "--as", "query"))["rules"][0]["message"].startswith("x {job} (")
    both = file(bare(one + ", {alert: B, expr: up == 0}]}]", "--as", "query"))
    assert [rule["message"] for rule in both["rules"]] == ["{target} is {status} since {since}: {detail}"]


def test_a_summary_that_calculates_is_not_carried_over() -> None:
    text = ALERTS.replace("{{ $labels.service }} is down", "{{ $value | humanize }} are down")
    result = imported(text, "--as", "query")
    assert file(result)["rules"][0]["message"] == "{target} is {status} since {since}: {detail}"


@pytest.mark.parametrize("bad", ["for: 5x", "for: [1]", "keep_firing_for: -5m", "expr: [1]", "expr: null"])
def test_an_alert_that_cannot_be_read_is_told_and_the_others_are_made(bad: str) -> None:
    text = f"groups: [{{name: a, rules: [{{alert: Good, expr: y}}, {{alert: Bad, expr: x, {bad}}}]}}]"
    if bad.startswith("expr"):
        text = text.replace("expr: x, ", "")
    result = imported(text)
    assert [source["matchers"] for source in file(result)["sources"]] == [['alertname=~"Good"']]
    assert (result.exit_code, "alert Bad" in result.stderr) == (1, True)


@pytest.mark.parametrize("text", ["", "{}", "groups: 5", "groups: [5]", "groups: [{rules: [5]}]", "items: [5]"])
def test_nothing_to_import_is_an_error_without_a_traceback(text: str) -> None:
    result = imported(text)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no alerting rule that can be used" in result.stderr


@pytest.mark.parametrize(
    "odd", ["labels: 5", "labels: [a]", "annotations: 5", "annotations: [a]", "labels: {a: null}", "for: 0"]
)
def test_odd_labels_and_annotations_end_without_a_traceback(odd: str) -> None:
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


@pytest.mark.parametrize(
    ("expression", "words", "target"),
    [
        ("node_load1 > 5", (), "custom/instance/{instance}"),
        ("sum by (job) (rate(errors[5m])) > 1", (), "custom/job/{job}"),
        ("sum by (instance, job) (x) > 1", (), "custom/instance/{instance}"),
        ("sum by (namespace, deployment) (x) > 1", ("--cluster", "east/1"),
         "workload/east%2F1/{namespace}/Deployment/{deployment}"),
        ("sum by (cluster, namespace, pod) (x) > 1", (), "workload/{cluster}/{namespace}/Pod/{pod}"),
        ("max by (node) (kube_node_x) > 1", ("--cluster", "east"), "node/east/{node}"),
        ("sum by (namespace, service) (x) > 1", ("--cluster", "east"), "service/east/{namespace}/{service}"),
    ],
)  # fmt: skip
def test_the_closest_target_that_an_alert_has_the_labels_of(
    expression: str, words: tuple[str, ...], target: str
) -> None:
    for way in ("webhook", "query"):
        result = bare(group(expression), "--as", way, *words)
        assert [source["target"] for source in file(result)["sources"]] == [target]
        assert result.exit_code == 0


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("sum(rate(errors[5m])) > 1", "the result has no label"),
        ("sum by (topic) (x) > 1", "no label names an instance"),
        ("kube_pod_status_ready == 0", "no label names an instance"),
        ("absent(up)", "absent() is about missing series"),
        ("max by (node) (kube_node_x) > 1", "use --cluster NAME"), ("sum(", "cannot be read as PromQL"),
    ],
)  # fmt: skip
def test_an_alert_without_a_target_is_left_out_with_its_reason_and_counted(expression: str, reason: str) -> None:
    result = bare(group("up == 0", expression))
    assert [source["matchers"] for source in file(result)["sources"]] == [['alertname=~"A0"']]
    lines = result.stderr.splitlines()
    assert any("left out: 1 alert of group g (A1): " in line and reason in line for line in lines), lines
    assert "1 of 2 alerting rules converted" in lines
    assert any(line.startswith("  1 left out: ") and reason in line for line in lines), lines
    assert result.exit_code == 0


def test_labels_that_an_alerts_own_text_names_are_labels_of_its_series() -> None:
    text = group("kube_x == 0", annotations="{summary: '{{ $labels.namespace }}/{{ $labels.deployment }}'}")
    [source] = file(bare(text, "--cluster", "east"))["sources"]
    assert source["target"] == "workload/east/{namespace}/Deployment/{deployment}"


def test_a_target_whose_labels_an_aggregation_removes_is_left_out() -> None:
    result = imported(group("sum by (job) (up) == 0"), "--as", "query")
    assert (result.exit_code, "no series has the label cluster" in result.stderr) == (1, True)


def test_what_is_written_passes_check_without_a_word() -> None:
    text = group("up == 0", "sum by (job) (x) > 1", "max by (node) (kube_node_x) > 1", "node_load1 > 5")
    for way in ("webhook", "query"):
        result = bare(text, "--as", way, "--cluster", "east")
        assert loader.load_rules([("out.yaml", result.stdout)]).warnings == ()
        assert len(file(result)["rules"]) == 3


def test_alerts_of_one_group_that_wait_for_as_long_are_one_rule() -> None:
    rules = ", ".join(
        f"{{alert: A{number}, expr: up == {number}, for: {wait}}}" for number, wait in enumerate(("5m", "5m", "1h"))
    )
    found = file(bare(f"groups: [{{name: g, rules: [{rules}]}}]", "--as", "query"))
    assert [(rule["signals"], rule["tolerationSeconds"]) for rule in found["rules"]] == [
        (["A0", "A1"], 300), (["A2"], 3600)
    ]  # fmt: skip


def test_a_group_with_more_names_than_a_matcher_takes_is_several_sources_of_one_rule() -> None:
    text = (
        "groups: [{name: g, rules: [" + ", ".join(f"{{alert: {'A' * 90}{n}, expr: up == 0}}" for n in range(70)) + "]}]"
    )
    found = file(bare(text))
    assert len(found["sources"]) == 3
    assert [len(rule["signals"]) for rule in found["rules"]] == [3]


def named_in(folder: Path, *files: str) -> list[str]:
    for file_ in files:
        (folder / file_).parent.mkdir(exist_ok=True)
        (folder / file_).write_text(group("up == 0"), "utf-8")
    result = CliRunner().invoke(cli, ["import", "prometheus", *(str(folder / file_) for file_ in files)])
    return [rule["name"] for rule in file(result)["rules"]]


def test_groups_of_one_name_are_told_apart_by_their_file_or_its_folder(tmp_path: Path) -> None:
    assert named_in(tmp_path, "shop/alerts.yml") == ["g-instance"]
    assert named_in(tmp_path, "shop/web.yml", "shop/api.yml") == ["web-g-instance", "api-g-instance"]
    assert named_in(tmp_path, "shop/up.yml", "cart/up.yml") == ["shop-g-instance", "cart-g-instance"]
    both = named_in(tmp_path, "shop/web.yml", "shop/api.yml", "cart/web.yml")
    assert both == ["shop-web-g-instance", "shop-api-g-instance", "cart-web-g-instance"]


def test_groups_of_one_name_in_objects_are_told_apart_by_their_namespace() -> None:
    head = "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\n"
    text = "\n---\n".join(
        f"{head}metadata: {{namespace: {namespace}, name: rules}}\nspec:\n  {group('up == 0')}"
        for namespace in ("shop", "cart")
    )
    assert [rule["name"] for rule in file(bare(text))["rules"]] == ["shop-g-instance", "cart-g-instance"]
