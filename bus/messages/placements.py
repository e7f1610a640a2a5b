"""Clusters, workloads, and how workloads leave clusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AwareDatetime, Field, StringConstraints

from bus.messages.base import ActionMessage, Health, Message, MessagePart, Name, Statement

Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
PurgeMode = Literal["Directly", "Gracefully", "Never"]
OnGraceExpired = Literal["Keep", "Purge"]
Carrier = Literal["Kubernetes", "Karmada"]
Replicas = Annotated[int, Field(ge=0, le=1_000_000)]


class Taint(MessagePart):
    """Taint: a reason why a cluster should not hold workloads. Key and effect are its identity."""

    key: Annotated[str, StringConstraints(min_length=1, max_length=317)]
    value: Annotated[str, StringConstraints(max_length=253)] = ""
    effect: Effect
    time_added: AwareDatetime | None = None
    """Time at which it was added; None: not known; a rule takes the time of its first observation."""


class Cluster(Message):
    """Inventory: a member cluster, or that it is one no more."""

    type: ClassVar[str] = "dev.alert-reactor.cluster.v1"

    name: Name
    labels: dict[str, str] = {}
    region: str = ""
    zone: str = ""
    provider: str = ""
    available_replicas: Replicas | None = None
    """Number of further replicas that it has room for; None: not known, assumed to be enough."""
    taints: tuple[Taint, ...] = ()
    """Taints on the cluster's object, from every writer."""
    exists: bool = True
    observed_at: AwareDatetime

    @property
    def about(self) -> str:
        return f"cluster/{self.name}"


class TaintLook(MessagePart):
    """Proof by a signal of a ClusterTaint rule that its taints are to be on."""

    signal: Name
    source: Annotated[str, StringConstraints(max_length=253)] = ""
    """Source that can be asked to look again; empty: none can."""
    until: AwareDatetime | None = None
    """Time up to which the rule keeps its taints on by what this signal has shown; None: until another word comes."""


class ClusterTaints(Statement):
    """Inventory: all taints that one ClusterTaint rule has put on one cluster; none: it has taken them off."""

    type: ClassVar[str] = "dev.alert-reactor.cluster-taints.v1"

    taints: tuple[Taint, ...]
    observed_at: AwareDatetime
    health: Health | None = None
    """Unhealthy: the rule keeps them on; Unknown: nothing shows whether it has to; Healthy: it wants none, and takes
    off those that are on; None: they count as long as they are on."""
    looks: tuple[TaintLook, ...] = ()
    """Looks that the rule uses while they are to be on."""

    @property
    def about(self) -> str:
        return f"cluster/{self.cluster}"


class WorkloadRef(MessagePart):
    """Reference to a workload, wherever its copies are."""

    namespace: Annotated[str, StringConstraints(max_length=253)] = ""
    """Namespace; empty: the kind has none."""
    kind: Name
    name: Name
    api_version: Name = "apps/v1"

    @property
    def object(self) -> str:
        """`default/Deployment/nginx`."""
        return "/".join(part for part in (self.namespace, self.kind, self.name) if part)


class Workload(WorkloadRef, Message):
    """Inventory: all copies of a workload together."""

    type: ClassVar[str] = "dev.alert-reactor.workload.v1"

    uid: str = ""
    labels: dict[str, str] = {}
    replicas: Replicas | None = None
    """Wanted in all; None: the kind has no replicas, or their number is not known."""
    clusters: dict[str, Replicas] = {}
    """Number of replicas by cluster."""
    states: dict[str, dict[str, str]] = {}
    """Cluster to what a rule wants carried over of the copy's status: JSONPath to value."""
    evicting: tuple[Name, ...] = ()
    """Karmada: clusters that hold their copy by one of our eviction tasks, until we purge it or cancel the task."""
    policy: dict[str, Any] | None = None
    """The spec of the Karmada policy that governs it, where a rule honours policies."""
    exists: bool = True
    observed_at: AwareDatetime

    @property
    def about(self) -> str:
        return self.object


class CopyRecord(MessagePart):
    """Record that a copy carries: its time of creation, and the annotations of a rule's actions."""

    created_at: AwareDatetime | None = None
    rule: Annotated[str, StringConstraints(max_length=253)] = ""
    """Rule whose decision it follows; empty: none has written it."""
    decided_at: AwareDatetime | None = None
    """Time of that decision."""
    placed_for: tuple[Name, ...] = ()
    """Clusters for whose copies that rule made it."""
    leaves: Annotated[str, StringConstraints(max_length=253)] = ""
    """Reason for which that rule lets it leave, as `TolerationElapsed`; empty: it does not leave."""
    stays: tuple[Name, ...] = ()
    """Clusters whose copies were to stay when it began to leave."""


class WorkloadCopy(WorkloadRef, Message):
    """Inventory: the copy of a workload in one cluster."""

    type: ClassVar[str] = "dev.alert-reactor.workload-copy.v1"

    cluster: Name
    uid: str = ""
    labels: dict[str, str] = {}
    replicas: Replicas | None = None
    state: dict[str, str] = {}
    """Values of its status that a rule wants carried over, by JSONPath."""
    record: CopyRecord | None = None
    exists: bool = True
    observed_at: AwareDatetime

    @property
    def about(self) -> str:
        return self.object


class WorkloadAction(ActionMessage):
    """Action on a workload."""

    workload: WorkloadRef
    carrier: Carrier


class Eviction(MessagePart):
    """Eviction of a copy from its cluster."""

    from_: Annotated[Name, Field(alias="from")]
    purge_mode: PurgeMode
    grace_period_seconds: Annotated[int, Field(ge=0)] | None = None
    on_grace_expired: OnGraceExpired = "Keep"
    """Keep: no timer of another controller may remove the copy; only our Purge removes it."""
    preserved: dict[str, str] = {}
    """State that is carried over: to be labels of the new copy."""


class Place(WorkloadAction):
    """Let these clusters hold the workload, with so many replicas each."""

    type: ClassVar[str] = "dev.alert-reactor.place.v1"

    clusters: dict[str, Replicas]
    """The desired placement without the clusters that it leaves."""
    leaving: tuple[Name, ...] = ()
    """Clusters that keep their copy until it is purged."""
    sources: tuple[Name, ...] = ()
    """Clusters to copy the object from, best first."""
    propagate_deps: bool = False
    labels: dict[str, str] = {}
    """Labels for the new copies: state that is carried over."""
    evictions: tuple[Eviction, ...] = ()
    """Carrier Karmada: the evictions that follow. They are written together with the placement, because Karmada's
    scheduler answers each write, and would take a healthy copy away between the two."""

    @property
    def summary(self) -> str:
        return f"place {self.object} on {placed(self.clusters)}"

    @property
    def shown(self) -> dict[str, Any]:
        return {"clusters": self.clusters}

    @property
    def peers(self) -> frozenset[str]:
        return _peers(self.carrier, *self.clusters)


class Evict(WorkloadAction, Eviction):
    """The workload leaves this cluster, in this way."""

    type: ClassVar[str] = "dev.alert-reactor.evict.v1"

    replicas: Replicas | None = None
    """Number of replicas of the copy that leaves."""
    targets: tuple[Name, ...] = ()
    """Clusters that it goes to."""
    clusters: dict[str, Replicas] = {}
    """Carrier Karmada: the placement without this cluster, which is written together with the eviction."""

    @property
    def summary(self) -> str:
        return f"evict {self.object} from {self.from_} ({self.purge_mode})"

    @property
    def shown(self) -> dict[str, Any]:
        said = {"from": self.from_, "purgeMode": self.purge_mode}
        grace = self.grace_period_seconds
        return said if grace is None else said | {"gracePeriodSeconds": grace}

    @property
    def peers(self) -> frozenset[str]:
        return _peers(self.carrier, self.from_)


class Purge(WorkloadAction):
    """Remove the copy in this cluster."""

    type: ClassVar[str] = "dev.alert-reactor.purge.v1"

    from_: Annotated[Name, Field(alias="from")]

    @property
    def summary(self) -> str:
        return f"purge {self.object} from {self.from_}"

    @property
    def shown(self) -> dict[str, Any]:
        return {"from": self.from_}

    @property
    def peers(self) -> frozenset[str]:
        return _peers(self.carrier, self.from_)


class CancelEviction(WorkloadAction):
    """The copy in this cluster stays after all."""

    type: ClassVar[str] = "dev.alert-reactor.cancel-eviction.v1"

    from_: Annotated[Name, Field(alias="from")]

    @property
    def summary(self) -> str:
        return f"keep {self.object} on {self.from_} after all"

    @property
    def shown(self) -> dict[str, Any]:
        return {"from": self.from_}

    @property
    def peers(self) -> frozenset[str]:
        return _peers(self.carrier, self.from_)


class SetTaints(ActionMessage):
    """Let these be all taints that the rule has put on the cluster."""

    type: ClassVar[str] = "dev.alert-reactor.set-taints.v1"

    cluster: Name
    taints: tuple[Taint, ...]
    before: tuple[Taint, ...] = ()
    """Taints of the rule that were there, to be taken off where they are not among the taints."""
    carrier: Carrier

    @property
    def summary(self) -> str:
        keys = ", ".join(f"{taint.key}:{taint.effect}" for taint in self.taints) or "none"
        return f"set the taints of {self.object} to {keys}"

    @property
    def shown(self) -> dict[str, Any]:
        return {"taints": [one.model_dump(mode="json", include={"key", "value", "effect"}) for one in self.taints]}

    @property
    def peers(self) -> frozenset[str]:
        return _peers(self.carrier)  # on plain clusters taints are kept on the bus


def _peers(carrier: Carrier, *clusters: str) -> frozenset[str]:
    return frozenset({"Karmada"} if carrier == "Karmada" else clusters)


def placed(clusters: Mapping[str, int]) -> str:
    """Give a placement in words: `member1=2, member2=1`."""
    return ", ".join(f"{name}={count}" for name, count in sorted(clusters.items())) or "nowhere"
