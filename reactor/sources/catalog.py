"""Which function runs which kind of source, and how all of them are kept running.

A kind's module is imported when a source of that kind is started: kubernetes, grpc and the Prometheus client cost
memory and start-up time, and only who uses them pays.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial

from bus.messages import LoadBalancerKind
from reactor.runtime import telemetry
from reactor.runtime.backoff import Backoff
from reactor.runtime.errors import ReactorError
from reactor.runtime.supervise import forever, innermost
from reactor.sources.context import SourceContext
from rules.rulefile.kinds import LoadedSource
from rules.rulefile.model import RouteSelection

MODULES = {
    "HttpProbe": "reactor.sources.probes.http_probe",
    "TcpProbe": "reactor.sources.probes.tcp_probe",
    "GrpcProbe": "reactor.sources.probes.grpc_probe",
    "ClusterProbe": "reactor.sources.probes.cluster_probe",
    "LeaseWatch": "reactor.sources.kubernetes.lease_watch",
    "EndpointsWatch": "reactor.sources.kubernetes.endpoints_watch",
    "WorkloadWatch": "reactor.sources.kubernetes.workload_watch",
    "NodeWatch": "reactor.sources.kubernetes.node_watch",
    "PrometheusQuery": "reactor.sources.prometheus.prometheus_query",
}
"""Kind to the module whose `run(source, world)` runs it.

AlertmanagerWebhook has none, since the receiver hears it, and Quorum has none: the core counts what others say.
"""
ELSEWHERE = frozenset({"AlertmanagerWebhook", "Quorum"})
"""Kinds that need no module."""
GOOD_SECONDS = 60.0  # a source that ran so long before it broke is started again soon

log = logging.getLogger(__name__)


def start_all(
    sources: Iterable[LoadedSource], world: SourceContext, *, routes: Sequence[RouteSelection] = (),
    karmada: Mapping[str, Sequence[str]] | None = None, load_balancers: Mapping[str, LoadBalancerKind] | None = None,
) -> list[asyncio.Task[None]]:  # fmt: skip
    """Start a supervised task for each source, one for the inventory of routes, one for each other thing.

    `karmada`: the name of a Karmada control plane in the settings to the label selectors of the policies that rules
    honour there. `load_balancers`: name to kind. Cancel the tasks to stop.
    """
    tasks = [
        asyncio.create_task(supervise(source.name, _runner(source, world), world), name=f"source {source.name}")
        for source in sources
        if is_run(source.kind)
    ]
    if routes:
        from reactor.sources.kubernetes import routes as inventory

        run = asyncio.create_task(supervise(inventory.NAME, lambda: inventory.run(routes, world), world), name="routes")
        tasks.append(run)
    for name, kind in (load_balancers or {}).items():
        from reactor.sources import load_balancers as polled

        reading = supervise(f"loadBalancer/{name}", partial(polled.run, name, kind, world), world)
        tasks.append(asyncio.create_task(reading, name=f"load balancer {name}"))
    for plane, policies in (karmada or {}).items():
        from reactor.sources.kubernetes import karmada as planes

        watch = supervise(planes.NAME, partial(planes.run, plane, policies, world), world)
        tasks.append(asyncio.create_task(watch, name=f"karmada {plane}"))
    return tasks


def is_run(kind: str) -> bool:
    """Whether a module runs sources of this kind. Raises LookupError for one of which nobody has said who does: its
    rules would wait for ever for something that nobody asks."""
    if kind not in MODULES and kind not in ELSEWHERE:
        msg = f"{kind}: no line in MODULES or ELSEWHERE of {__name__} says who runs it"
        raise LookupError(msg)
    return kind in MODULES


def _runner(source: LoadedSource, world: SourceContext) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        await importlib.import_module(MODULES[source.kind]).run(source, world)

    return run


async def supervise(name: str, run: Callable[[], Awaitable[None]], world: SourceContext) -> None:
    """Run it for ever: one that breaks is counted, logged and started again, and takes no other down.

    What it says itself of why it cannot run (settings, a server) is logged in one line, once for each reason.
    """
    backoff, complaint, began = Backoff(first_seconds=1, most_seconds=60), "", world.clock.monotonic()

    async def timed() -> None:
        nonlocal began
        began = world.clock.monotonic()
        await run()

    def complain(error: Exception | None) -> None:
        nonlocal complaint
        first = innermost(error) if error is not None else None
        if first is None:
            log.error("a source ended by itself, starting it again", extra={"source": name})
        elif not isinstance(first, ReactorError):
            log.error("a source broke, starting it again", extra={"source": name}, exc_info=error)
        elif str(first) != complaint:
            complaint = str(first)
            log.error("a source cannot run, trying again", extra={"source": name, "reason": complaint})
        telemetry.source_errors.labels(name, type(first).__name__ if first is not None else "Ended").inc()
        if world.clock.monotonic() - began >= GOOD_SECONDS:
            backoff.succeeded()
            complaint = ""

    await forever(f"source {name}", timed, complain=complain, backoff=backoff, sleep=world.clock.sleep)
