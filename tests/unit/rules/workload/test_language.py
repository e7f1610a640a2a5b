"""Keys of a workload rule: Karmada's policies as people paste them, and all mistakes at once, each in place."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from rules.core.errors import InvalidFiles
from rules.kinds.workload.model import PurgeMode, WorkloadFailover
from rules.loader import RuleSet, load_rules
from tests.unit.rules.builders import rule_set
from tests.unit.rules.workload.builders import divided, placement, workload_rule
from tests.unit.rules.workload.cases_language import errors, errors_of

PASTED = """
  resourceSelectors:
    - apiVersion: apps/v1
      kind: Deployment
      name: nginx
    - apiVersion: apps/v1
      kind: StatefulSet
      name: mysql
  failover:
    application:
      preConditions:
        delaySeconds: 5000
      decisionConditions:
        tolerationSeconds: 200
        healthyState:
        - Unhealthy
  placement:
    clusterAffinity:
      clusterNames:
        - member1
        - member2
"""


def read(text: str) -> WorkloadFailover:
    body = {"name": "pasted", "kind": "WorkloadFailover"} | yaml.safe_load(text)
    found = load_rules([("rules.yaml", yaml.safe_dump({"apiVersion": "reactor/v1", "rules": [body]}))])
    assert found.warnings == ()
    rule = found.rules[0]
    assert isinstance(rule, WorkloadFailover)
    return rule


def test_the_proposals_own_example_is_read_unchanged() -> None:
    rule = read(PASTED)
    assert rule.failover is not None
    assert rule.failover.cluster is None
    application = rule.failover.application
    assert application is not None
    assert application.purge_mode is PurgeMode.GRACEFULLY
    assert (application.grace_seconds, application.block_predecessor_seconds) == (600, 600)
    assert rule.copies_deps


def test_both_spellings_of_the_purge_modes_are_read() -> None:
    for old, new in (("Immediately", "Directly"), ("Graciously", "Gracefully"), ("Never", "Never")):
        loaded = rule_set(workload_rule(failover={"cluster": {"purgeMode": old}})).rules[0]
        assert isinstance(loaded, WorkloadFailover)
        assert loaded.failover is not None
        assert loaded.failover.cluster is not None
        assert loaded.failover.cluster.purge_mode.value == new


@pytest.mark.parametrize("cause", ["application", "cluster"])
def test_null_and_absent_blocks_are_told_apart(cause: str) -> None:
    blocks = [{}, {"blockPredecessorSeconds": None}, {"blockPredecessorSeconds": 0}]
    found = []
    for keys in blocks:
        rule = rule_set(workload_rule(failover={cause: keys})).rules[0]
        assert isinstance(rule, WorkloadFailover)
        found.append(getattr(rule.failover, cause).block_predecessor_seconds)
    assert found == [600, None, 0]


def test_karmadas_own_keys_are_skipped_with_a_warning() -> None:
    keys = {
        "priority": 5, "preemption": "Always", "schedulerName": "mine", "conflictResolution": "Overwrite",
        "preserveResourcesOnDeletion": True, "activationPreference": "Lazy", "association": True,
        "dependentOverrides": ["x"],
        "schedulePriority": {"priorityClassSource": "KubePriorityClass", "priorityClassName": "high"},
    }  # fmt: skip
    warnings = rule_set(workload_rule(**keys)).warnings
    assert {problem.path.rpartition(".")[2] for problem in warnings} == keys.keys()


def test_what_karmada_fills_in_by_itself_is_no_matter() -> None:
    filled = {
        "priority": 0, "preemption": "Never", "schedulerName": "default-scheduler", "conflictResolution": "Abort",
        "suspension": {"dispatching": False},
    }  # fmt: skip
    assert rule_set(workload_rule(**filled)).warnings == ()


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        ({"suspension": {"dispatching": True}}, "suspension"),
        ({"suspension": {"dispatchingOnClusters": {"clusterNames": ["m1"]}}}, "suspension"),
        ({"placement": {"workloadAffinity": {"affinity": {"groupByLabelKey": "a"}}}}, "placement.workloadAffinity"),
        ({"propagateDeps": False}, "propagateDeps"),
        ({"resourceSelectors": []}, "resourceSelectors"),
        ({"policies": {"selector": "a=b"}}, "policies"),
        ({"placement": {"clusterAffinity": {}, "clusterAffinities": [{"affinityName": "a"}]}}, "clusterAffinities"),
        ({"placement": {"clusterAffinities": [{"affinityName": "a"}, {"affinityName": "a"}]}}, "affinityName"),
        ({"placement": {"clusterTolerations": [{"operator": "Equal"}]}}, "operator"),
        ({"placement": {"clusterTolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}}, "value"),
        ({"failover": {"application": {"blockPredecessorSeconds": -1}}}, "blockPredecessorSeconds"),
        ({"failover": {"application": {"preConditions": {"delaySeconds": -1}}}}, "delaySeconds"),
        ({"failover": {"application": {"decisionConditions": {"healthyState": ["Healthy"]}}}}, "healthyState"),
        ({"failover": {"cluster": {"purgeMode": "Never", "gracePeriodSeconds": 5}}}, "gracePeriodSeconds"),
    ],
)
def test_a_contradiction_is_an_error_at_its_place(keys: dict[str, Any], path: str) -> None:
    found = errors(**keys)
    assert len(found) == 1
    assert found[0].path.endswith(path)


def test_a_rule_that_can_never_move_anything_says_so() -> None:
    [warning] = rule_set(workload_rule(failover={})).warnings
    assert warning.path.endswith("failover")


def test_policies_of_a_control_plane_are_carried_by_karmada() -> None:
    rule = workload_rule(carrier="Karmada", policies={"selector": "managed=yes"}, resourceSelectors=[])
    del rule["failover"]
    assert errors_of(rule) == []
    assert [problem.path for problem in errors_of(rule | {"failover": {"cluster": {}}})] == ["rules[0].policies"]


def test_a_misspelt_key_is_an_error_with_a_guess() -> None:
    with pytest.raises(InvalidFiles) as caught:
        rule_set(workload_rule(failover={"cluster": {"gracePeriodsSeconds": 5}}))
    assert "did you mean gracePeriodSeconds?" in str(caught.value)


def test_a_taint_rule_is_about_clusters() -> None:
    rule = {
        "name": "brownout", "kind": "ClusterTaint", "match": "service/**",
        "taints": [{"key": "a", "effect": "NoExecute"}],
    }  # fmt: skip
    assert [problem.path.rpartition(".")[2] for problem in errors_of(rule)] == ["match"]
    assert errors_of(rule | {"match": "cluster/*"}) == []


CLOSED = {"clusterAffinity": {"clusterNames": ["m1", "m2"]}}


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"clusterAffinity": {"clusterNames": ["m1"], "exclude": ["m9"]}}, "exclude[0]: m9 is none of clusterNames"),
        (
            CLOSED | {"replicaScheduling": {"weightPreference": {
                "staticWeightList": [{"targetCluster": {"clusterNames": ["m2", "m9"]}, "weight": 1}]}}},
            "staticWeightList[0].targetCluster.clusterNames[1]: m9 is none of the clusters of clusterAffinity",
        ),
        (CLOSED | {"spreadConstraints": [{"minGroups": 3}]}, "minGroups: 3 clusters are never found"),
    ],
)  # fmt: skip
def test_a_name_that_cannot_be_meant_is_told_at_its_place(keys: dict[str, Any], words: str) -> None:
    (warning,) = rule_set(workload_rule(placement=keys)).warnings
    assert words in str(warning)


def test_a_policy_that_leaves_no_cluster_is_refused() -> None:
    with pytest.raises(InvalidFiles, match="no cluster is left"):
        rule_set(workload_rule(placement={"clusterAffinity": {"clusterNames": ["m1"], "exclude": ["m1"]}}))


@pytest.mark.parametrize("keys", [{}, CLOSED, {"clusterAffinity": {"exclude": ["m9"]}}])
def test_names_that_may_be_meant_are_not_told(keys: dict[str, Any]) -> None:
    assert rule_set(workload_rule(placement=keys)).warnings == ()


@pytest.mark.parametrize(
    ("spread", "warned"),
    [
        ([{"spreadByField": "cluster", "minGroups": 1}], ["[0].maxGroups"]),
        ([{"minGroups": 1, "maxGroups": 2}], []),
        ([{"spreadByField": "region", "minGroups": 1}, {"minGroups": 1, "maxGroups": 2}], ["[0].maxGroups"]),
        ([{"spreadByField": "region", "maxGroups": 1}, {"minGroups": 1}], ["[1].maxGroups"]),
        ([{"spreadByField": "zone", "minGroups": 1}, {"minGroups": 1, "maxGroups": 2}], []),
    ],
    ids=["clusters", "limited", "regions", "clusters of regions", "zones, which its scheduler does not look at"],
)
def test_a_constraint_that_karmadas_scheduler_finds_no_place_for_is_warned_of(
    spread: list[dict[str, Any]], warned: list[str]
) -> None:
    """Karmada's scheduler in these cases: tests/contract/karmada/test_spread.py."""
    own = placement("m1", "m2", "m3", spreadConstraints=spread)
    weights = {"replicaScheduling": divided(m1=1, m2=1, m3=1)}

    def told(carrier: str, more: dict[str, Any]) -> list[str]:
        found = rule_set(workload_rule(carrier=carrier, placement=own | more))
        return [one.path.partition("spreadConstraints")[2] for one in found.warnings if "maxGroups" in one.path]

    assert told("Karmada", {}) == warned
    assert told("Karmada", weights) == []
    assert told("Kubernetes", {}) == []


NEVER = "old copies stay until a person removes them"


@pytest.mark.parametrize(
    ("keys", "warned"),
    [
        ({"failover": {"cluster": {"purgeMode": "Never"}}}, [("failover.cluster.purgeMode", NEVER)]),
        (
            {"failover": {"application": {"decisionConditions": {"tolerationSeconds": 3}}}},
            [("failover.application.decisionConditions.tolerationSeconds", "moves every 3 s")],
        ),
        ({"failover": {"application": {"decisionConditions": {"tolerationSeconds": 0}}}}, []),
        ({"failover": {"application": {"decisionConditions": {"tolerationSeconds": 10}}, "cluster": {}}}, []),
    ],
    ids=["never", "without a pause", "backs off", "bounded"],
)
def test_a_rule_that_bounds_nothing_is_warned_of(keys: dict[str, Any], warned: list[tuple[str, str]]) -> None:
    _warned(rule_set(workload_rule(placement=placement("m1", "m2"), **keys)), warned)


@pytest.mark.parametrize("name", ["application", "cluster"])
def test_what_a_rule_adds_to_policies_is_warned_of_where_it_bounds_nothing(name: str) -> None:
    rule = workload_rule(carrier="Karmada", resourceSelectors=[])
    del rule["failover"], rule["propagateDeps"]
    rule["policies"] = {"selector": "managed=yes", "failover": {name: {"purgeMode": "Never"}}}
    _warned(rule_set(rule), [(f"policies.failover.{name}.purgeMode", NEVER)])
    rule["policies"]["failover"][name] = {"purgeMode": "Gracefully"}
    _warned(rule_set(rule), [])


def _warned(found: RuleSet, expected: list[tuple[str, str]]) -> None:
    words = ("old copies stay", "bad everywhere")
    told = [one for one in found.warnings if any(word in one.message for word in words)]
    assert len(told) == len(expected)
    for one, (path, text) in zip(told, expected, strict=True):
        assert one.path.endswith(path)
        assert text in one.message
