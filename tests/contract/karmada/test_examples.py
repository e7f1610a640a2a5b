"""Policies from pages and the library: Karmada's own definitions and webhook accept them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rules.kinds.workload.model import Policy, WorkloadFailover
from tests.karmada.real import Karmada

ROOT = Path(__file__).parents[3]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "rules/library").glob("karm*.yaml")),
]
THEIRS = {field.alias for field in Policy.model_fields.values()}
POLICIES = "/apis/policy.karmada.io/v1alpha1/clusterpropagationpolicies"
OF_RULES = {"application": {"preConditions", "blockPredecessorSeconds"}, "cluster": {"gracePeriodSeconds"}}
"""Keys of the library's rules that are ours: a policy has no place for them."""


def examples() -> Iterator[Any]:
    """Give the policy in each rule of our pages."""
    for page in PAGES:
        text = page.read_text("utf-8")
        blocks = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) if page.suffix == ".md" else [text]
        for number, block in enumerate(blocks):
            found = yaml.safe_load(block)
            for rule in found.get("rules") or [] if isinstance(found, dict) else []:
                if isinstance(rule, dict) and rule.get("kind") == "WorkloadFailover" and rule.get("resourceSelectors"):
                    spec = {key: value for key, value in rule.items() if key in THEIRS}
                    for kind, ours in OF_RULES.items() if page.suffix == ".yaml" else ():
                        behaviour = spec["failover"].get(kind) or {}
                        for key in ours & behaviour.keys():
                            del behaviour[key]
                        behaviour.get("decisionConditions", {}).pop("healthyState", None)
                    yield pytest.param(spec, id=f"{page.relative_to(ROOT)}-{number}-{rule['name']}")


@pytest.mark.parametrize("spec", [*examples()])
def test_an_example_is_a_policy_that_karmada_takes(karmada: Karmada, spec: dict[str, Any]) -> None:
    _create(karmada, spec)


def test_there_are_examples() -> None:
    assert len([*examples()]) > 3
    assert WorkloadFailover.model_fields.keys() > Policy.model_fields.keys()


OURS: dict[str, dict[str, Any]] = {
    "gracePeriodSeconds": {"cluster": {"purgeMode": "Gracefully", "gracePeriodSeconds": 60}},
    "Never": {"cluster": {"purgeMode": "Never"}},
    "Graciously": {"cluster": {"purgeMode": "Graciously"}},
    "healthyState": {"application": {"decisionConditions": {"healthyState": ["Unhealthy"]}}},
    "preConditions": {"application": {"decisionConditions": {}, "preConditions": {"healthyState": "Healthy"}}},
    "blockPredecessorSeconds": {"cluster": {"purgeMode": "Gracefully", "blockPredecessorSeconds": 60}},
}


@pytest.mark.parametrize("failover", [*OURS.values()], ids=[*OURS])
def test_what_has_a_place_of_ours_is_what_karmada_refuses(karmada: Karmada, failover: dict[str, Any]) -> None:
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    with pytest.raises(OSError, match=r"4\d\d POST"):
        _create(karmada, {"resourceSelectors": [selector], "placement": {}, "failover": failover})


def _create(karmada: Karmada, spec: dict[str, Any]) -> None:
    policy = {
        "apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy",
        "metadata": {"name": "example"}, "spec": spec,
    }  # fmt: skip
    karmada.plane.request("POST", f"{POLICIES}?dryRun=All&fieldValidation=Strict", policy)
