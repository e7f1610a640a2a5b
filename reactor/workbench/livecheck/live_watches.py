"""Checks sources that watch a cluster: their kinds, their namespace, and the permissions."""

from __future__ import annotations

from collections.abc import Sequence

from reactor.clients.kubernetes_port import Forbidden, NotFound
from reactor.sources.kubernetes.workload_kinds import served_kind
from reactor.workbench.livecheck.live import Live, Site, quoted
from reactor.workbench.rights import needed
from reactor.workbench.rights.grant import LOOKS, Grant
from rules.core.errors import Problem
from rules.rulefile.sources import ClusterProbe, EndpointsWatch, LeaseWatch, NodeWatch, WorkloadWatch

Watching = ClusterProbe | EndpointsWatch | LeaseWatch | NodeWatch | WorkloadWatch


async def ask(live: Live, source: Watching, site: Site) -> list[Problem]:
    """Ask the source's cluster. A ClusterProbe only needs it to answer."""
    match source:
        case ClusterProbe():
            await live.found("/version")
            return []
        case EndpointsWatch():
            namespace = source.namespace or ""
            return await _grants_and_namespace(live, needed.endpoints(namespace), namespace, site)
        case LeaseWatch():
            return await _grants_and_namespace(live, needed.leases(source.namespace), source.namespace, site)
        case NodeWatch():
            refused = await live.refusals(needed.nodes(), site, "error")
            return [*refused, *await _zone_label(live, source, site)]
        case WorkloadWatch():
            return await _workloads(live, source, site)


async def _grants_and_namespace(live: Live, grants: Sequence[Grant], namespace: str, site: Site) -> list[Problem]:
    problems = await live.refusals(grants, site, "error")
    if namespace and await live.sees_no(f"/api/v1/namespaces/{quoted(namespace)}"):
        problems.append(site.at("namespace").says(f"{live.api.cluster}: there is no namespace {namespace}"))
    return problems


async def _zone_label(live: Live, source: NodeWatch, site: Site) -> list[Problem]:
    try:
        labelled = await live.api.list("/api/v1/nodes", label_selector=source.zone_label)
    except Forbidden:
        return []
    message = f"{live.api.cluster}: no node carries the label {source.zone_label}: no zone will be told of"
    return [] if labelled else [site.at("zoneLabel").says(message, "warning")]


async def _workloads(live: Live, source: WorkloadWatch, site: Site) -> list[Problem]:
    namespace = source.namespace or ""
    grants, problems = [], []
    for index, kind in enumerate(source.kinds):
        try:
            served = await served_kind(live.api, kind)
        except NotFound as error:
            problems.append(site.at("kinds", index).says(str(error)))
            continue
        grants.append(Grant(served.group, served.plural, LOOKS, namespace if served.namespaced else ""))
    return problems + await _grants_and_namespace(live, grants, namespace, site)
