"""Questions that rule files have for each server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from bus.messages import Mode
from reactor.rulefiles.unlisted import refuse_rule, refuse_source
from reactor.workbench.livecheck import live_routes, live_series, live_watches, live_workloads, live_zones
from reactor.workbench.livecheck.live import ClusterJob, Job, PrometheusJob, Site
from reactor.workbench.livecheck.live_workloads import Sought
from rules.core.errors import Problem
from rules.kinds.cluster_taint.model import ClusterTaint
from rules.kinds.traffic.model import TrafficFailover
from rules.kinds.workload.model import WorkloadFailover
from rules.kinds.zone.model import ZoneIsolation
from rules.loader import LoadedParts
from rules.rulefile.model import Rule
from rules.rulefile.route_kinds import RouteKinds
from rules.rulefile.sources import AlertmanagerWebhook, LoadedSource, PrometheusQuery

_HERE = "reactor/workbench/livecheck/server_questions.py"


def jobs(reading: LoadedParts, known: Sequence[str], sought: list[Sought], custom: RouteKinds) -> Iterator[Job]:
    """Give all questions. `known`: clusters of the settings, `custom`: their route kinds.

    `sought` gets what only all answers together say.
    A rule that is off asks nothing.
    """
    for source, document, at in reading.sources:
        yield from _of_source(source, Site(document, at))
    for rule, document, at in reading.rules:
        if rule.mode is not Mode.OFF:
            yield from _of_rule(rule, Site(document, at), known, sought, custom)


def _of_source(source: LoadedSource, site: Site) -> Iterator[Job]:
    match source:
        case PrometheusQuery():
            ask = partial(
                live_series.ask,
                query=source.query,
                site=site.at("query"),
                target=source.target,
                when=source.unhealthy_when,
            )
            yield PrometheusJob(source.prometheus, site.at("prometheus"), ask)
        case AlertmanagerWebhook() if source.confirm is not None:
            here = site.at("confirm")
            ask = partial(live_series.ask, query=source.confirm.query, site=here.at("query"))
            yield PrometheusJob(source.confirm.prometheus, here.at("prometheus"), ask)
        case _ if isinstance(source, live_watches.Watching):
            yield ClusterJob(source.cluster, site.at("cluster"), partial(live_watches.ask, source=source, site=site))
        case _:
            refuse_source(source, _HERE, "cluster", "prometheus")


def _of_rule(rule: Rule, site: Site, known: Sequence[str], sought: list[Sought], custom: RouteKinds) -> Iterator[Job]:
    match rule:
        case TrafficFailover() if rule.route.in_cluster:
            ask = partial(live_routes.ask, rule=rule, site=site, custom=custom)
            yield ClusterJob(rule.route.cluster, site.at("route", "cluster"), ask)
        case WorkloadFailover():
            yield from live_workloads.jobs(rule, site, list(known), sought)
        case ClusterTaint() if rule.carrier == "Karmada":
            yield ClusterJob(
                live_workloads.KARMADA, site.at("carrier"), partial(live_workloads.taint, rule=rule, site=site)
            )
        case ZoneIsolation():
            yield from live_zones.jobs(rule, site)
            if rule.verify is not None:
                here = site.at("verify")
                ask = partial(live_series.ask, query=rule.verify.query, site=here.at("query"))
                yield PrometheusJob(rule.verify.prometheus, here.at("prometheus"), ask)
        case TrafficFailover() | ClusterTaint():
            pass  # on a load balancer, or known to the reactor's own rules alone
        case _:
            refuse_rule(rule, _HERE)


def notifiers(reading: LoadedParts, known: Mapping[str, object]) -> Iterator[Problem]:
    """Names of people to tell that the settings do not have."""
    for rule, document, at in reading.rules:
        for index, name in enumerate(rule.notify):
            if name not in known:
                there = ", ".join(sorted(known)) or "none"
                message = f"notifiers.{name}: the settings do not name it (they name: {there})"
                yield Site(document, (*at, "notify", index)).says(message)
