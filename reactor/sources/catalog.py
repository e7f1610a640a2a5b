"""Finds the function that runs a kind of source, and keeps all sources running.

A kind's module is imported when a source of that kind is started: kubernetes, grpc and the Prometheus client cost
memory and start-up time, and only who uses them pays.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cache, partial

from bus.messages import LoadBalancerKind
from reactor.runtime import telemetry
from reactor.runtime.errors import ReactorError
from reactor.runtime.retry_backoff import RetryBackoff
from reactor.runtime.supervise import forever, innermost
from reactor.sources.source_context import SourceContext
from rules.kinds.traffic.model import RouteSelection
from rules.rulefile.sources import LoadedSource

FOLDERS = ("probes", "kubernetes", "prometheus")
"""Folders of the modules: `run(source, world)` of `tcp_probe` in one of them runs a TcpProbe."""
ELSEWHERE = frozenset({"AlertmanagerWebhook", "Quorum"})
"""Kinds that need no module: the receiver takes what Alertmanager posts, and the core counts what others say."""
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
        from reactor.sources.kubernetes import route_inventory as inventory

        run = asyncio.create_task(supervise(inventory.NAME, lambda: inventory.run(routes, world), world), name="routes")
        tasks.append(run)
    for name, kind in (load_balancers or {}).items():
        from reactor.sources import balancer_inventory as polled

        reading = supervise(f"loadBalancer/{name}", partial(polled.run, name, kind, world), world)
        tasks.append(asyncio.create_task(reading, name=f"load balancer {name}"))
    for plane, policies in (karmada or {}).items():
        from reactor.sources.kubernetes import karmada_inventory as planes

        watch = supervise(planes.NAME, partial(planes.run, plane, policies, world), world)
        tasks.append(asyncio.create_task(watch, name=f"karmada {plane}"))
    return tasks


def is_run(kind: str) -> bool:
    """True if a module runs sources of this kind. Raises LookupError for one that has none and is not in ELSEWHERE: its
    rules would wait without end for something that no process asks."""
    return kind not in ELSEWHERE and bool(module_of(kind))


@cache
def module_of(kind: str) -> str:
    """The module whose `run(source, world)` runs sources of this kind. Raises LookupError where there is none."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind).lower()
    for folder in FOLDERS:
        module = f"reactor.sources.{folder}.{name}"
        if importlib.util.find_spec(module) is not None:
            return module
    msg = f"{kind}: no module {name}.py in {', '.join(FOLDERS)} of reactor/sources runs it, and it is not in ELSEWHERE"
    raise LookupError(msg)


def _runner(source: LoadedSource, world: SourceContext) -> Callable[[], Awaitable[None]]:
    async def run() -> None:
        await importlib.import_module(module_of(source.kind)).run(source, world)

    return run


async def supervise(name: str, run: Callable[[], Awaitable[None]], world: SourceContext) -> None:
    """Run it without end: one that breaks is counted, logged and started again, and takes no other down.

    What it says itself of why it cannot run (settings, a server) is logged in one line, once for each reason.
    """
    backoff, complaint, began = RetryBackoff(first_seconds=1, most_seconds=60), "", world.clock.monotonic()

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
