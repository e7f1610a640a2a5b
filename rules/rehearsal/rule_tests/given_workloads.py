"""Clusters and workloads in a rule test, with the keys of histories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, StringConstraints

from bus.messages import Cluster, Taint, Workload
from rules.kinds.cluster_taint.model import NewTaint
from rules.rehearsal.simulation import at
from rules.rulefile.fields import ClusterName, KubeName, Model

Text = Annotated[str, StringConstraints(max_length=253)]
Count = Annotated[int, Field(ge=0, le=1_000_000)]


class ClusterGiven(Model):
    """A member cluster. One that is known only by its health needs no entry."""

    name: ClusterName
    labels: Mapping[str, str] = {}
    region: Text = ""
    """For spreadByField."""
    zone: Text = ""
    """For spreadByField."""
    provider: Text = ""
    """For spreadByField."""
    available_replicas: Count | None = None
    """Replicas for which it has room; without it: not known, considered enough."""
    taints: tuple[NewTaint, ...] = ()
    """From this second on."""
    exists: bool = True

    def fact(self, second: float) -> Cluster:
        """Inventory of the cluster at this second."""
        taints = tuple(Taint(key=one.key, value=one.value, effect=one.effect) for one in self.taints)
        return Cluster(
            name=self.name, labels=dict(self.labels), region=self.region, zone=self.zone, provider=self.provider,
            available_replicas=self.available_replicas, taints=taints, exists=self.exists, observed_at=at(second),
        )  # fmt: skip


class WorkloadGiven(Model):
    """A workload, and all its copies. Without it no rule moves one."""

    namespace: KubeName
    kind: Annotated[str, StringConstraints(min_length=1, max_length=253)]
    name: KubeName
    api_version: Text | None = None
    """Default: as the rule's resourceSelectors have it."""
    uid: Text = ""
    """Decides who gets the remainder of a division."""
    labels: Mapping[str, str] = {}
    replicas: Count | None = None
    """Wanted in all."""
    clusters: Mapping[ClusterName, Count] = {}
    """Replicas of its copies, by cluster."""
    exists: bool = True

    def fact(self, second: float) -> Workload:
        """Inventory of the workload at this second."""
        fact = Workload(
            namespace=self.namespace, kind=self.kind, name=self.name, uid=self.uid, labels=dict(self.labels),
            replicas=self.replicas, clusters=dict(self.clusters), exists=self.exists, observed_at=at(second),
        )  # fmt: skip
        return fact if self.api_version is None else fact.model_copy(update={"api_version": self.api_version})
