"""Sources that watch a Kubernetes API: their keys in a rule file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from rules.rulefile.fields import ClusterName, KubeName, Model, Period, Seconds, Selector, Template
from rules.rulefile.source_keys import Source, TargetsMax

OBJECTS_MAX = 100_000
"""Of how many targets a source may speak where each is an object of a cluster."""


class EndpointsWatch(Source):
    """EndpointSlices of Services."""

    kind: Literal["EndpointsWatch"]
    cluster: ClusterName
    """The cluster whose API server is asked: a name under `clusters` in the settings."""
    namespace: KubeName | None = None
    """All namespaces by default."""
    selector: Selector | None = None
    """Labels of the Services' EndpointSlices; all by default."""
    min_ready: Annotated[int, Field(ge=1, le=100_000)] = 1
    """A Service with at least this many ready endpoints is Healthy."""
    target: Template = "service/{cluster}/{namespace}/{service}"
    """The target of each Service; `{cluster}`, `{namespace}` and `{service}` are replaced."""
    max_targets: TargetsMax = OBJECTS_MAX
    """The most targets that it may have. Observations of more are refused and counted."""


class ClusterProbe(Source):
    """An API server's /readyz, and its /healthz where there is no /readyz."""

    kind: Literal["ClusterProbe"]
    cluster: ClusterName
    """The cluster whose API server is asked: a name under `clusters` in the settings."""
    every_seconds: Period = 10
    """A reading that fails has been tried four times within two seconds."""
    failure_seconds: Seconds = 30
    """The time for which readings must fail before a cluster that was Healthy is so no more."""
    success_seconds: Seconds = 30
    """The time for which they must succeed before it is Healthy again."""
    target: Template = "cluster/{cluster}"
    """The target of the cluster; `{cluster}` is replaced."""


class LeaseWatch(Source):
    """Heartbeats: Leases that their owners renew."""

    kind: Literal["LeaseWatch"]
    cluster: ClusterName
    """The cluster with the Leases: for Karmada its control plane."""
    namespace: KubeName = "karmada-cluster"
    """The namespace whose Leases are heartbeats."""
    monitor_seconds: Period = 5
    """Seconds between two checks for silent Leases."""
    grace_seconds: Annotated[float, Field(ge=1, le=86_400)] = 40
    """Unknown after more than so long without a renewal."""
    startup_grace_seconds: Annotated[float, Field(ge=1, le=86_400)] = 60
    """The same for a Lease that has not been seen renewed yet."""
    target: Template = "cluster/{name}"
    """The target of each Lease; `{name}` is the name of the Lease."""


BuiltInKind = Literal[
    "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Pod", "Job", "Service", "Ingress", "PersistentVolumeClaim"
]


class CustomKind(Model):
    """Any other kind that the cluster serves."""

    api_version: Annotated[
        str, StringConstraints(pattern=r"^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?v[a-z0-9]+$", max_length=317)
    ]
    """Group and version of the kind, such as `example.com/v1`."""
    kind: Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Za-z0-9]*$", max_length=63)]
    """`Widget`, as objects name it."""


class HealthScript(Model):
    """Judgement of health instead of the built-in rules; one of the two."""

    lua: Annotated[str, StringConstraints(min_length=1, max_length=65_536)] | None = None
    """A Karmada script: the function `InterpretHealth(observedObj)` gives true or false."""
    cel: Annotated[str, StringConstraints(min_length=1, max_length=16_384)] | None = None
    """An expression over `object` that gives true or false."""


class WorkloadWatch(Source):
    """Health of workloads by what their objects say."""

    kind: Literal["WorkloadWatch"]
    cluster: ClusterName
    """The cluster whose API server is asked: a name under `clusters` in the settings."""
    namespace: KubeName | None = None
    """All namespaces by default."""
    kinds: Annotated[tuple[BuiltInKind | CustomKind, ...], Field(min_length=1, max_length=64)] = (
        "Deployment", "StatefulSet", "DaemonSet"
    )  # fmt: skip
    """Names of built-in kinds, or {apiVersion, kind} of others."""
    selector: Selector | None = None
    """Labels of the objects; all by default."""
    health: HealthScript | None = None
    """Default: the built-in rule of each kind; for other kinds their condition Ready, else Available."""
    target: Template = "workload/{cluster}/{namespace}/{kind}/{name}"
    """The target of each object; `{cluster}`, `{namespace}`, `{kind}` and `{name}` are replaced."""
    max_targets: TargetsMax = OBJECTS_MAX
    """The most targets that it may have. Observations of more are refused and counted."""


class NodeWatch(Source):
    """Nodes' Ready conditions; also the health of zones, and what is to be known before a zone may go."""

    kind: Literal["NodeWatch"]
    cluster: ClusterName
    """The cluster whose API server is asked: a name under `clusters` in the settings."""
    zone_label: Annotated[
        str, StringConstraints(pattern=r"^([a-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$", max_length=317)
    ] = "topology.kubernetes.io/zone"
    """The label by which a node says in which zone it is."""
    target: Template = "node/{cluster}/{node}"
    """The target of each node; `{cluster}` and `{node}` are replaced."""
    max_targets: TargetsMax = OBJECTS_MAX
    """The most targets that it may have. Observations of more are refused and counted."""
