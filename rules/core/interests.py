"""Facts that concern a rule, as patterns over the paths of facts, so that an index finds the rules of a fact."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bus.messages import (
    AcquireReply,
    AcquireRequest,
    Cluster,
    ClusterTaints,
    Command,
    Fact,
    Observation,
    Outcome,
    Route,
    RouteRef,
    Workload,
    WorkloadCopy,
    Zones,
)
from rules.core.index import Glob, Path, Pattern, Segment, pattern_of
from rules.core.segments import encode_segment


@dataclass(frozen=True, slots=True)
class Interest:
    """Facts that concern a rule."""

    facts: Pattern
    """Of their paths, as `path_of` gives them; what fits may still turn out to be none of the rule's."""
    scope: Callable[[Path], str | None] | None = None
    """Scope of the groups that such a fact concerns, by its path; None as its result: no group. Hashable, so that equal
    functions are called once. Without it (None) the kind's `objects` decides."""
    subscribed: bool = False
    """True if the groups there have subscribed to those of these facts that they get."""
    label: tuple[str, str] | None = None
    """Of these facts, those without this label concern no group but one that is there already. None: labels make no
    difference. What was said of such an object before its group was there is heard when that opens, if the kind
    `subscribes` to it."""


def path_of(fact: Fact) -> Path:
    """Give what a fact is about, as segments: what sort of fact, and then from the large to the small."""
    match fact:
        case Observation():
            return ("Observation", *fact.target.split("/"))
        case Route():
            return ("Route", fact.cluster, fact.called, fact.namespace, fact.name, repr(fact.rule))
        case Cluster():
            return ("Cluster", "cluster", encode_segment(fact.name))
        case ClusterTaints():
            return ("ClusterTaints", fact.cluster)
        case Workload() | WorkloadCopy():
            return ("Workload", fact.namespace, fact.kind, fact.name)
        case Zones():
            return ("Zones", fact.cluster)
        case AcquireRequest():
            return ("AcquireRequest", fact.guard)
        case Command() | Outcome() | AcquireReply():
            return ("Rule", fact.rule)


def object_of(fact: Fact) -> str | None:
    """The object, as groups are called, that a fact is about, or of which it is about a copy; None: another sort."""
    if isinstance(fact, Observation):
        return fact.target.split("/", 2)[2] if fact.target.startswith("workload/") else None
    return fact.object if isinstance(fact, Route | Workload | WorkloadCopy) else None


def labels_of(fact: Fact) -> Mapping[str, str]:
    """The labels of the object that a fact lists."""
    return fact.labels if isinstance(fact, Route | Workload | WorkloadCopy) else {}


def observed(targets: str) -> Pattern:
    """Observations of targets that a pattern of the rule file means."""
    return ("Observation", *pattern_of(targets))


def listed(clusters: str) -> Pattern:
    """Clusters of the inventory whose targets a pattern means."""
    return ("Cluster", *pattern_of(clusters))


def commanded(rule: str) -> Pattern:
    """Commands that name a rule."""
    return ("Rule", rule)


def routes(ref: RouteRef) -> Pattern:
    """One route."""
    return ("Route", ref.cluster, ref.called, ref.namespace, ref.name, repr(ref.rule))


def any_of(value: str | None) -> Segment:
    """A segment that has this value; None: any value."""
    return Glob("*") if value is None else value
