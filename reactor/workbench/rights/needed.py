"""Permissions that each source and each kind of rule needs in a cluster that it names. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from reactor.workbench.rights.grant import LOOKS, WATCHES, WRITES, Grant, Needs
from rules.kinds.traffic.model import TrafficFailover
from rules.kinds.workload.model import ResourceSelector, WorkloadFailover
from rules.kinds.zone.model import Force, LabelledNetworkPolicy, SeedRef, ShootRef, StepName, ZoneIsolation
from rules.rulefile.route_kinds import RouteFormat

_DEPENDENCIES = ("configmaps", "secrets", "serviceaccounts", "persistentvolumeclaims")
_SLICES, _LEASES = "discovery.k8s.io", "coordination.k8s.io"
_WORK, _CLUSTER, _POLICY, _EXTENSIONS = (
    "work.karmada.io", "cluster.karmada.io", "policy.karmada.io", "extensions.gardener.cloud",
)  # fmt: skip
_BINDINGS = ("resourcebindings", "clusterresourcebindings")


def endpoints(namespace: str) -> tuple[Grant, ...]:
    """Permissions for an EndpointsWatch. `namespace` is empty for all."""
    return (Grant(_SLICES, "endpointslices", LOOKS, namespace), Grant("", "services", LOOKS, namespace))


def leases(namespace: str) -> tuple[Grant, ...]:
    """Permissions for a LeaseWatch."""
    return (Grant(_LEASES, "leases", LOOKS, namespace),)


def nodes() -> tuple[Grant, ...]:
    """Permissions for a NodeWatch."""
    return (
        Grant("", "nodes", LOOKS), Grant("", "pods", LOOKS), Grant(_SLICES, "endpointslices", LOOKS),
        Grant(_LEASES, "leases", LOOKS, "kube-node-lease"),
    )  # fmt: skip


def route(rule: TrafficFailover, kind: RouteFormat) -> Needs:
    """Permissions for a TrafficFailover whose route is in a cluster. All routes of a kind are watched by one watch."""
    namespace, name = rule.route.namespace or "", rule.route.name or ""
    return Needs(
        observer=(Grant(kind.group, kind.plural, WATCHES, namespace),),
        executor=(Grant(kind.group, kind.plural, ("get",), namespace, name),),
        writes=(
            Grant(kind.group, kind.plural, ("patch",), namespace, name),
            Grant("events.k8s.io", "events", ("create",), namespace),
        ),
    )


def workload(rule: WorkloadFailover, one: ResourceSelector, plural: str, namespace: str) -> Needs:
    """Permissions for a WorkloadFailover on a plain cluster. Observers remember what workloads look like."""
    group = one.api_version.rpartition("/")[0]
    kind = Grant(group, plural, ("get", "list"), namespace)
    depends = tuple(Grant("", resource, ("get",), namespace) for resource in _DEPENDENCIES if rule.copies_deps)
    pods = [Grant("", "pods", ("list",), namespace)]
    if (one.api_version, one.kind) == ("apps/v1", "Deployment"):
        pods.append(Grant("apps", "replicasets", ("list",), namespace))
    return Needs(
        observer=(kind, *depends),
        executor=(kind, *pods, *depends),
        writes=(
            Grant(group, plural, (*WRITES, "delete"), namespace),
            Grant("", "pods/eviction", ("create",), namespace),
            *(Grant("", resource, WRITES, namespace) for resource in _DEPENDENCIES if rule.copies_deps),
        ),
    )


def karmada(rule: WorkloadFailover) -> Needs:
    """Permissions for a WorkloadFailover on Karmada's control plane."""
    watched = tuple(Grant(_WORK, plural, WATCHES) for plural in _BINDINGS) + taint().observer
    if rule.policies is not None:
        policies = ("propagationpolicies", "clusterpropagationpolicies")
        watched += tuple(Grant(_POLICY, name, LOOKS) for name in policies)
    words = tuple(
        Grant("apiextensions.k8s.io", "customresourcedefinitions", ("get",), name=f"{plural}.{_WORK}")
        for plural in _BINDINGS
    )
    return Needs(
        observer=watched,
        executor=(*(Grant(_WORK, plural, ("get", "list")) for plural in _BINDINGS), *taint().executor, *words),
        writes=(*(Grant(_WORK, plural, ("patch",)) for plural in _BINDINGS), *taint().writes),
    )


def karmada_host() -> Needs:
    """Permissions where Karmada's components run, to see which of its switches are on."""
    return Needs(executor=(Grant("apps", "deployments", ("get",), "karmada-system", "karmada-controller-manager"),))


def taint() -> Needs:
    """Permissions for a ClusterTaint on Karmada's control plane."""
    return Needs(
        observer=(Grant(_CLUSTER, "clusters", WATCHES),),
        executor=(Grant(_CLUSTER, "clusters", ("get", "list")),),
        writes=(Grant(_CLUSTER, "clusters", ("patch",)),),
    )


def zone(rule: ZoneIsolation) -> Needs:
    """Permissions for a ZoneIsolation of a plain cluster: its own steps alone."""
    reads = (Grant("", "nodes", ("get", "list")), Grant("", "pods", ("get", "list")))
    return Needs(executor=reads, writes=tuple(_steps(rule)))


def _steps(rule: ZoneIsolation) -> Iterator[Grant]:
    if StepName.FENCE in rule.steps:
        yield Grant("", "nodes", ("patch",))
    if StepName.EVACUATE in rule.steps:
        yield Grant("", "pods/eviction", ("create",))
        if rule.force is not Force.NEVER:
            yield Grant("", "pods", ("delete",))
    if StepName.CUT_NETWORK in rule.steps and isinstance(rule.network, LabelledNetworkPolicy):
        yield Grant("", "pods", ("patch",))
        yield Grant("networking.k8s.io", "networkpolicies", ("get", "list", "create", "delete"))


def garden(shoot: ShootRef) -> Needs:
    """Permissions for a ZoneIsolation of a Gardener Shoot, in the garden cluster."""
    shoots = "core.gardener.cloud", "shoots"
    return Needs(
        executor=(Grant(*shoots, ("get",), shoot.namespace, shoot.name),),
        writes=(Grant(*shoots, ("patch",), shoot.namespace, shoot.name),),
    )


def seed(at: SeedRef, name: str) -> Needs:
    """Permissions for the same in the cluster with the Shoot's control plane. `name`: of the Shoot, and so of its
    Worker."""
    return Needs(
        executor=(
            Grant(_EXTENSIONS, "workers", ("get",), at.namespace, name),
            Grant(_EXTENSIONS, "subnetisolations", ("get",), at.namespace),
        ),
        writes=(
            Grant(_EXTENSIONS, "workers", ("patch",), at.namespace, name),
            Grant(_EXTENSIONS, "subnetisolations", ("create", "delete"), at.namespace),
            Grant(_EXTENSIONS, "subnetisolations/status", ("patch",), at.namespace),
        ),
    )
