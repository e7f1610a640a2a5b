"""The targets that a WorkloadFailover needs observations of: the clusters of its placement, and the copies there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from rules.kinds.workload.model import ResourceSelector, WorkloadFailover
from rules.kinds.workload.placement import ClusterAffinity, Placement
from rules.rulefile.feeds import FeedNeed, KarmadaPlane, ToleratedTime
from rules.rulefile.sources import EndpointsWatch, LoadedSource, WorkloadWatch
from rules.rulefile.targets import encode_segment
from rules.rulefile.yaml import Path


def needs(rule: WorkloadFailover) -> Iterator[FeedNeed]:
    """Give the clusters where its copies may be, and the copies, each where a failover depends on them."""
    failover = rule.failover
    clusters = clusters_of(rule.placement)
    if rule.policies is not None or (failover is not None and failover.cluster is not None):
        named = {f"cluster/{name}": path for name, path in _named(rule.placement)}
        so = "no copy is ever placed there. Is it misspelt?"
        yield FeedNeed((), named or {"cluster/*": ()}, each=True, so=so)
    if failover is not None and failover.application is not None:
        copies = {
            f"workload/{cluster}/{one.namespace or '*'}/{one.kind}/{one.name or '*'}": ("resourceSelectors", index)
            for index, one in enumerate(rule.resource_selectors)
            for cluster in clusters
        }
        yield FeedNeed(("failover", "application"), copies)


def tolerates(rule: WorkloadFailover) -> Iterator[ToleratedTime]:
    """Give its tolerations of taints, and for how long a copy may be bad."""
    if rule.failover is None:
        return
    targets = [target for need in needs(rule) for target in need.targets]
    for index, one in enumerate(rule.placement.cluster_tolerations):
        if rule.failover.cluster is not None and one.toleration_seconds and one.effect in ("", "NoExecute"):
            here: Path = ("placement", "clusterTolerations", index, "tolerationSeconds")
            yield ToleratedTime(one.toleration_seconds, here, [one for one in targets if one.startswith("cluster/")])
    if rule.failover.application is not None:
        decision = rule.failover.application.decision_conditions
        here = ("failover", "application", "decisionConditions", "tolerationSeconds")
        yield ToleratedTime(decision.toleration_seconds, here, [one for one in targets if one.startswith("workload/")])


def lists(rule: WorkloadFailover, source: LoadedSource) -> bool:
    """True if the rule needs the copies of workloads that the source lists."""
    return isinstance(source, WorkloadWatch | EndpointsWatch) and rule.carrier == "Kubernetes"


class RememberedWorkloads(NamedTuple):
    """Workloads whose objects are remembered while their clusters answer."""

    selectors: tuple[ResourceSelector, ...]
    with_dependencies: bool
    """True: what they need is remembered with them."""


def reads(rule: WorkloadFailover) -> Iterator[KarmadaPlane | RememberedWorkloads]:
    """Give what an observer reads for the rule, by its carrier."""
    if rule.carrier == "Karmada":
        yield KarmadaPlane(rule.policies.selector if rule.policies else None)
    elif rule.carrier == "Kubernetes":
        yield RememberedWorkloads(rule.resource_selectors, rule.copies_deps)


def clusters_of(placement: Placement) -> tuple[str, ...]:
    """Give the names of the clusters where copies may be, as segments of targets; `*` where any may be one."""
    return tuple(dict.fromkeys(name for name, _ in _named(placement))) or ("*",)


def _named(placement: Placement) -> list[tuple[str, Path]]:
    """Give each cluster where copies may be, and the place of its name; none where any may be one."""
    here: Path = ("placement", "clusterAffinities")
    affinities: list[tuple[ClusterAffinity, Path]] = []
    if placement.cluster_affinity is not None:
        affinities.append((placement.cluster_affinity, ("placement", "clusterAffinity")))
    for index, one in enumerate(placement.cluster_affinities):
        affinities.append((one, (*here, index)))
        overflow = enumerate(one.overflow_affinities)
        affinities += [(other, (*here, index, "overflowAffinities", number)) for number, other in overflow]
    if any(not one.cluster_names for one, _ in affinities):
        return []
    return [
        (encode_segment(name), (*path, "clusterNames", index))
        for one, path in affinities
        for index, name in enumerate(one.cluster_names)
    ]
