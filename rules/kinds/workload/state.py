"""State of a workload and its evictions, and of the clusters that could hold it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from bus.messages import Health, Taint
from rules.core.group import Group
from rules.core.member import Member
from rules.core.timers import Stopwatch
from rules.core.values import replace

Cause = Literal["Cluster", "Application"]


@dataclass(frozen=True, slots=True)
class ClusterState:
    """A cluster, as the rule's cluster inventory knows it."""

    listed: bool = False
    """True if it is in the inventory."""
    gone: bool = False
    """True if it was in the inventory and has been taken out."""
    observed_at: datetime | None = None
    """Time of the newest inventory."""
    labels: Mapping[str, str] = field(default_factory=dict)
    region: str = ""
    zone: str = ""
    provider: str = ""
    available: int | None = None
    """Replicas for which it has room; None: not known, considered enough."""
    taints: tuple[Taint, ...] = ()
    """Those of the inventory, each with a time."""
    by_rule: Mapping[str, tuple[Taint, ...]] = field(default_factory=dict)
    """Those of ClusterTaint rules."""
    said_at: Mapping[str, datetime] = field(default_factory=dict)
    """Time of the newest report of each of these rules."""
    seen_by_rule: Mapping[str, Member] = field(default_factory=dict)
    """The cluster as each of these rules knows it, where the rule says so: what its taints rest on."""
    status: Health | None = None
    """None: never observed."""
    known: bool = False
    """Its health was known once: only then does Unknown mean that it is unreachable."""
    clocks: Mapping[str, Stopwatch] = field(default_factory=dict)
    """The taints that it has by its own health: key to since when."""
    failures: int = 0
    """Number of failures in a row soon after a recovery, as of its last recovery."""
    recovered_at: datetime | None = None
    """Time of its last recovery."""
    waits_until: datetime | None = None
    """Until then it gets no copies, because it has failed again so often."""
    acute: tuple[Taint, ...] = ()
    """All taints that make workloads leave; those whose clock waits do not."""


UNHEARD = ClusterState()
"""A cluster without any observation. One for all: it is asked for with every copy of every workload."""


@dataclass(frozen=True, slots=True)
class Outage:
    """Widespread outage: so many clusters are bad at once that the monitoring data may be wrong."""

    since: datetime
    whole: bool = False
    """All of them were."""


@dataclass(frozen=True, slots=True)
class Copy:
    """The workload's copy in one cluster."""

    replicas: int | None
    """None: the kind has no replicas, or they are not known."""
    placed_at: datetime | None = None
    """Time at which it was last created or resized: earlier observations do not count."""
    first_status_at: datetime | None = None
    once_healthy: bool = False
    bad: Stopwatch | None = None
    """Stopwatch of its bad time; None: it is not bad."""
    replaces: int = 0
    """Number of bad copies in a row that it replaces, itself included where it had to leave and stayed after all."""
    returned_at: datetime | None = None
    """Time at which it last stayed after all, though it had been bad for long enough to leave."""
    decided_at: datetime | None = None
    """Time of the decision of the newest action that is known to have changed it."""


@dataclass(frozen=True, slots=True)
class CopyMarks:
    """Marks of a copy, as its newest inventory has them: of its creation, and of the actions of a rule."""

    created_at: datetime | None = None
    rule: str = ""
    """Rule whose decision it follows; empty: none."""
    decided_at: datetime | None = None
    """Time of that decision."""
    placed_for: tuple[str, ...] = ()
    """Clusters for whose copies that rule made it."""
    leaves: str = ""
    """Reason for which that rule lets it leave; empty: it does not leave."""
    stays: tuple[str, ...] = ()
    """Clusters whose copies were to stay when it began to leave."""


@dataclass(frozen=True, slots=True)
class Relocation:
    """The workload leaves a cluster: the toleration has run out, and the old copy is not gone yet."""

    cause: Cause
    because: str
    detail: str
    replicas: int | None = None
    """Of the copy that leaves."""
    placed: bool = False
    """The replacement is placed."""
    evicted_at: datetime | None = None
    purge_mode: str = ""
    grace_seconds: int | None = None
    preserved: Mapping[str, str] = field(default_factory=dict)
    """State that the new copy gets as labels."""
    surplus: bool = False
    """True if it leaves as surplus: the copy that it was placed for has returned."""
    replaced: int = 0
    """Number of bad copies in a row that its replacement replaces."""
    planned: Mapping[str, int] = field(default_factory=dict)
    """Karmada, Directly: the placement that was written together with the eviction, for the Place that follows."""
    found: str = ""
    """Sentence by which it was known again, where its record was lost with the bus; empty: it was not lost."""


@dataclass(frozen=True, slots=True)
class Departure:
    """The workload has left a cluster."""

    at: datetime
    cause: Cause


@dataclass(frozen=True, slots=True)
class WorkloadState:
    """A workload; in the group `*` of a rule, its clusters."""

    clusters: Mapping[str, ClusterState] = field(default_factory=dict)
    """Only in the cluster inventory."""
    outage: Outage | None = None
    """In the cluster inventory: the one that goes on now."""
    api_version: str = ""
    uid: str = ""
    replicas: int | None = None
    policy: str | None = None
    """The spec of the Karmada policy that governs it, as JSON."""
    exists: bool = False
    meant: bool = True
    """False: the rule's selectors mean it no more. It is followed, in case its labels come back, and left alone."""
    listed_at: datetime | None = None
    """Time of the newest inventory of all copies together."""
    listed: Mapping[str, int] = field(default_factory=dict)
    """The copies as inventory last told them; `copies` goes on from there."""
    states: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Cluster to what a policy may want carried over: JSONPath to value, as it was last told."""
    copy_seen: Mapping[str, datetime] = field(default_factory=dict)
    """Time of the newest inventory of single copies, by cluster."""
    marks: Mapping[str, CopyMarks] = field(default_factory=dict)
    """Marks of copies that are listed one by one, by cluster."""
    copies: Mapping[str, Copy] = field(default_factory=dict)
    """Copies by cluster, those that leave included."""
    moves: Mapping[str, Relocation] = field(default_factory=dict)
    """Relocations by the cluster that is left."""
    evicting: tuple[str, ...] = ()
    """Karmada: which of our eviction tasks are there, as inventory last told it and actions went on from there."""
    overruled: str = ""
    """Result that Karmada's scheduler made of the last action, where it differs from what was asked; empty: it does
    not."""
    left: Mapping[str, Departure] = field(default_factory=dict)
    """Departures by cluster, for as long as the cluster is blocked for the workload."""
    wanted_copies: int | None = None
    """Number of copies when the first of them had to leave; None: none moves, and there is no surplus."""
    wanted_replicas: int | None = None
    """Number of replicas of all copies together then."""
    wanted_on: tuple[str, ...] = ()
    """On which clusters they were then: by these it is known which spread constraints held."""
    wanted_sizes: Mapping[str, int] = field(default_factory=dict)
    """Number of replicas of each copy then, with what people have changed since."""
    too_many_since: datetime | None = None
    """Since when there are more divided replicas than then, though none has to leave."""
    acted_at: datetime | None = None
    """Time at which an action last changed the copies: older inventory is ignored."""


UNLISTED = WorkloadState()
"""Of a workload that no inventory has spoken of."""


def without_dates(state: WorkloadState) -> WorkloadState:
    """Give the state without the dates at which the workload, its copies and the clusters were last listed."""
    clusters = {
        name: replace(one, observed_at=None, said_at={}, seen_by_rule={}) for name, one in state.clusters.items()
    }
    return replace(state, clusters=clusters, listed_at=None, copy_seen={})


WorkloadGroup: TypeAlias = Group[WorkloadState]
