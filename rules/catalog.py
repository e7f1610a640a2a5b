"""The kinds of rules that there are. A new kind is a folder in rules/kinds/, its model in the union, a line here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rules.core.group import Group
from rules.core.kind import RuleKind
from rules.kinds.cluster_taint import kind as cluster_taint
from rules.kinds.notification import kind as notification
from rules.kinds.quorum import kind as quorum
from rules.kinds.quorum.kind import QUORUM, QuorumRule
from rules.kinds.traffic import kind as traffic
from rules.kinds.workload import kind as workload
from rules.kinds.zone import kind as zone
from rules.limits import limiter
from rules.limits.limiter import LimiterRule
from rules.limits.limiters import limiters
from rules.rulefile.guards import FileGuard
from rules.rulefile.isolation import ZoneIsolation
from rules.rulefile.model import Notification, Rule, TrafficFailover
from rules.rulefile.sources import Quorum, Source
from rules.rulefile.workload import ClusterTaint, WorkloadFailover

KINDS: Mapping[type[Rule], RuleKind[Any, Any]] = {
    TrafficFailover: traffic.KIND,
    WorkloadFailover: workload.KIND,
    ClusterTaint: cluster_taint.KIND,
    ZoneIsolation: zone.KIND,
    Notification: notification.KIND,
    QuorumRule: quorum.KIND,
    LimiterRule: limiter.KIND,
}
"""Any: each takes rules of its own model only, which is its key."""
_BY_STATE: Mapping[type[Any], RuleKind[Any, Any]] = {kind.state: kind for kind in KINDS.values()}
INTERNAL: frozenset[type[Rule]] = frozenset({QuorumRule, LimiterRule})
"""Nobody writes rules of these kinds: they follow from what rule files say."""


def kind_of(rule: Rule) -> RuleKind[Any, Any]:
    """Give the functions of this rule's kind."""
    return KINDS[type(rule)]


def new_group(rule: Rule, object_: str) -> Group:
    """Give a group of this rule as it begins."""
    return Group(rule.name, object_, kind_of(rule).state())


def is_kept(group: Group) -> bool:
    """Whether a group is stored although no rule speaks of it: what it has done stands, and must stay known."""
    kind = _BY_STATE.get(type(group.state))
    return kind is not None and kind.keeps(group)


def is_of(rule: Rule, group: Group) -> bool:
    """Whether the group is one of this rule's kind: a rule file may give the name of a rule to one of another kind."""
    return type(group.state) is kind_of(rule).state


def actors(
    rules: Iterable[Rule], file_guards: Sequence[FileGuard] = (), sources: Iterable[Source] = ()
) -> list[LimiterRule | QuorumRule]:
    """Give the actors that these rules and sources need, as rules of internal kinds, to be routed like all others."""
    return [
        *limiters(rules, file_guards),
        *(
            QuorumRule(name=f"{QUORUM}{source.name}", source=source)
            for source in sources
            if isinstance(source, Quorum)
        ),
    ]  # fmt: skip
