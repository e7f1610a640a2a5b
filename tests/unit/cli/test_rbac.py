"""`reactor rbac`: the permissions that rules need, by role, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from reactor.cli.main import cli

SETTINGS = """
clusters: {east: {kubeconfig: /nowhere/east}, west: {kubeconfig: /nowhere/west}}
ruleFiles: [rules.yaml]
"""
SOURCES = "sources:\n  - {name: ends, kind: EndpointsWatch, cluster: east, namespace: shop}\n"
TRAFFIC = """  - name: checkout
    kind: TrafficFailover
    mode: %s
    route: {cluster: east, kind: TrafficSplit, namespace: shop, name: checkout}
"""
WORKLOAD = """  - name: web
    kind: WorkloadFailover
    mode: Enforce
    resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web}]
    placement: {clusterAffinity: {clusterNames: [east, west]}}
    failover: {cluster: {purgeMode: Gracefully}}
"""
KARMADA = """  - name: web
    kind: WorkloadFailover
    carrier: Karmada
    mode: Enforce
    resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: web}]
    placement: {clusterAffinity: {clusterNames: [east, west]}}
    failover: {cluster: {purgeMode: Gracefully}}
"""


def printed(folder: Path, rules: str, *words: str, sources: str = SOURCES) -> Result:
    (folder / "rules.yaml").write_text(f"apiVersion: reactor/v1\n{sources}rules:\n{rules}")
    (folder / "reactor.yaml").write_text(SETTINGS.replace("rules.yaml", str(folder / "rules.yaml")))
    return CliRunner().invoke(cli, ["rbac", "-c", str(folder / "reactor.yaml"), *words])


def may(done: Result) -> dict[tuple[str, str], set[str]]:
    """Permissions of each ServiceAccount, by namespace: `verb resource.group[/name]`."""
    assert done.exit_code == 0, done.output
    documents = [one for one in yaml.safe_load_all(done.output) if one]
    roles = {
        (one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]): one["rules"]
        for one in documents
        if one["kind"] in ("Role", "ClusterRole")
    }
    out: dict[tuple[str, str], set[str]] = {}
    for one in documents:
        if one["kind"].endswith("Binding"):
            namespace = one["metadata"].get("namespace", "")
            rules = roles[one["roleRef"]["kind"], namespace, one["roleRef"]["name"]]
            for subject in one["subjects"]:
                out.setdefault((subject["name"], namespace), set()).update(words(rules))
    return out


def words(rules: list[dict[str, Any]]) -> set[str]:
    return {
        f"{verb} {resource}{'.' if group else ''}{group}{'/' if name else ''}{name}"
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    }


LOOKS_AT_ENDPOINTS = {
    f"{verb} {resource}" for verb in ("list", "watch") for resource in ("services", "endpointslices.discovery.k8s.io")
}
WATCHES_SPLITS = {f"{verb} trafficsplits.split.smi-spec.io" for verb in ("get", "list", "watch")}


def test_a_rule_that_rehearses_needs_no_permission_to_write(tmp_path: Path) -> None:
    assert may(printed(tmp_path, TRAFFIC % "DryRun", "--cluster", "east")) == {
        ("reactor-observer", "shop"): LOOKS_AT_ENDPOINTS | WATCHES_SPLITS
    }


@pytest.mark.parametrize(("mode", "options"), [("Enforce", ()), ("Approve", ()), ("DryRun", ("--enforce",))])
def test_a_rule_that_acts_lets_executors_change_its_own_route_only(
    tmp_path: Path, mode: str, options: tuple[str, ...]
) -> None:
    assert may(printed(tmp_path, TRAFFIC % mode, "--cluster", "east", *options)) == {
        ("reactor-observer", "shop"): LOOKS_AT_ENDPOINTS | WATCHES_SPLITS,
        ("reactor-executor", "shop"): {
            "get trafficsplits.split.smi-spec.io/checkout", "patch trafficsplits.split.smi-spec.io/checkout",
            "create events.events.k8s.io",
        },
    }  # fmt: skip


def test_a_rule_that_is_off_needs_nothing(tmp_path: Path) -> None:
    assert may(printed(tmp_path, TRAFFIC % "'Off'", "--cluster", "east")) == {
        ("reactor-observer", "shop"): LOOKS_AT_ENDPOINTS
    }


def test_each_role_has_a_service_account_and_one_process_for_all_roles_has_one(tmp_path: Path) -> None:
    def accounts(*options: str) -> list[str]:
        done = printed(tmp_path, TRAFFIC % "Enforce", "--cluster", "east", "--name", "us", *options)
        documents = [one for one in yaml.safe_load_all(done.output) if one]
        assert {one["metadata"].get("namespace") for one in documents if one["kind"] == "ServiceAccount"} == {"reactor"}
        return [one["metadata"]["name"] for one in documents if one["kind"] == "ServiceAccount"]

    assert accounts() == ["us-receiver", "us-router", "us-observer", "us-decider", "us-executor"]
    assert accounts("--single") == ["us"]
    both = may(printed(tmp_path, TRAFFIC % "Enforce", "--cluster", "east", "--single"))
    assert {name for name, _ in both} == {"reactor"}
    assert both["reactor", "shop"] > WATCHES_SPLITS | {"create events.events.k8s.io"}


def test_workloads_are_placed_evicted_and_removed_in_each_of_their_clusters(tmp_path: Path) -> None:
    for cluster in ("east", "west"):
        found = may(printed(tmp_path, WORKLOAD, "--cluster", cluster, sources=""))
        assert {"create deployments.apps", "patch deployments.apps", "delete deployments.apps"} <= (
            found["reactor-executor", "shop"]
        )
        assert "create pods/eviction" in found["reactor-executor", "shop"]
        assert found["reactor-observer", "shop"] == {"get deployments.apps", "list deployments.apps"}
        assert not any("secrets" in one for one in found["reactor-executor", "shop"]), "it copies no dependencies"


def test_rules_for_karmada_need_the_control_plane_and_nothing_of_its_members(tmp_path: Path) -> None:
    done = printed(tmp_path, KARMADA, sources="")
    assert "# cluster karmada" in done.output
    karmada = may(printed(tmp_path, KARMADA, "--cluster", "karmada", sources=""))
    assert "patch resourcebindings.work.karmada.io" in karmada["reactor-executor", ""]
    assert karmada["reactor-executor", "karmada-system"] == {"get deployments.apps/karmada-controller-manager"}
    assert may(printed(tmp_path, KARMADA, "--cluster", "east", sources="")) == {}


def test_values_of_the_chart_are_for_one_cluster(tmp_path: Path) -> None:
    refused = printed(tmp_path, TRAFFIC % "Enforce", "-o", "helm")
    assert refused.exit_code == 2
    assert "--cluster, one of east, west" in refused.output
    done = printed(tmp_path, TRAFFIC % "Enforce", "-o", "helm", "--cluster", "east")
    grants = yaml.safe_load(done.output)["rbac"]["grants"]
    assert grants.keys() == {"observer", "executor"}
    assert [one["namespace"] for one in grants["executor"]] == ["shop"]
    assert words(grants["observer"][0]["rules"]) == LOOKS_AT_ENDPOINTS | WATCHES_SPLITS


def test_a_rule_file_that_cannot_be_used_is_a_finding_with_its_place(tmp_path: Path) -> None:
    done = printed(tmp_path, "  - {name: checkout, kind: Nonsense}\n")
    assert done.exit_code == 1
    assert "rules.yaml:5" in done.output
