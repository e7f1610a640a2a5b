"""Remembers what workloads look like while their clusters answer: one slow round after the other, for each cluster.

Rounds and not watches: only the newest state counts, a template changes with a release and not by the second, and a
watch of all ConfigMaps would read the other tenants' as well. Requests of one cluster follow each other, so that a
round never is a burst. Secrets are never read here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence

from bus.messages import WorkloadRef
from reactor.actions.outcomes import Declined
from reactor.actions.workload.copy import portable
from reactor.actions.workload.copy_sources import ClusterLookup, remember
from reactor.actions.workload.deps import needs
from reactor.actions.workload.paths import base, kind_of, path_of
from reactor.actions.workload.templates import Templates
from reactor.clients.changes import metadata_of, strings_of
from reactor.clients.kubernetes_port import JsonObject, KubeApi, NotFound
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError
from rules.kinds.workload.affinity import selected
from rules.kinds.workload.copy_needs import RememberedWorkloads
from rules.kinds.workload.model import ResourceSelector

ROUND_SECONDS = 300.0
"""Seconds from the end of one round to the beginning of the next: a remembered copy is older by little more at most."""

log = logging.getLogger(__name__)


async def run(
    cluster: str, wanted: Sequence[RememberedWorkloads], *, clusters: ClusterLookup, templates: Templates, clock: Clock
) -> None:
    """Remember these workloads of one cluster until cancelled."""
    complaint = ""
    while True:
        try:
            changed = await one_round(await clusters(cluster), wanted, templates)
        except ReactorError as error:
            reason = type(error).__name__
            if reason != complaint:
                log.warning("cannot remember workloads, trying again", extra={"cluster": cluster, "reason": str(error)})
            complaint = reason
        else:
            complaint = ""
            log.debug("workloads remembered", extra={"cluster": cluster, "changed": changed})
        await clock.sleep(ROUND_SECONDS)


async def one_round(api: KubeApi, wanted: Iterable[RememberedWorkloads], templates: Templates) -> int:
    """Look at every workload once, and give how many objects are remembered otherwise than before.

    A kind that the cluster does not serve has no workloads there. Raises as KubeApi does for anything else.
    """
    seen: set[WorkloadRef] = set()
    changed = 0
    for some in wanted:
        for selector in some.selectors:
            for ref, found in await _chosen(api, selector):
                copy = portable(found)
                changed += await _once(templates, ref, copy, seen)
                if some.with_dependencies:
                    changed += await _needed(api, ref, copy, templates, seen)
    return changed


async def _chosen(api: KubeApi, selector: ResourceSelector) -> list[tuple[WorkloadRef, JsonObject]]:
    try:
        kind = await kind_of(api, selector.api_version, selector.kind)
    except Declined:
        return []
    where = f"/namespaces/{selector.namespace}" if kind.namespaced and selector.namespace else ""
    if selector.name and (where or not kind.namespaced):
        try:
            found = [await api.get(f"{base(selector.api_version)}{where}/{kind.plural}/{selector.name}")]
        except NotFound:
            found = []
    else:
        found = [*await api.list(f"{base(selector.api_version)}{where}/{kind.plural}")]
    return [*_matching(found, selector)]


def _matching(found: Iterable[JsonObject], selector: ResourceSelector) -> Iterator[tuple[WorkloadRef, JsonObject]]:
    for one in found:
        metadata = metadata_of(one)
        if "deletionTimestamp" in metadata or selector.name not in (None, metadata.get("name")):
            continue
        if not selected(selector.label_selector, strings_of(metadata.get("labels"))):
            continue
        ref = WorkloadRef(
            namespace=metadata.get("namespace") or "", kind=selector.kind, name=metadata["name"],
            api_version=selector.api_version,
        )  # fmt: skip
        # Items of a list say neither.
        yield ref, {**one, "apiVersion": selector.api_version, "kind": selector.kind}


async def _needed(
    api: KubeApi, workload: WorkloadRef, copy: JsonObject, templates: Templates, seen: set[WorkloadRef]
) -> int:
    changed = 0
    for need in needs(copy):
        ref = WorkloadRef(namespace=workload.namespace, kind=need.kind, name=need.name, api_version="v1")
        if need.kind == "Secret" or ref in seen:
            continue
        try:
            found = await api.get(await path_of(api, ref))
        except NotFound:
            continue  # a placement will say so; here it is only not remembered
        changed += await _once(templates, ref, portable(found), seen)
    return changed


async def _once(templates: Templates, ref: WorkloadRef, copy: JsonObject, seen: set[WorkloadRef]) -> bool:
    if ref in seen:
        return False
    seen.add(ref)
    return await remember(templates, ref, copy)
