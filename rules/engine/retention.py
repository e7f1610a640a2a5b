"""What of the groups that were stored still counts: rule files change, stored groups stay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from rules.core.group import Group
from rules.engine.registry import kind_of
from rules.engine.routing import Routing
from rules.kinds.cluster_taint import kind as cluster_taint
from rules.kinds.traffic.interests import named_ref
from rules.kinds.workload import inventory as workload_census
from rules.rulefile.model import Rule, TrafficFailover
from rules.rulefile.workload import WorkloadFailover

AT_ONCE = datetime.min.replace(tzinfo=UTC)


def covers(rule: Rule, object_: str) -> bool:
    """Whether the rule, as it is written now, still speaks of this thing."""
    if not isinstance(rule, TrafficFailover):
        return kind_of(rule).covers(rule, object_)
    ref = named_ref(rule)
    if ref is not None:
        return object_ == ref.object
    path, _, part = object_.partition("#")
    cluster, namespace, kind, _ = path.split("/")
    route = rule.route
    # The weights that it remembers are those of one rule of an HTTPRoute, and mean nothing for another one.
    same = (cluster, kind, part) == (route.cluster, route.called, "" if route.rule is None else str(route.rule))
    return same and route.namespace in (None, namespace)


def untainted(rules: Mapping[str, Rule], census: Group, others: Iterable[Group]) -> list[Group]:
    """Give the groups that change because a ClusterTaint rule was removed, put to rest, or means other clusters now.

    The census without its taints, and the workloads that went by them, to be decided again at once.
    """
    rule = rules[census.rule]
    if not isinstance(rule, WorkloadFailover):
        return []
    mended = workload_census.forget(rule, census, lambda name, cluster: cluster_taint.acts(rules, name, cluster))
    if mended is census:
        return []
    stirred = workload_census.stirs(rule, census, mended, others)
    return [replace(group, wake_at=AT_ONCE) for group in (mended, *stirred)]


def as_it_counts(routing: Routing, group: Group) -> Group:
    """Give a stored group without what is no word about it by the rules as they are now."""
    rule = routing.rules[group.rule]
    if not isinstance(rule, WorkloadFailover):
        return group
    return workload_census.without_signals(group, lambda target, signal: routing.is_a_taint(rule, target, signal))
