"""Ask all servers at once, each one question after the other; one that does not answer is one finding."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from reactor.clients.prometheus_api import Prometheus
from reactor.runtime.errors import ReactorError, Retryable, SettingsError
from reactor.settings.server_settings import ClusterSettings, Endpoint
from reactor.workbench.livecheck import live_balancers
from reactor.workbench.livecheck.live import ClusterJob, Live, PrometheusJob
from reactor.workbench.livecheck.live_servers import Servers, servers
from reactor.workbench.livecheck.live_workloads import Sought
from reactor.workbench.livecheck.server_questions import jobs, notifiers
from rules.core.errors import Problem
from rules.loader import LoadedParts

AT_ONCE = 16
"""Servers that are asked at the same time."""


def run(reading: LoadedParts, words: Sequence[str], config: Path | None) -> list[Problem]:
    """Give what is not there. Raises BadWhere, SettingsError."""
    with TemporaryDirectory() as folder:
        return asyncio.run(ask(reading, words, config, Path(folder)))


async def ask(reading: LoadedParts, words: Sequence[str], config: Path | None, folder: Path) -> list[Problem]:
    """The same, with a folder for what has to be written down for a client."""
    where = await servers(words, config, folder)
    sought: list[Sought] = []
    named = [name for name in where.clusters if name is not None]
    asked = list(jobs(reading, named, sought, where.route_kinds))
    problems = [Problem(url, 1, 1, "", f"cannot be asked: {why}") for url, why in where.silent.items()]
    if where.notifiers is not None:
        problems += notifiers(reading, where.notifiers)
    if where.load_balancers is not None:
        problems += await live_balancers.ask(reading, where.load_balancers)
    slots = asyncio.Semaphore(AT_ONCE)
    clusters = [job for job in asked if isinstance(job, ClusterJob)]
    queries = [job for job in asked if isinstance(job, PrometheusJob)]
    todo = [ask_cluster(name, where, mine, slots) for name, mine in _by_server(clusters)]
    todo += [ask_prometheus(name, where, mine, slots) for name, mine in _by_server(queries)]
    for found in await asyncio.gather(*todo):
        problems += found
    return [*problems, *(problem for one in sought for problem in one.problems())]


J = TypeVar("J", ClusterJob, PrometheusJob)


def _by_server(found: Iterable[J]) -> list[tuple[str, list[J]]]:
    out: dict[str, list[J]] = {}
    for job in found:
        out.setdefault(job.server, []).append(job)
    return list(out.items())


async def ask_cluster(name: str, where: Servers, mine: Sequence[ClusterJob], slots: asyncio.Semaphore) -> list[Problem]:
    """Ask a cluster all questions about it, once one of the slots is free."""
    settings = where.cluster(name)
    if settings is None:
        return _unnamed("clusters", name, where, mine, where.clusters)
    from reactor.clients.kubernetes_api import connect  # 0.6 s: only who has a cluster pays

    async with slots:
        try:
            api = await connect(name, settings)
        except SettingsError as error:
            return [mine[0].site.says(str(error))]
        live = Live(api)
        try:
            await live.found("/version")
        except ReactorError as error:
            await api.close()
            return [mine[0].site.says(f"{name} cannot be asked: {error}")]
        problems: list[Problem] = []
        try:
            for job in mine:
                try:
                    problems += await job.ask(live)
                except Retryable as error:
                    return [*problems, job.site.says(f"{name} cannot be asked any more: {error}")]
                except ReactorError as error:
                    problems.append(job.site.says(str(error)))
            return problems
        finally:
            await api.close()


async def ask_prometheus(
    name: str, where: Servers, mine: Sequence[PrometheusJob], slots: asyncio.Semaphore
) -> list[Problem]:
    endpoint = where.endpoint(name)
    if endpoint is None:
        return _unnamed("prometheus", name, where, mine, where.prometheus)
    problems: list[Problem] = []
    async with slots:
        prometheus = Prometheus(name, endpoint)
        try:
            for job in mine:
                try:
                    problems += await job.ask(prometheus)
                except Retryable as error:
                    return [*problems, job.site.says(f"{name} cannot be asked: {error}")]
            return problems
        finally:
            await prometheus.close()


def _unnamed(
    section: str, name: str, where: Servers, mine: Sequence[ClusterJob | PrometheusJob],
    known: dict[str | None, ClusterSettings] | dict[str | None, Endpoint],
) -> list[Problem]:  # fmt: skip
    """Settings have to name it; without settings, only what was named on the command line is asked."""
    if where.notifiers is None:
        return []
    there = ", ".join(sorted(filter(None, known))) or "none"
    return [mine[0].site.says(f"{section}.{name}: the settings do not name it (they name: {there})")]
