"""Cases about validation and defaults, applied to the rule file's own reader: its messages and their places."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from rules.core.errors import InvalidFiles, Problem
from rules.kinds.workload.model import ApplicationFailover
from tests.unit.rules.builders import rule_set
from tests.unit.rules.workload.builders import workload_rule

Case = dict[str, Any]


def errors(**keys: Any) -> list[Problem]:
    """The errors of a rule with these keys, in the order of the file."""
    return errors_of(workload_rule(**keys))


def errors_of(rule: dict[str, Any]) -> list[Problem]:
    try:
        rule_set(rule)
    except InvalidFiles as error:
        return sorted(problem for problem in error.problems if problem.severity == "error")
    return []


APPLICATION = {
    ("tolerationSeconds", "must be 0 or more"): "toleration_negative",
    ("gracePeriodSeconds", "only goes with purgeMode Gracefully"): "grace_without_gracefully",
    ("gracePeriodSeconds", "must be more than 0"): "grace_not_positive",
    ("aliasLabelName", "is no label's key"): "bad_label",
}
SPREAD = {
    ("spreadByLabel", "either this or spreadByField"): "field_and_label",
    ("minGroups", "must be 0 or more"): "min_negative",
    ("maxGroups", "must be 0 or more"): "max_negative",
    ("maxGroups", "must not be less than minGroups"): "max_below_min",
    ("spreadConstraints", "is given twice"): "duplicate_field",
    ("spreadConstraints", "needs a constraint by cluster"): "cluster_field_required",
}


def codes(problems: list[Problem], table: dict[tuple[str, str], str]) -> list[str]:
    out = []
    for problem in problems:
        found = [code for (key, text), code in table.items() if problem.path.endswith(key) and text in problem.message]
        assert len(found) == 1, problem
        out += found
    return out


def validate_app_failover(case: Case) -> None:
    behaviour = case["behaviour"]
    failover: dict[str, Any] = {"cluster": {}}
    if behaviour is not None:
        application: dict[str, Any] = {"decisionConditions": {"tolerationSeconds": behaviour["toleration_s"]}}
        application["purgeMode"] = behaviour["purge"]
        if behaviour["grace_s"] is not None:
            application["gracePeriodSeconds"] = behaviour["grace_s"]
        if behaviour["labels"]:
            rules = [{"aliasLabelName": label, "jsonPath": ".x"} for label in behaviour["labels"]]
            application["statePreservation"] = {"rules": rules}
        failover["application"] = application
    assert sorted(codes(errors(failover=failover), APPLICATION)) == sorted(case["expect"])


def default_app_failover(case: Case) -> None:
    body: dict[str, Any] = {}
    if case["purge"] is not None:
        body["purgeMode"] = case["purge"]
    if case["grace_s"] is not None:
        body["gracePeriodSeconds"] = case["grace_s"]
    if case["toleration_s"] is not None:
        body["decisionConditions"] = {"tolerationSeconds": case["toleration_s"]}
    read = ApplicationFailover.model_validate_json(json.dumps(body))
    got = {
        "purge": read.purge_mode.value, "grace_s": read.grace_seconds,
        "toleration_s": read.decision_conditions.toleration_seconds,
    }  # fmt: skip
    assert got == case["expect"]


def validate_policy_cross(case: Case) -> None:
    failover: dict[str, Any] = {"application": {}} if case["app_failover"] else {"cluster": {}}
    found = errors(failover=failover, propagateDeps=case["propagate_deps"])
    assert bool(found) == (case["expect"] is not None)
    assert all(problem.path.endswith("propagateDeps") for problem in found)


def validate_spread(case: Case) -> None:
    constraints = []
    for one in case["constraints"]:
        keys = {"spreadByField": one["field"], "spreadByLabel": one["label"]}
        given = {key: value for key, value in keys.items() if value is not None}
        constraints.append({**given, "minGroups": one["min"], "maxGroups": one["max"]})
    found = codes(errors(placement={"spreadConstraints": constraints}), SPREAD)
    assert sorted(found) == sorted(case["expect"])


def validate_tolerations(case: Case) -> None:
    listed = [{"key": "k", "operator": operator, "effect": "NoExecute"} for operator in case["ops"]]
    assert (not errors(placement={"clusterTolerations": listed})) == case["expect"]


def validate_taint_policy(case: Case) -> None:
    rule = {"name": "brownout", "kind": "ClusterTaint", "match": "cluster/east", "taints": case["taints"]}
    assert ["duplicate" for _ in errors_of(rule)] == case["expect"]


CHECKS: dict[str, Callable[[Case], None]] = {
    "validate_app_failover": validate_app_failover,
    "default_app_failover": default_app_failover,
    "validate_policy_cross": validate_policy_cross,
    "validate_spread": validate_spread,
    "validate_tolerations": validate_tolerations,
    "validate_taint_policy": validate_taint_policy,
}
