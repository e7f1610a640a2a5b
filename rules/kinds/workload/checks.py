"""Checks of a WorkloadFailover as a whole: contradictions, bounds, and unsupported keys.

The first three are Karmada's own (pkg/util/validation/validation.go), all told at once and each at its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bus.messages import Health
from rules.core.errors import Problem
from rules.kinds.workload.model import (
    ApplicationFailover,
    Behaviour,
    DecisionConditions,
    Failover,
    FailoverAdditions,
    Policy,
    PurgeMode,
    WorkloadFailover,
)
from rules.kinds.workload.placement import Placement, SpreadConstraint
from rules.rulefile import jsonpath
from rules.rulefile.yaml import Document, Path

UNPAUSED_SECONDS = 10
"""A shorter toleration of bad copies is no pause."""
_LABEL = re.compile(
    r"(?:(?=.{1,253}/)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?\Z"
)
_MEANS_NOTHING = (
    ("association", "association"), ("dependentOverrides", "dependent_overrides"), ("priority", "priority"),
    ("preemption", "preemption"), ("schedulerName", "scheduler_name"), ("conflictResolution", "conflict_resolution"),
    ("activationPreference", "activation_preference"), ("schedulePriority", "schedule_priority"),
    ("preserveResourcesOnDeletion", "preserve_resources_on_deletion"),
)  # fmt: skip


def rule(item: WorkloadFailover, document: Document, at: Path) -> Iterator[Problem]:
    """Findings about one rule."""
    if item.policies is None:
        yield from policy(item, document, at)
        if item.carrier == "Karmada" and item.strategy != "static":
            yield from _unlimited(item.placement.spread_constraints, document, (*at, "placement", "spreadConstraints"))
        if not item.resource_selectors:
            yield document.problem((*at, "resourceSelectors"), "needs at least one, or policies with carrier Karmada")
        if item.failover is None or (item.failover.application is None and item.failover.cluster is None):
            message = "neither application nor cluster failover is set: this rule will never move anything"
            yield document.problem((*at, "failover"), message, severity="warning")
        yield from unbounded(item.failover or Failover(), document, (*at, "failover"))
    elif item.carrier != "Karmada":
        yield document.problem((*at, "policies"), "policies are on a Karmada control plane: carrier must be Karmada")
    elif item.resource_selectors or item.failover is not None:
        yield document.problem((*at, "policies"), "the policies say what moves and when: remove what is beside it")
    else:
        yield from unbounded(item.policies.failover, document, (*at, "policies", "failover"))


def policy(item: Policy, document: Document, at: Path) -> Iterator[Problem]:
    """Findings about the body of a policy."""
    failover = item.failover
    for name in ("application", "cluster"):
        behaviour = getattr(failover, name) if failover is not None else None
        if behaviour is not None:
            yield from _behaviour(behaviour, document, (*at, "failover", name))
    if failover is not None and failover.application is not None and item.propagate_deps is False:
        message = "application failover takes what the workload needs along: must be true"
        yield document.problem((*at, "propagateDeps"), message)
    yield from _placement(item.placement, document, (*at, "placement"))
    yield from _karmadas(item, document, at)


def _behaviour(behaviour: Behaviour, document: Document, at: Path) -> Iterator[Problem]:
    if isinstance(behaviour, ApplicationFailover):
        decision, here = behaviour.decision_conditions, (*at, "decisionConditions")
        yield from _at_least_zero(decision.toleration_seconds, document, (*here, "tolerationSeconds"))
        if Health.HEALTHY in decision.healthy_state:
            yield document.problem((*here, "healthyState"), "lists what counts as bad: Unhealthy, Unknown")
        delay = behaviour.pre_conditions.delay_seconds if behaviour.pre_conditions is not None else None
        yield from _at_least_zero(delay, document, (*at, "preConditions", "delaySeconds"))
    yield from _at_least_zero(behaviour.block_predecessor_seconds, document, (*at, "blockPredecessorSeconds"))
    grace = behaviour.grace_period_seconds
    if grace is not None and behaviour.purge_mode is not PurgeMode.GRACEFULLY:
        message = f"only goes with purgeMode Gracefully, which it is not: {behaviour.purge_mode}"
        yield document.problem((*at, "gracePeriodSeconds"), message)
    if grace is not None and grace <= 0:
        yield document.problem((*at, "gracePeriodSeconds"), f"must be more than 0, got {grace}")
    for index, one in enumerate(behaviour.state_preservation.rules if behaviour.state_preservation else ()):
        if not _LABEL.match(one.alias_label_name):
            message = f"{one.alias_label_name!r} is no label's key: at most 63 letters, digits, - _ or ., and a prefix"
            yield document.problem((*at, "statePreservation", "rules", index, "aliasLabelName"), message)
        try:
            jsonpath.read_jsonpath(one.json_path)
        except ValueError as error:
            yield document.problem((*at, "statePreservation", "rules", index, "jsonPath"), str(error))
    if behaviour.state_preservation is not None and not behaviour.preserves:
        message = "is only carried over with purgeMode Directly: two copies with one state would both go on from it"
        yield document.problem((*at, "statePreservation"), message, severity="warning")


def unbounded(failover: Failover | FailoverAdditions, document: Document, at: Path) -> Iterator[Problem]:
    """Warn of keys that let a workload that is bad everywhere get more and more copies, or move without a pause."""
    for name, behaviour in (("application", failover.application), ("cluster", failover.cluster)):
        if behaviour is not None and behaviour.purge_mode is PurgeMode.NEVER:
            message = "old copies stay until a person removes them: each failure leaves one more, without a limit"
            yield document.problem((*at, name, "purgeMode"), message, severity="warning")
    decision = failover.application.decision_conditions if failover.application is not None else None
    seconds = decision.toleration_seconds if isinstance(decision, DecisionConditions) else 0
    if 0 < seconds < UNPAUSED_SECONDS:
        message = (
            f"a workload that is bad everywhere moves every {seconds:g} s: write at least 10, or 0, which backs off"
        )
        here = (*at, "application", "decisionConditions", "tolerationSeconds")
        yield document.problem(here, message, severity="warning")


def _at_least_zero(value: float | None, document: Document, at: Path) -> Iterator[Problem]:
    if value is not None and value < 0:
        yield document.problem(at, f"must be 0 or more, got {value:g}")


def _placement(placement: Placement, document: Document, at: Path) -> Iterator[Problem]:
    if placement.cluster_affinity is not None and placement.cluster_affinities:
        yield document.problem((*at, "clusterAffinities"), "either this or clusterAffinity, not both")
    yield from _clusters(placement, document, at)
    names = [term.affinity_name for term in placement.cluster_affinities]
    for index, name in enumerate(names):
        if name in names[:index]:
            yield document.problem((*at, "clusterAffinities", index, "affinityName"), f"{name!r} is given twice")
    for index, one in enumerate(placement.cluster_tolerations):
        here = (*at, "clusterTolerations", index)
        if not one.key and one.operator != "Exists":
            yield document.problem((*here, "operator"), "must be Exists where there is no key")
        if one.operator == "Exists" and one.value:
            yield document.problem((*here, "value"), "must be empty with Exists, which any value does")
        if one.toleration_seconds is not None and one.effect not in ("", "NoExecute"):
            yield document.problem((*here, "effect"), "must be NoExecute where there is a tolerationSeconds")
    yield from _spread(placement.spread_constraints, document, (*at, "spreadConstraints"))
    scheduling = placement.replica_scheduling
    preference = scheduling.weight_preference if scheduling is not None else None
    here = (*at, "replicaScheduling", "weightPreference")
    if preference is not None and preference.static_weight_list and preference.dynamic_weight:
        message = "dynamicWeight goes before staticWeightList, which is not read"
        yield document.problem((*here, "staticWeightList"), message, severity="warning")
    if placement.workload_affinity is not None:
        message = "workloads are not placed next to or away from others: remove it, or leave this workload to Karmada"
        yield document.problem((*at, "workloadAffinity"), message)


def _clusters(placement: Placement, document: Document, at: Path) -> Iterator[Problem]:
    """Names of clusters that cannot mean anything beside those of clusterAffinity."""
    affinity = placement.cluster_affinity
    if affinity is None or not affinity.cluster_names:
        return
    here = (*at, "clusterAffinity")
    left = {*affinity.cluster_names} - {*affinity.exclude}
    if not left:
        yield document.problem((*here, "exclude"), "no cluster is left: all of clusterNames are excluded")
    for index, name in enumerate(affinity.exclude):
        if name not in affinity.cluster_names:
            message = f"{name} is none of clusterNames, so there is nothing to exclude"
            yield document.problem((*here, "exclude", index), message, severity="warning")
    scheduling = placement.replica_scheduling
    preference = scheduling.weight_preference if scheduling is not None else None
    for number, weight in enumerate(preference.static_weight_list if preference is not None else ()):
        listed = (*at, "replicaScheduling", "weightPreference", "staticWeightList", number, "targetCluster")
        for index, name in enumerate(weight.target_cluster.cluster_names):
            if name not in left:
                message = f"{name} is none of the clusters of clusterAffinity: no copy is ever there"
                yield document.problem((*listed, "clusterNames", index), message, severity="warning")
    for index, one in enumerate(placement.spread_constraints):
        if one.field == "cluster" and one.min_groups > len(left) > 0:
            message = f"{one.min_groups} clusters are never found: clusterAffinity allows {len(left)}"
            yield document.problem((*at, "spreadConstraints", index, "minGroups"), message, severity="warning")


def _spread(constraints: tuple[SpreadConstraint, ...], document: Document, at: Path) -> Iterator[Problem]:
    fields = [one.field for one in constraints if one.field is not None]
    for index, one in enumerate(constraints):
        here = (*at, index)
        if one.spread_by_field is not None and one.spread_by_label is not None:
            yield document.problem((*here, "spreadByLabel"), "either this or spreadByField, not both")
        if one.min_groups < 0:
            yield document.problem((*here, "minGroups"), f"must be 0 or more, got {one.min_groups}")
        if one.max_groups < 0:
            yield document.problem((*here, "maxGroups"), f"must be 0 or more, got {one.max_groups}")
        if 0 < one.max_groups < one.min_groups:
            message = f"must not be less than minGroups ({one.min_groups}), got {one.max_groups}"
            yield document.problem((*here, "maxGroups"), message)
    for field in sorted({field for field in fields if fields.count(field) > 1}):
        yield document.problem(at, f"{field!r} is given twice")
    if fields and "cluster" not in fields:
        yield document.problem(at, f"{fields[0]} needs a constraint by cluster beside it")


def _unlimited(constraints: tuple[SpreadConstraint, ...], document: Document, at: Path) -> Iterator[Problem]:
    """Karmada's scheduler looks at regions and clusters alone, and not at all where replicas have static weights."""
    regions = any(one.field == "region" for one in constraints)
    for index, one in enumerate(constraints):
        if one.max_groups or one.field not in ("region", "cluster"):
            continue
        finds = "one cluster of each region alone" if regions and one.field == "cluster" else "no cluster"
        message = f"is not set, which Karmada's scheduler reads as 0: it finds {finds}"
        yield document.problem((*at, index, "maxGroups"), message, severity="warning")


def _karmadas(item: Policy, document: Document, at: Path) -> Iterator[Problem]:
    """Karmada's own keys: harmless ones are skipped with a word, those that would matter are refused."""
    fields = type(item).model_fields
    for key, name in _MEANS_NOTHING:
        if getattr(item, name) != fields[name].default:
            message = "is Karmada's business and means nothing here"
            yield document.problem((*at, key), message, severity="warning")
    if item.suspension is not None and (
        item.suspension.get("dispatching") or item.suspension.get("dispatchingOnClusters")
    ):
        message = "a suspended policy must not move anything: remove it, or give the rule mode Off"
        yield document.problem((*at, "suspension"), message)
