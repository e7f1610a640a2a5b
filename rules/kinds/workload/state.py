"""What is remembered of a workload and how it leaves clusters, and of the clusters that could hold it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from bus.messages import Health, Taint
from rules.core.group import Group
from rules.core.timers import Stopwatch
from rules.core.values import replace

Cause = Literal["Cluster", "Application"]


@dataclass(frozen=True, slots=True)
class ClusterState:
    """A cluster, as the rule's cluster inventory knows it."""

    listed: bool = False
    """It is in the inventory."""
    gone: bool = False
    """It was, and has been taken out."""
    observed_at: datetime | None = None
    """When the inventory was last heard."""
    labels: Mapping[str, str] = field(default_factory=dict)
    region: str = ""
    zone: str = ""
    provider: str = ""
    available: int | None = None
    """How many more replicas it has room for; None: not known, taken as enough."""
    taints: tuple[Taint, ...] = ()
    """Those of the inventory, each with a time."""
    by_rule: Mapping[str, tuple[Taint, ...]] = field(default_factory=dict)
    """Those of ClusterTaint rules."""
    said_at: Mapping[str, datetime] = field(default_factory=dict)
    """When each of these rules last said so."""
    status: Health | None = None
    """None: never observed."""
    known: bool = False
    """Its health was known once: only then does Unknown mean that it is unreachable."""
    clocks: Mapping[str, Stopwatch] = field(default_factory=dict)
    """The taints that it has by its own health: key to since when."""
    failures: int = 0
    """How often it had failed again soon after its recovery, when it last recovered."""
    recovered_at: datetime | None = None
    """When it last recovered."""
    waits_until: datetime | None = None
    """Until then it gets no copies, because it has failed again so often."""
    acute: tuple[Taint, ...] = ()
    """All taints that make workloads leave; those whose clock waits do not."""


UNHEARD = ClusterState()
"""A cluster without any observation. One for all: it is asked for with every copy of every workload."""


@dataclass(frozen=True, slots=True)
class Outage:
    """So many clusters are bad at once that the monitoring data may be wrong."""

    since: datetime
    whole: bool = False
    """All of them were."""


@dataclass(frozen=True, slots=True)
class Copy:
    """The workload's copy in one cluster."""

    replicas: int | None
    """None: the kind has no replicas, or they are not known."""
    placed_at: datetime | None = None
    """When it was last created or resized: health seen before says nothing about it."""
    first_status_at: datetime | None = None
    once_healthy: bool = False
    bad: Stopwatch | None = None
    """How long it has been bad."""
    replaces: int = 0
    """How many bad copies in a row it replaces, itself included where it had to leave and stayed after all."""
    returned_at: datetime | None = None
    """When it last stayed after all, though it had been bad for long enough to leave."""


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
    """It leaves because it is too many: what it was placed for has come back."""
    replaced: int = 0
    """How many bad copies in a row its replacement replaces."""
    planned: Mapping[str, int] = field(default_factory=dict)
    """Karmada, Directly: the placement that was written together with the eviction, for the Place that follows."""


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
    """When inventory last spoke of all copies together."""
    listed: Mapping[str, int] = field(default_factory=dict)
    """The copies as inventory last told them; `copies` goes on from there."""
    states: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Cluster to what a policy may want carried over: JSONPath to value, as it was last told."""
    copy_seen: Mapping[str, datetime] = field(default_factory=dict)
    """When inventory last spoke of single copies."""
    copies: Mapping[str, Copy] = field(default_factory=dict)
    """Where it is, those that leave included."""
    moves: Mapping[str, Relocation] = field(default_factory=dict)
    """Which clusters it is leaving."""
    evicting: tuple[str, ...] = ()
    """Karmada: which of our eviction tasks are there, as inventory last told it and actions went on from there."""
    overruled: str = ""
    """What Karmada's scheduler has made of the last action, where that is not what was asked."""
    left: Mapping[str, Departure] = field(default_factory=dict)
    """Which clusters it has left, as long as they are blocked for it."""
    wanted_copies: int | None = None
    """How many copies there were when the first of them had to leave; None: none moves, and none is too many."""
    wanted_replicas: int | None = None
    """How many replicas all copies had together then."""
    wanted_on: tuple[str, ...] = ()
    """On which clusters they were then: by these it is known which spread constraints held."""
    wanted_sizes: Mapping[str, int] = field(default_factory=dict)
    """How many replicas each of them had then, with what people have changed since."""
    too_many_since: datetime | None = None
    """Since when there are more divided replicas than then, though none has to leave."""
    acted_at: datetime | None = None
    """When an action last changed the copies: inventory from before says nothing new."""


UNLISTED = WorkloadState()
"""Of a workload that no inventory has spoken of."""


def without_dates(state: WorkloadState) -> WorkloadState:
    """Give the state without the dates at which the workload, its copies and the clusters were last listed."""
    clusters = {name: replace(one, observed_at=None, said_at={}) for name, one in state.clusters.items()}
    return replace(state, clusters=clusters, listed_at=None, copy_seen={})


WorkloadGroup: TypeAlias = Group[WorkloadState]
