"""The jobs of the role `observer` under one rule set: sources, inventories, and what is remembered of workloads.

Members of a fleet share them out by their names (`reactor.fleet`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import cast

from bus.messages import LoadBalancerKind
from bus.topology import TEMPLATES
from reactor.actions.workload import remembering
from reactor.actions.workload.templates import BusTemplates
from reactor.fleet.observer import Start
from reactor.process.process_context import ProcessContext
from reactor.runtime.supervise import forever
from reactor.sources.catalog import is_run, start_all
from reactor.sources.source_context import SourceContext
from rules.kinds.cluster_taint.model import ClusterTaint
from rules.kinds.traffic.model import TrafficFailover
from rules.kinds.workload.model import WorkloadFailover
from rules.loader import RuleSet


def observer_jobs(rules: RuleSet, context: ProcessContext, world: SourceContext) -> dict[str, Start]:
    """All jobs of these rules, by name."""
    sources: dict[str, Start] = {
        f"source/{source.name}": partial(start_all, [source], world) for source in rules.sources if is_run(source.kind)
    }
    return sources | _routes(rules, world) | _karmada(rules, context, world) | _remembering(rules, context)


def _routes(rules: RuleSet, world: SourceContext) -> dict[str, Start]:
    """One job for the routes of all clusters, and one for each load balancer."""
    jobs: dict[str, Start] = {}
    selections = [rule.route for rule in rules.rules if isinstance(rule, TrafficFailover)]
    if routes := [one for one in selections if one.in_cluster]:
        jobs["routes"] = partial(start_all, (), world, routes=routes)
    for one in selections:
        if not one.in_cluster and one.name is not None:
            named = {one.name: cast("LoadBalancerKind", one.kind)}
            jobs[f"loadBalancer/{one.name}"] = partial(start_all, (), world, load_balancers=named)
    return jobs


def _karmada(rules: RuleSet, context: ProcessContext, world: SourceContext) -> dict[str, Start]:
    """One job, where Karmada carries out a rule."""
    carried = [
        rule for rule in rules.rules if isinstance(rule, WorkloadFailover | ClusterTaint) and rule.carrier == "Karmada"
    ]
    if not carried:
        return {}
    selectors = [rule.policies.selector for rule in carried if isinstance(rule, WorkloadFailover) and rule.policies]
    planes = {context.settings.karmada.cluster: selectors}
    return {"karmada": partial(start_all, (), world, karmada=planes)}


def _remembering(rules: RuleSet, context: ProcessContext) -> dict[str, Start]:
    """A job for each cluster: what workloads look like while they can be read, for when they cannot."""
    ours = [rule for rule in rules.rules if isinstance(rule, WorkloadFailover) and rule.carrier == "Kubernetes"]
    templates = BusTemplates(context.bus.store(TEMPLATES), context.clock)

    def start(cluster: str) -> Sequence[asyncio.Task[None]]:
        run = partial(
            remembering.run, cluster, ours, clusters=context.clusters.get, templates=templates, clock=context.clock
        )
        return [asyncio.create_task(forever(f"remembering {cluster}", run, context.loops))]

    return {f"remember/{cluster}": partial(start, cluster) for cluster in context.settings.clusters} if ours else {}
