"""WorkloadFailover: a workload leaves clusters that fail it, and is placed on others.

One group per workload, and one, the cluster inventory, that knows the clusters. A move goes through fixed steps, each a
fact or an outcome: its toleration ends; the replacement is placed; the old copy is evicted; the new ones are Healthy,
or the grace is over; the old copy is purged. Directly evicts first and then places; Never stops before the purge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime

from bus.messages import (
    Action,
    CancelEviction,
    Cluster,
    ClusterTaints,
    Evict,
    Fact,
    Observation,
    Place,
    Purge,
    Workload,
    WorkloadCopy,
    WorkloadRef,
)
from rules.core.desired import DesiredState
from rules.core.index import ANY, MANY, Pattern
from rules.core.interests import Interest, any_of
from rules.core.kind import RuleKind, itself, no, none, not_asked, nothing, unchanged
from rules.core.reasons import Because, Held
from rules.core.segments import encode_segment
from rules.kinds.workload import causes as workload_causes
from rules.kinds.workload import checks
from rules.kinds.workload import desired_placement as workload_desired
from rules.kinds.workload import facts as workload_facts
from rules.kinds.workload import inventory as workload_inventory
from rules.kinds.workload import unreachable as workload_unreachable
from rules.kinds.workload.affinity import means
from rules.kinds.workload.copy_needs import lists, needs, reads, tolerates
from rules.kinds.workload.inventory import CLUSTER_INVENTORY as CLUSTER_INVENTORY
from rules.kinds.workload.model import ResourceSelector, WorkloadFailover
from rules.kinds.workload.state import WorkloadGroup, WorkloadState, without_dates
from rules.kinds.workload.workload_conflicts import workloads
from rules.kinds.workload.workload_premises import premises
from rules.rulefile.feeds import karmada_inventory
from rules.rulefile.file_kind import FileKind, as_written, needed

done, said, failed, reset = workload_facts.done, workload_facts.said, workload_unreachable.failed, workload_facts.reset
dependents = workload_inventory.dependents


def interests(rule: WorkloadFailover) -> Iterable[Interest]:
    """All clusters, and the workloads that it could mean."""
    yield Interest(("Cluster", MANY))
    yield Interest(("ClusterTaints", MANY))
    yield Interest(("Observation", "cluster", MANY))
    if rule.policies is not None:
        yield from _workloads((ANY, ANY, ANY), None)
        return
    for one in rule.resource_selectors:
        yield from _workloads((any_of(one.namespace), one.kind, any_of(one.name)), _label(one))


def _workloads(path: Pattern, label: tuple[str, str] | None) -> Iterator[Interest]:
    yield Interest(("Workload", *path), label=label)
    yield Interest(("Observation", "workload", ANY, *path), label=label)


def _label(selector: ResourceSelector) -> tuple[str, str] | None:
    """A label that all have which are selected; None: it selects by name, or names none."""
    if selector.name is not None or selector.label_selector is None:
        return None
    return next(iter(selector.label_selector.match_labels.items()), None)


def subscribes(rule: WorkloadFailover, object_: str, fact: Fact) -> frozenset[str]:
    """The copies of a workload selected by its labels: their observations did not count before it was listed."""
    if not isinstance(fact, Workload | WorkloadCopy) or not any(map(_label, rule.resource_selectors)):
        return frozenset()
    return _copies(object_, fact.clusters if isinstance(fact, Workload) else (fact.cluster,))


def subscribed(rule: WorkloadFailover, before: WorkloadGroup | None, group: WorkloadGroup) -> frozenset[str] | None:
    """Those that it knows, as long as they stay the same."""
    if before is not None and before.state.copies is group.state.copies:
        return None
    selects = group.object != CLUSTER_INVENTORY and any(map(_label, rule.resource_selectors))
    return _copies(group.object, group.state.copies) if selects else None


def _copies(object_: str, clusters: Iterable[str]) -> frozenset[str]:
    return frozenset(f"workload/{encode_segment(name)}/{object_}" for name in clusters)


def objects(rule: WorkloadFailover, fact: Fact) -> Iterable[str]:
    """The groups that a fact concerns: clusters concern the cluster inventory, copies that of their workload."""
    match fact:
        case Cluster() | ClusterTaints():
            return (CLUSTER_INVENTORY,)
        case Workload() | WorkloadCopy():
            # Not by its labels: that it has lost them, its group has to hear.
            return (fact.object,) if _named(rule, *_path(fact)) else ()
        case Observation():
            kind, *path = fact.target.split("/")
            if kind == "cluster":
                return (CLUSTER_INVENTORY,)
            if kind == "workload" and len(path) == 4 and _named(rule, *path[1:]):
                return ("/".join(path[1:]),)
    return ()


def opens(rule: WorkloadFailover, fact: Fact) -> bool:
    """True if the fact may open a new group: workloads that the rule does not match may not."""
    return not isinstance(fact, Workload | WorkloadCopy) or means(rule, fact)


def _path(ref: WorkloadRef) -> tuple[str, str, str]:
    return ref.namespace, ref.kind, ref.name


def _named(rule: WorkloadFailover, namespace: str, kind: str, name: str) -> bool:
    """True if the rule could match the object by its name; labels are not known from a name."""
    return rule.policies is not None or any(
        one.kind == kind and one.namespace in (None, namespace) and one.name in (None, name)
        for one in rule.resource_selectors
    )


def covers(rule: WorkloadFailover, object_: str) -> bool:
    """True if the rule, as it is written now, still matches this workload."""
    if object_ == CLUSTER_INVENTORY:
        return True
    *namespace, kind, name = object_.split("/")
    return _named(rule, "".join(namespace), kind, name)


def scope(_rule: WorkloadFailover, _object: str) -> str:
    """All workloads of a rule live where its cluster inventory does."""
    return CLUSTER_INVENTORY


def observe(rule: WorkloadFailover, group: WorkloadGroup, fact: Fact, now: datetime) -> WorkloadGroup:
    """Fold in inventory."""
    if group.object == CLUSTER_INVENTORY:
        return workload_inventory.observe(rule, group, fact, now)
    return workload_facts.observe(rule, group, fact, now)


def heard(rule: WorkloadFailover, group: WorkloadGroup, target: str, at: datetime) -> WorkloadGroup:
    """An observation has been folded in."""
    if group.object == CLUSTER_INVENTORY:
        return workload_inventory.heard(rule, group, target, at)
    return workload_causes.heard(rule, group, at)


def advance(
    rule: WorkloadFailover, group: WorkloadGroup, shared_group: WorkloadGroup | None, now: datetime
) -> WorkloadGroup:
    """Let time pass."""
    if group.object == CLUSTER_INVENTORY:
        return workload_inventory.advance(rule, group, now)
    if not _is_meant(group):
        return group
    return workload_unreachable.advance(rule, workload_causes.advance(rule, group, shared_group, now), shared_group)


def desire(
    rule: WorkloadFailover, group: WorkloadGroup, shared_group: WorkloadGroup | None, now: datetime
) -> DesiredState:
    """Give what the rule wants now."""
    if group.object == CLUSTER_INVENTORY:
        return workload_inventory.desire(rule, group, now)
    return workload_desired.desire(rule, group, shared_group, now) if _is_meant(group) else DesiredState()


def skips_taken(rule: WorkloadFailover) -> bool:
    """Signals by which clusters get taints are no word about a cluster's own health, unless the rule lists them: else
    its workloads would leave by another toleration."""
    return rule.signals is None


def as_it_counts(_rule: WorkloadFailover, group: WorkloadGroup, taken: Callable[[str, str], bool]) -> WorkloadGroup:
    """Without the signals that make taints now."""
    return workload_inventory.without_signals(group, taken)


def _is_meant(group: WorkloadGroup) -> bool:
    return group.state.meant


def written(_rule: WorkloadFailover, action: Action) -> str:
    """Its workload."""
    return action.workload.object if isinstance(action, Place | Evict | Purge | CancelEviction) else ""


KIND: RuleKind[WorkloadFailover, WorkloadState] = RuleKind(
    model=WorkloadFailover,
    because=frozenset(
        {
            Because.CLUSTER_UNHEALTHY,
            Because.CLUSTER_TAINTED,
            Because.WORKLOAD_UNHEALTHY,
            Because.TOLERATION_ELAPSED,
            Because.RULE_CHANGED,
            Because.REPLACEMENT_HEALTHY,
            Because.GRACE_ELAPSED,
            Because.RECOVERED,
        }
    ),
    holds=frozenset(
        {
            Held.NO_LANDING_PLACE,
            Held.GRACE_EXPIRED,
            Held.LAST_HEALTHY_COPY,
            Held.PRECONDITIONS_NOT_MET,
            Held.WORKLOAD_NOT_FOUND,
            Held.POLICY_UNUSABLE,
            Held.STATE_UNKNOWN,
            Held.SCHEDULER_OVERRULED,
            Held.TARGET_UNKNOWN,
            Held.BACKING_OFF,
            Held.MOVE_FOUND,
        }
    ),
    actions=(Place, Evict, Purge, CancelEviction),
    implied=nothing,
    state=WorkloadState,
    resolved=frozenset({Because.RECOVERED}),
    interests=interests,
    objects=objects,
    first=nothing,
    creates_group=opens,
    leaves=no,
    everywhere=no,
    subscribed=subscribed,
    subscribing=(Workload, WorkloadCopy),
    subscribes=subscribes,
    owner=itself,
    written=written,
    scope=scope,
    shares_home=no,
    desire=desire,
    forbids=none,
    requested=unchanged,
    reschedules=no,
    premises=premises,
    tells=False,
    observe=observe,
    heard=heard,
    advance=advance,
    remembers=no,
    done=done,
    failed=failed,
    said=said,
    reset=reset,
    without_dates=without_dates,
    emits=nothing,
    is_in_force=no,
    asked=not_asked,
    takes=none,
    skips_taken=skips_taken,
    shared_object=CLUSTER_INVENTORY,
    dependents=dependents,
    selects=covers,
    keeps=no,
    way_back_only=None,
    forget=workload_inventory.forget,
    as_it_counts=as_it_counts,
)
"""Registration of WorkloadFailover."""


FILE_KIND = FileKind(
    model=WorkloadFailover,
    plain=as_written,
    beside=as_written,
    checks=checks.rule,
    checks_together=nothing,
    needs=needs,
    consumers=needed(needs),
    inventory=lambda rule: karmada_inventory(rule.carrier),
    reads=reads,
    lists=lists,
    tolerates=tolerates,
    goes_back_at_once=False,
    hints=nothing,
    conflicts=workloads,
    phrases=("moves the workload away from", "may bring the workload back to"),
)
"""Registration of WorkloadFailover for the loader and the hints."""
