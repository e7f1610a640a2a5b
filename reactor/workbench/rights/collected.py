"""Everything that rule files need, by cluster and by role."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bus.messages import Mode
from reactor.rulefiles.unlisted import refuse_rule, refuse_source
from reactor.settings.model import Settings
from reactor.sources.kubernetes.workload_kinds import BUILT_IN
from reactor.workbench.rights import needed
from reactor.workbench.rights.grant import LOOKS, Grant, Needs
from rules.kinds.cluster_taint.model import ClusterTaint
from rules.kinds.traffic.model import TrafficFailover
from rules.kinds.workload.copy_needs import clusters_of
from rules.kinds.workload.model import WorkloadFailover
from rules.kinds.zone.model import ZoneIsolation
from rules.rulefile.model import Rule
from rules.rulefile.route_kinds import kind_of
from rules.rulefile.sources import ClusterProbe, EndpointsWatch, LeaseWatch, LoadedSource, NodeWatch, WorkloadWatch

ACTS = frozenset({Mode.ENFORCE, Mode.APPROVE})
_HERE = "reactor/workbench/rights/collected.py"


class Right(NamedTuple):
    """A permission of a role in a cluster."""

    cluster: str
    role: str
    """observer or executor: the other roles speak to no cluster."""
    grant: Grant


def rights(
    sources: Sequence[LoadedSource], rules: Sequence[Rule], settings: Settings, *, as_if_enforced: bool = False
) -> set[Right]:
    """Give what they need. `as_if_enforced`: count rules in DryRun as if they acted.

    Raises KeyError for a route kind that the settings do not describe.
    """
    found = set[Right]()
    for source in sources:
        found |= {Right(cluster, "observer", grant) for cluster, grant in _of_source(source)}
    for rule in rules:
        if rule.mode is Mode.OFF:
            continue
        for cluster, needs in _of_rule(rule, settings):
            found |= {Right(cluster, "observer", grant) for grant in needs.observer}
            if as_if_enforced or rule.mode in ACTS:
                found |= {Right(cluster, "executor", grant) for grant in (*needs.executor, *needs.writes)}
    return found


def _of_source(source: LoadedSource) -> Iterator[tuple[str, Grant]]:
    grants: tuple[Grant, ...] = ()
    match source:
        case EndpointsWatch():
            grants = needed.endpoints(source.namespace or "")
        case LeaseWatch():
            grants = needed.leases(source.namespace)
        case NodeWatch():
            grants = needed.nodes()
        case WorkloadWatch():
            kinds = [
                BUILT_IN[one] if isinstance(one, str) else (one.api_version, plural(one.kind)) for one in source.kinds
            ]
            grants = tuple(Grant(at.rpartition("/")[0], name, LOOKS, source.namespace or "") for at, name in kinds)
        case ClusterProbe():
            pass  # every client may read /readyz and /healthz
        case _:
            refuse_source(source, _HERE, "cluster")
            return
    for grant in grants:
        yield source.cluster, grant


def _of_rule(rule: Rule, settings: Settings) -> Iterator[tuple[str, Needs]]:
    plane = settings.karmada.cluster
    match rule:
        case TrafficFailover() if rule.route.in_cluster:
            kind = kind_of(rule.route.kind, rule.route.custom_kind, settings.described_route_kinds)
            yield rule.route.cluster, needed.route(rule, kind)
        case WorkloadFailover() if rule.carrier == "Karmada":
            yield plane, needed.karmada(rule)
            yield settings.karmada.host or plane, needed.karmada_host()
        case WorkloadFailover():
            names = clusters_of(rule.placement)
            for cluster in tuple(settings.clusters) if names == ("*",) else names:
                yield from ((cluster, one) for one in _workloads(rule, settings))
        case ClusterTaint() if rule.carrier == "Karmada":
            yield plane, needed.taint()
        case ZoneIsolation() if rule.shoot is not None:
            yield rule.shoot.cluster, needed.garden(rule.shoot)
            if rule.seed is not None:
                yield rule.seed.cluster, needed.seed(rule.seed, rule.shoot.name)
        case ZoneIsolation():
            yield rule.cluster_name, needed.zone(rule)
        case TrafficFailover() | ClusterTaint():
            pass  # on a load balancer, or known to the reactor's own rules alone
        case _:
            refuse_rule(rule, _HERE)


def _workloads(rule: WorkloadFailover, settings: Settings) -> Iterator[Needs]:
    for one in rule.resource_selectors:
        built_in = BUILT_IN.get(one.kind)
        known = built_in is not None and built_in[0] == one.api_version
        yield needed.workload(rule, one, built_in[1] if built_in and known else plural(one.kind), one.namespace or "")
    if settings.create_namespaces:
        yield Needs(writes=(Grant("", "namespaces", ("get", "create", "patch")),))


def plural(kind: str) -> str:
    """Guess how a kind that is not built in is spelled in a path, as kubectl does: Foo is foos, Proxy proxies."""
    name = kind.lower()
    if name.endswith("s"):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
