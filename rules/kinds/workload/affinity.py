"""Clusters and workloads that a policy selects: names, labels and fields, as Kubernetes reads selectors."""

from __future__ import annotations

from collections.abc import Mapping

from bus.messages import Workload, WorkloadCopy
from rules.kinds.workload.model import ResourceSelector, WorkloadFailover
from rules.kinds.workload.placement import ClusterAffinity, LabelSelector
from rules.rulefile.selectors import holds


def selected(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """True if the selector matches the labels; no selector matches everything."""
    if selector is None:
        return True
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    return all(holds(one.parsed, labels) for one in selector.match_expressions)


def affine(affinity: ClusterAffinity | None, name: str, labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
    """True if the affinity includes the cluster. `fields`: provider, region and zone; one that is not known
    is missing."""
    if affinity is None:
        return True
    if name in affinity.exclude or (affinity.cluster_names and name not in affinity.cluster_names):
        return False
    expressions = affinity.field_selector.match_expressions if affinity.field_selector is not None else ()
    return selected(affinity.label_selector, labels) and all(holds(one.parsed, fields) for one in expressions)


def meant(
    selector: ResourceSelector, *, api_version: str, kind: str, namespace: str, name: str, labels: Mapping[str, str]
) -> bool:
    """True if the policy's selector matches the resource."""
    return (
        (selector.api_version, selector.kind) == (api_version, kind)
        and selector.namespace in (None, namespace)
        and selector.name in (None, name)
        and selected(selector.label_selector, labels)
    )


def means(rule: WorkloadFailover, listed: Workload | WorkloadCopy) -> bool:
    """True if the rule matches this workload, by its name and its current labels."""
    return rule.policies is not None or any(
        meant(
            one, api_version=listed.api_version, kind=listed.kind, namespace=listed.namespace, name=listed.name,
            labels=listed.labels,
        )
        for one in rule.resource_selectors
    )  # fmt: skip
