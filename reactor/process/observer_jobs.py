"""The jobs of the role `observer` under one rule set: sources, and what rules read besides them.

Members of a fleet share them out by their names (`reactor.fleet`). No kind of source or rule is named here: a source's
module is found by its name, and a rule's kind says what is read for its rules (`FileKind.reads`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

from bus.messages import LoadBalancerKind
from bus.topology import TEMPLATES
from reactor.actions.workload import remembering
from reactor.actions.workload.templates import BusTemplates
from reactor.fleet.observer import Start
from reactor.process.process_context import ProcessContext
from reactor.runtime.supervise import forever
from reactor.sources.catalog import is_run, start_all
from reactor.sources.source_context import SourceContext
from rules.catalog import file_kind_of
from rules.kinds.traffic.model import RouteSelection
from rules.kinds.workload.copy_needs import RememberedWorkloads
from rules.loader import RuleSet
from rules.rulefile.feeds import KarmadaPlane


def observer_jobs(rules: RuleSet, context: ProcessContext, world: SourceContext) -> dict[str, Start]:
    """All jobs of these rules, by name."""
    sources: dict[str, Start] = {
        f"source/{source.name}": partial(start_all, [source], world) for source in rules.sources if is_run(source.kind)
    }
    read = _read(rules)
    return (
        sources
        | _routes(read[RouteSelection], world)
        | _karmada(read[KarmadaPlane], context, world)
        | _remembering(read[RememberedWorkloads], context)
    )


def _read(rules: RuleSet) -> dict[type, list[Any]]:
    """Give what the rules read, by its type. Raises LookupError for what no job reads: they would wait without end."""
    read: dict[type, list[Any]] = {RouteSelection: [], KarmadaPlane: [], RememberedWorkloads: []}
    for rule in rules.rules:
        for one in file_kind_of(rule).reads(rule):
            if type(one) not in read:
                raise LookupError(f"{type(rule).__name__} reads a {type(one).__name__}, and no job in {__name__} does")
            read[type(one)].append(one)
    return read


def _routes(selections: Sequence[RouteSelection], world: SourceContext) -> dict[str, Start]:
    """One job for the routes of all clusters, and one for each load balancer."""
    jobs: dict[str, Start] = {}
    if routes := [one for one in selections if one.in_cluster]:
        jobs["routes"] = partial(start_all, (), world, routes=routes)
    for one in selections:
        if not one.in_cluster and one.name is not None:
            named = {one.name: cast("LoadBalancerKind", one.kind)}
            jobs[f"loadBalancer/{one.name}"] = partial(start_all, (), world, load_balancers=named)
    return jobs


def _karmada(planes: Sequence[KarmadaPlane], context: ProcessContext, world: SourceContext) -> dict[str, Start]:
    """One job, where Karmada carries out a rule."""
    if not planes:
        return {}
    selectors = [one.policies for one in planes if one.policies is not None]
    return {"karmada": partial(start_all, (), world, karmada={context.settings.karmada.cluster: selectors})}


def _remembering(wanted: Sequence[RememberedWorkloads], context: ProcessContext) -> dict[str, Start]:
    """A job for each cluster: what workloads look like while they can be read, for when they cannot."""
    templates = BusTemplates(context.bus.store(TEMPLATES), context.clock)

    def start(cluster: str) -> Sequence[asyncio.Task[None]]:
        run = partial(
            remembering.run, cluster, wanted, clusters=context.clusters.get, templates=templates, clock=context.clock
        )
        return [asyncio.create_task(forever(f"remembering {cluster}", run, context.loops))]

    return {f"remember/{cluster}": partial(start, cluster) for cluster in context.settings.clusters} if wanted else {}
