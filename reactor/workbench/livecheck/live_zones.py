"""Checks a ZoneIsolation: nodes that carry its zones, a Shoot, and the permissions of its own steps alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from reactor.clients.kubernetes_port import Forbidden
from reactor.workbench.livecheck.live import ClusterJob, Live, Site, gravity, quoted
from reactor.workbench.rights import needed
from rules.core.errors import Problem
from rules.kinds.zone.model import SeedRef, ShootRef, ZoneIsolation

ZONE_LABEL = "topology.kubernetes.io/zone"
_EXTENSIONS = "extensions.gardener.cloud"


def jobs(rule: ZoneIsolation, site: Site) -> Iterator[ClusterJob]:
    """Give what is asked of the cluster, or of the garden and the seed."""
    if rule.shoot is None:
        yield ClusterJob(rule.cluster_name, site.at("cluster"), partial(_cluster, rule=rule, site=site))
        return
    garden = partial(_garden, rule=rule, shoot=rule.shoot, site=site.at("shoot"))
    yield ClusterJob(rule.shoot.cluster, site.at("shoot"), garden)
    if rule.seed is not None:
        seed = partial(_seed, rule=rule, seed=rule.seed, name=rule.shoot.name, site=site.at("seed"))
        yield ClusterJob(rule.seed.cluster, site.at("seed"), seed)


async def _cluster(live: Live, rule: ZoneIsolation, site: Site) -> list[Problem]:
    needs = needed.zone(rule)
    problems = await live.refusals(needs.executor, site.at("cluster"), "error")
    problems += await live.refusals(needs.writes, site.at("cluster"), gravity(rule))
    try:
        nodes = await live.api.list("/api/v1/nodes")
    except Forbidden:
        return problems
    there = sorted({str(label) for node in nodes if (label := _labels(node).get(ZONE_LABEL))})
    for index, zone in enumerate(rule.zones):
        if zone.name not in there:
            known = ", ".join(there) or "none"
            message = f"{live.api.cluster}: no node carries {ZONE_LABEL}={zone.name}; there are {known}"
            problems.append(site.at("zones", index, "name").says(message))
    if left := [name for name in there if rule.zone(name) is None]:
        message = f"{live.api.cluster}: nodes also carry {', '.join(left)}: list all zones, or the rest is misjudged"
        problems.append(site.at("zones").says(message, "warning"))
    return problems


def _labels(node: dict[str, object]) -> dict[str, object]:
    metadata = node.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return labels if isinstance(labels, dict) else {}


async def _garden(live: Live, rule: ZoneIsolation, shoot: ShootRef, site: Site) -> list[Problem]:
    path = f"/apis/core.gardener.cloud/v1beta1/namespaces/{quoted(shoot.namespace)}/shoots/{quoted(shoot.name)}"
    needs = needed.garden(shoot)
    problems = await live.refusals(needs.executor, site, "error")
    problems += await live.refusals(needs.writes, site, gravity(rule))
    if await live.sees_no(path):
        message = f"{live.api.cluster}: there is no Shoot {shoot.namespace}/{shoot.name}"
        problems.append(site.at("name").says(message))
    return problems


async def _seed(live: Live, rule: ZoneIsolation, seed: SeedRef, name: str, site: Site) -> list[Problem]:
    needs = needed.seed(seed, name)
    problems = await live.refusals(needs.executor, site, "error")
    problems += await live.refusals(needs.writes, site, gravity(rule))
    path = f"/apis/{_EXTENSIONS}/v1alpha1/namespaces/{quoted(seed.namespace)}/workers/{quoted(name)}"
    if await live.sees_no(path):
        problems.append(site.says(f"{live.api.cluster}: there is no Worker {seed.namespace}/{name}"))
    return problems
