"""`reactor import karmada`: policies in, rules out, and a word about everything that could not come along."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from reactor.cli.main import cli
from rules import loader

NGINX = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: nginx-propagation, namespace: shop}
spec:
  propagateDeps: true
  resourceSelectors:
    - {apiVersion: apps/v1, kind: Deployment, name: nginx}
  failover:
    application:
      preConditions: {delaySeconds: 60, healthyState: Healthy}
      decisionConditions: {tolerationSeconds: 200}
      purgeMode: Graciously
      gracePeriodSeconds: 600
  placement:
    clusterAffinity: {clusterNames: [member1, member2]}
"""


def imported(text: str, *words: str) -> Result:
    return CliRunner().invoke(cli, ["import", "karmada", *words, "-"], input=text)


def rules(result: Result) -> list[dict[str, Any]]:
    """The rules that were printed; our own reader has to take them."""
    loader.load_rules([("out.yaml", result.stdout)])
    found: list[dict[str, Any]] = yaml.safe_load(result.stdout)["rules"]
    return found


def test_a_policy_becomes_a_rule_that_does_nothing_yet() -> None:
    result = imported(NGINX)
    [rule] = rules(result)
    assert result.exit_code == 0, result.stderr
    assert (rule["name"], rule["mode"], rule["carrier"]) == ("shop-nginx-propagation", "DryRun", "Karmada")
    assert rule["failover"] == yaml.safe_load(NGINX)["spec"]["failover"]
    assert result.stderr.splitlines() == [
        "<stdin>:2:1: carried over: PropagationPolicy shop/nginx-propagation as rule shop-nginx-propagation",
        "1 rule in mode DryRun, 0 remarks",
    ]


def test_a_policy_selects_in_its_own_namespace() -> None:
    [rule] = rules(imported(NGINX))
    assert rule["resourceSelectors"][0]["namespace"] == "shop"


def test_a_cluster_policy_selects_in_all() -> None:
    [rule] = rules(imported(NGINX.replace("kind: PropagationPolicy", "kind: ClusterPropagationPolicy")))
    assert "namespace" not in rule["resourceSelectors"][0]


def test_the_carrier_can_be_chosen() -> None:
    [rule] = rules(imported(NGINX, "--carrier", "Kubernetes"))
    assert rule["carrier"] == "Kubernetes"


def test_a_key_that_means_nothing_here_is_left_out_and_told_with_its_place() -> None:
    result = imported(NGINX + "  priority: 3\n  schedulerName: other\n  futureKey: {a: 1}\n")
    [rule] = rules(result)
    assert result.exit_code == 0
    assert not {"priority", "schedulerName", "futureKey"} & rule.keys()
    lines = result.stderr.splitlines()
    assert any(line.startswith("<stdin>:17:") and "spec.priority" in line for line in lines), result.stderr
    assert all(any(key in line for line in lines) for key in ("schedulerName", "futureKey"))
    assert all("PropagationPolicy shop/nginx-propagation" in line for line in lines[:-1])


def test_a_policy_that_contradicts_itself_is_no_rule_and_the_others_are() -> None:
    bad = NGINX.replace("Graciously", "Never").replace("name: nginx-propagation", "name: bad")
    result = imported(f"{NGINX}---{bad}")
    assert [rule["name"] for rule in rules(result)] == ["shop-nginx-propagation"]
    assert result.exit_code == 1
    assert "PropagationPolicy shop/bad: only goes with purgeMode Gracefully" in result.stderr


def test_a_suspended_policy_is_refused() -> None:
    result = imported(NGINX + "  suspension: {dispatching: true}\n")
    assert (result.exit_code, "suspended" in result.stderr) == (1, True)


def test_a_policy_without_failover_is_told_to_move_nothing() -> None:
    text = yaml.safe_load(NGINX)
    del text["spec"]["failover"]
    result = imported(yaml.safe_dump(text))
    assert (result.exit_code, "will never move anything" in result.stderr) == (0, True)


def test_a_list_as_kubectl_prints_it_is_read_with_its_lines() -> None:
    one = yaml.safe_load(NGINX)
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [one, other, yaml.safe_load(NGINX)]})
    result = imported(text)
    assert [rule["name"] for rule in rules(result)] == ["shop-nginx-propagation", "shop-nginx-propagation-2"]
    assert "skipped: ConfigMap is not a policy" in result.stderr


def test_documents_keep_the_lines_of_their_file() -> None:
    result = imported(f"{NGINX}--- \n# a comment\nkind: Deployment\nmetadata: {{name: x}}\n")
    assert "<stdin>:19:1: warning: skipped: Deployment is not a policy" in result.stderr


@pytest.mark.parametrize("text", ["", "{}", "- 1", "kind: PropagationPolicy\napiVersion: v1\n", "[" * 5000])
def test_nothing_to_import_is_an_error(text: str) -> None:
    result = imported(text)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "that can be used" in result.stderr


@pytest.mark.parametrize("spec", ["null", "5", "{resourceSelectors: 7}", "{placement: [1]}", "{failover: {x: 1}}"])
def test_an_odd_spec_is_told_without_a_traceback(spec: str) -> None:
    head = NGINX.partition("spec:")[0]
    result = imported(f"{head}spec: {spec}\n")
    assert result.exit_code == 1
    assert "PropagationPolicy shop/nginx-propagation" in result.stderr
    assert result.exception is None or isinstance(result.exception, SystemExit)


def test_texts_that_look_like_something_else_stay_texts() -> None:
    text = NGINX.replace("name: nginx}", "labelSelector: {matchLabels: {a: '1e3', b: '0o7', c: 'no', d: '1:30'}}}")
    [rule] = rules(imported(text))
    labels = {"a": "1e3", "b": "0o7", "c": "no", "d": "1:30"}
    assert rule["resourceSelectors"][0]["labelSelector"]["matchLabels"] == labels


def test_the_rules_can_go_to_a_file(tmp_path: Path) -> None:
    target = tmp_path / "workloads.yaml"
    result = imported(NGINX, "--output-file", str(target))
    assert (result.exit_code, result.stdout) == (0, "")
    assert CliRunner().invoke(cli, ["check", str(target)]).exit_code == 0


def test_the_group_lists_what_can_be_imported() -> None:
    result = CliRunner().invoke(cli, ["import", "--help"])
    assert (result.exit_code, "karmada" in result.output) == (0, True)
