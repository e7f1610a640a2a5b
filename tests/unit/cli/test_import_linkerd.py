"""`reactor import linkerd`: TrafficSplits in, rules out that do what linkerd-failover did for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from reactor.cli.main import cli
from rules import loader
from rules.rehearsal.rule_tests import tester

SPLIT = """
apiVersion: split.smi-spec.io/v1alpha2
kind: TrafficSplit
metadata:
  name: sample-svc
  namespace: shop
  annotations: {failover.linkerd.io/primary-service: sample-svc}
  labels: {failover.linkerd.io/controlled-by: linkerd-failover}
spec:
  service: sample-svc
  backends:
    - {service: sample-svc, weight: 1}
    - {service: sample-svc-central1, weight: 0}
    - {service: sample-svc-east1, weight: 0}
"""
PLAYED = """
apiVersion: reactor/v1
ruleFiles: [rules.yaml]
tests:
  - name: as linkerd-failover does
    intervalSeconds: 5
    inventory:
      - route:
          cluster: east
          kind: TrafficSplit
          namespace: shop
          name: sample-svc
          labels: {failover.linkerd.io/controlled-by: linkerd-failover}
          annotations: {failover.linkerd.io/primary-service: sample-svc}
          backends:
            - {service: sample-svc, weight: 1}
            - {service: sample-svc-central1, weight: 0}
            - {service: sample-svc-east1, weight: 0}
    inputs:
      - {target: service/east/shop/sample-svc, signal: endpoints, values: "Healthy x2 Unhealthy x4 Healthy"}
      - {target: service/east/shop/sample-svc-central1, signal: endpoints, values: "Healthy x4 Unhealthy x3"}
      - {target: service/east/shop/sample-svc-east1, signal: endpoints, values: "Healthy x7"}
    expect:
      - {at: 10, action: SetWeights, weights: {sample-svc: 0, sample-svc-central1: 1, sample-svc-east1: 1}}
      - {at: 20, action: SetWeights, weights: {sample-svc: 0, sample-svc-central1: 0, sample-svc-east1: 1}}
      - {at: 30, action: SetWeights, weights: {sample-svc: 1, sample-svc-central1: 0, sample-svc-east1: 0}}
"""


def imported(text: str, *words: str) -> Result:
    return CliRunner().invoke(cli, ["import", "linkerd", "--cluster", "east", *words, "-"], input=text)


def rules(result: Result) -> list[dict[str, Any]]:
    """The rules that were printed; our own checks have nothing to say about them."""
    assert loader.examine([("out.yaml", result.stdout)]).hints() == []
    assert loader.load_rules([("out.yaml", result.stdout)]).warnings == ()
    found: list[dict[str, Any]] = yaml.safe_load(result.stdout)["rules"]
    return found


@pytest.mark.parametrize("words", [(), ("--selector",)])
def test_the_rules_do_what_linkerd_failover_did(words: tuple[str, ...]) -> None:
    result = imported(SPLIT, *words)
    suite = tester.load_suite(PLAYED, "played_test.yaml", lambda _: result.stdout)
    assert [outcome.name for outcome in tester.run(suite) if not outcome.passed] == []


def test_a_split_becomes_a_rule_and_is_told_with_its_place() -> None:
    result = imported(SPLIT)
    [rule] = rules(result)
    assert (rule["name"], rule["mode"], rule["primary"]) == ("shop-sample-svc", "DryRun", "sample-svc")
    assert result.exit_code == 0
    carried = "TrafficSplit shop/sample-svc as rule shop-sample-svc: 3 backends, primary sample-svc"
    assert result.stderr == f"<stdin>:2:1: carried over: {carried}\n1 rule in mode DryRun, 0 remarks\n"


def test_with_selector_one_rule_replaces_all() -> None:
    two = SPLIT.replace("name: sample-svc\n", "name: other\n", 1)
    result = imported(f"{SPLIT}---{two}", "--selector")
    [rule] = rules(result)
    assert rule["route"] == {
        "cluster": "east", "kind": "TrafficSplit", "selector": "failover.linkerd.io/controlled-by=linkerd-failover"
    }  # fmt: skip
    assert result.stderr.count("as rule linkerd-failover") == 2


def test_a_split_without_the_label_is_left_alone_as_linkerd_failover_does() -> None:
    other = SPLIT.replace("failover.linkerd.io/controlled-by: linkerd-failover", "app: x").replace("name: s", "name: t")
    result = imported(f"{SPLIT}---{other}")
    assert len(rules(result)) == 1
    assert "warning: metadata: skipped: TrafficSplit shop/tample-svc does not have the label" in result.stderr
    assert result.exit_code == 0


def test_another_label_can_be_meant() -> None:
    result = imported(SPLIT, "--label", "failover.linkerd.io/controlled-by")
    assert len(rules(result)) == 1
    assert imported(SPLIT, "--label", "a=(").exit_code == 2


def test_without_the_annotation_the_first_backend_is_primary_and_it_is_told() -> None:
    result = imported(SPLIT.replace("  annotations: {failover.linkerd.io/primary-service: sample-svc}\n", ""))
    [rule] = rules(result)
    assert rule["primary"] == "sample-svc"
    assert "the first backend, sample-svc, is the primary" in result.stderr


def test_a_primary_that_is_no_backend_makes_no_rule() -> None:
    result = imported(SPLIT.replace("primary-service: sample-svc", "primary-service: simple-svc"))
    assert (result.exit_code, result.stdout) == (1, "")
    assert "<stdin>:7:54: metadata.annotations.failover.linkerd.io/primary-service: " in result.stderr


def test_weights_that_linkerd_failover_never_kept_are_told() -> None:
    result = imported(SPLIT.replace("central1, weight: 0", "central1, weight: 30"))
    assert rules(result)
    assert "<stdin>:13:46: warning: spec.backends[1].weight" in result.stderr


@pytest.mark.parametrize("weight", ["500m", "-1", "0.5", "null"])
def test_an_odd_weight_makes_no_rule_and_the_others_are_made(weight: str) -> None:
    bad = SPLIT.replace("weight: 1", f"weight: {weight}").replace("name: sample-svc\n", "name: bad\n", 1)
    result = imported(f"{bad}---{SPLIT}")
    assert [rule["name"] for rule in rules(result)] == ["shop-sample-svc"]
    assert (result.exit_code, "TrafficSplit shop/bad: spec.backends[0].weight" in result.stderr) == (1, True)


def test_a_split_with_one_backend_is_told_to_have_nowhere_to_go() -> None:
    head = SPLIT.partition("    - {service: sample-svc-central1")[0]
    result = imported(head)
    assert (result.exit_code, "only one backend" in result.stderr) == (0, True)


@pytest.mark.parametrize("text", ["", "{}", "kind: Service\napiVersion: v1\n", "items: 5\n", "kind: TrafficSplit\n"])
def test_nothing_to_import_is_an_error(text: str) -> None:
    result = imported(text)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no TrafficSplit with that label that can be used" in result.stderr


@pytest.mark.parametrize("spec", ["null", "5", "{}", "{backends: {}}", "{backends: [1]}", "{backends: [{weight: 1}]}"])
def test_an_odd_spec_is_told_without_a_traceback(spec: str) -> None:
    result = imported(f"{SPLIT.partition('spec:')[0]}spec: {spec}\n")
    assert result.exit_code == 1
    assert "TrafficSplit shop/sample-svc" in result.stderr
    assert result.exception is None or isinstance(result.exception, SystemExit)


def test_the_rules_can_go_to_a_file(tmp_path: Path) -> None:
    target = tmp_path / "shop.yaml"
    assert imported(SPLIT, "--output-file", str(target)).stdout == ""
    assert CliRunner().invoke(cli, ["check", "--strict", str(target)]).exit_code == 0


def test_a_file_that_cannot_be_written_is_told_without_a_traceback(tmp_path: Path) -> None:
    result = imported(SPLIT, "--output-file", str(tmp_path / "no" / "shop.yaml"))
    assert (result.exit_code, "shop.yaml:1:1: cannot be written: No such file" in result.stderr) == (1, True)


def test_the_report_of_a_fleet_is_short_and_says_in_full_what_did_not_come_along() -> None:
    splits = [SPLIT.replace("name: sample-svc\n", f"name: sample-{number}\n", 1) for number in range(200)]
    odd = SPLIT.replace("name: sample-svc\n", "name: odd\n", 1).replace("weight: 1", "weight: many")
    result = imported("---\n".join([*splits, odd]))
    lines = result.stderr.splitlines()
    assert len(yaml.safe_load(result.stdout)["rules"]) == 200
    assert len(lines) < 30
    assert "and 180 more carried over: see the rules" in lines
    assert any(("odd" in line and "error" not in line) or "weight" in line for line in lines)
