"""Checks that clusters and Prometheus servers answer, permit what the rules do, and have what the rules name.

The questions are those of `reactor check --against`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from reactor.clients.instant_queries import QueryFailed, QueryRefused
from reactor.clients.kubernetes_api import connect
from reactor.clients.prometheus_api import Prometheus
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError
from reactor.settings.model import Settings
from reactor.settings.server_settings import ClusterSettings, Endpoint
from reactor.workbench.doctor.bus_diagnosis import CLOCKS, FIXES
from reactor.workbench.doctor.finding import Finding, Findings, limited, of_problem, of_problems
from reactor.workbench.livecheck.live import ClusterJob, Job, PrometheusJob
from reactor.workbench.livecheck.live_servers import Servers
from reactor.workbench.livecheck.live_workloads import Sought
from reactor.workbench.livecheck.livecheck_run import ask_cluster, ask_prometheus
from reactor.workbench.livecheck.server_questions import jobs
from rules.loader import LoadedParts

CLOCKS_APART_SECONDS = 1.0
"""Beyond the second to which a Date is cut. NTP leaves less between two machines."""
CLUSTERS = "clusters"
PROMETHEUS = "prometheus"
PROBE = "vector(1)"
"""A query that every Prometheus answers."""
RBAC = "kubectl auth can-i --list shows what is permitted; deploy/kustomize has the roles that rules need"
QUERIES = "correct the query, or look in Prometheus why it has no data"


async def findings(settings: Settings, reading: LoadedParts, seconds: float) -> Findings:
    """Ask all servers of the settings side by side."""
    sought: list[Sought] = []
    asked = list(jobs(reading, list(settings.clusters), sought, settings.described_route_kinds))
    where = Servers(dict(settings.clusters.items()), dict(settings.prometheus.items()), settings.notifiers)
    clusters = [
        limited(CLUSTERS, name, _cluster(name, cluster, where, _clusters(asked, name)), seconds)
        for name, cluster in settings.clusters.items()
    ]
    endpoints = [
        limited(PROMETHEUS, name, _prometheus(name, endpoint, where, _queries(asked, name)), seconds)
        for name, endpoint in settings.prometheus.items()
    ]
    answers = await asyncio.gather(*clusters, *endpoints)
    found = [*_none(CLUSTERS, settings.clusters), *_none(PROMETHEUS, settings.prometheus)]
    found += [finding for one in answers for finding in one]
    missing = [problem for one in sought for problem in one.problems()]
    return [*found, *(of_problem(CLUSTERS, "workloads", one, "deploy it, or correct the rule") for one in missing)]


def _none(section: str, there: Mapping[str, object]) -> Findings:
    return [] if there else [Finding(section, "all", "skipped", f"the settings have no {section}")]


def _clusters(asked: Sequence[Job], name: str) -> list[ClusterJob]:
    return [job for job in asked if isinstance(job, ClusterJob) and job.server == name]


def _queries(asked: Sequence[Job], name: str) -> list[PrometheusJob]:
    return [job for job in asked if isinstance(job, PrometheusJob) and job.server == name]


async def _cluster(name: str, cluster: ClusterSettings, where: Servers, mine: Sequence[ClusterJob]) -> Findings:
    try:
        api = await connect(name, cluster)
    except ReactorError as error:
        return [Finding(CLUSTERS, name, "failed", str(error), f"set clusters.{name} to a kubeconfig that can be read")]
    try:
        version = (await api.get("/version")).get("gitVersion", "of unknown version")
        clock = Clock()
        asked_at = clock.now()
        there = await api.date()
        time = told_by(name, there, asked_at, clock.now())
    except ReactorError as error:
        flags = f" --context {cluster.context}" if cluster.context else ""
        flags += f" --kubeconfig {cluster.kubeconfig}" if cluster.kubeconfig else ""
        return [Finding(CLUSTERS, name, "failed", str(error), f"kubectl{flags} version")]
    finally:
        await api.close()
    found = [Finding(CLUSTERS, name, "ok", f"Kubernetes {version}"), time]
    rules = f"{name} rules"
    if not mine:
        return [*found, Finding(CLUSTERS, rules, "skipped", "no rule that was read uses this cluster")]
    problems = await ask_cluster(name, where, mine, asyncio.Semaphore(1))
    return [*found, *of_problems(CLUSTERS, rules, problems, RBAC, "has and permits what the rules use")]


def told_by(name: str, there: datetime | None, asked_at: datetime, answered_at: datetime) -> Finding:
    """Compare a cluster's clock, cut to the second, with ours before and after it was asked."""
    if there is None:
        return Finding(CLOCKS, name, "skipped", "the answers of its API server have no date")
    behind = (asked_at - (there + timedelta(seconds=1))).total_seconds()
    ahead = (there - answered_at).total_seconds()
    apart = max(behind, ahead)
    if apart > CLOCKS_APART_SECONDS:
        word = "behind" if behind > ahead else "ahead of"
        detail = f"its clock is at least {apart:.0f} s {word} this machine's"
        return Finding(CLOCKS, name, "warning", detail, FIXES["clock"])
    return Finding(CLOCKS, name, "ok", f"within {CLOCKS_APART_SECONDS:g} s of this machine's clock")


async def _prometheus(name: str, endpoint: Endpoint, where: Servers, mine: Sequence[PrometheusJob]) -> Findings:
    client = Prometheus(name, endpoint)
    try:
        await client.query(PROBE)
    except (QueryFailed, QueryRefused, ReactorError) as error:
        fix = f"set prometheus.{name} to an address and credentials that answer queries"
        return [Finding(PROMETHEUS, name, "failed", str(error), fix)]
    finally:
        await client.close()
    found = [Finding(PROMETHEUS, name, "ok", "answers queries")]
    rules = f"{name} rules"
    if not mine:
        return [*found, Finding(PROMETHEUS, rules, "skipped", "no rule that was read asks it")]
    problems = await ask_prometheus(name, where, mine, asyncio.Semaphore(1))
    return [*found, *of_problems(PROMETHEUS, rules, problems, QUERIES, "has what the queries of the rules read")]
