"""Which clusters, and which workloads, a policy means: names, labels and fields, as Kubernetes reads selectors."""

from __future__ import annotations

from collections.abc import Mapping

from bus.messages import Workload, WorkloadCopy
from rules.rulefile.placement import ClusterAffinity, LabelSelector
from rules.rulefile.selectors import holds
from rules.rulefile.workload import ResourceSelector, WorkloadFailover


def selected(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether labels are selected; no selector selects everything."""
    if selector is None:
        return True
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    return all(holds(one.parsed, labels) for one in selector.match_expressions)


def affine(affinity: ClusterAffinity | None, name: str, labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
    """Whether a cluster is one of those. `fields`: provider, region and zone; one that is not known is missing."""
    if affinity is None:
        return True
    if name in affinity.exclude or (affinity.cluster_names and name not in affinity.cluster_names):
        return False
    expressions = affinity.field_selector.match_expressions if affinity.field_selector is not None else ()
    return selected(affinity.label_selector, labels) and all(holds(one.parsed, fields) for one in expressions)


def meant(
    selector: ResourceSelector, *, api_version: str, kind: str, namespace: str, name: str, labels: Mapping[str, str]
) -> bool:
    """Whether a resource is one of those that a policy selects."""
    return (
        (selector.api_version, selector.kind) == (api_version, kind)
        and selector.namespace in (None, namespace)
        and selector.name in (None, name)
        and selected(selector.label_selector, labels)
    )


def means(rule: WorkloadFailover, listed: Workload | WorkloadCopy) -> bool:
    """Whether a rule matches this workload, by its name and by the labels that it has now."""
    return rule.policies is not None or any(
        meant(
            one, api_version=listed.api_version, kind=listed.kind, namespace=listed.namespace, name=listed.name,
            labels=listed.labels,
        )
        for one in rule.resource_selectors
    )  # fmt: skip
