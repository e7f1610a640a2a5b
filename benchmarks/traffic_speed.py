"""From a change of readiness in the cluster to patched weights in the cluster, through the whole service."""

from __future__ import annotations

import asyncio
import time

import aiohttp

from benchmarks.measure import Result, spread
from benchmarks.world import NAMESPACE, until, world
from reactor.demo.kube import Delay, Fault
from reactor.settings.model import Settings

ROUTES = 1000
AT_ONCE = 500
LATENCY = 0.05
CONCURRENCY = Settings.model_fields["concurrency"].default


async def event_to_patch() -> Result:
    """1,000 routes, one event at a time, toleration 0; beside it, one bare patch to the same server."""
    seconds = []
    async with world(ROUTES) as w:
        began = time.perf_counter()
        await w.known(ROUTES, 3)
        ready = time.perf_counter() - began
        for number in range(ROUTES):
            writes = w.moved()
            began = time.perf_counter()
            w.break_service(number)
            await until(lambda writes=writes: w.moved() > writes)  # type: ignore[misc]
            seconds.append(time.perf_counter() - began)
        bare = await _bare_patches(w.url, 200)
    ours, theirs = spread(seconds), spread(bare)
    figures = {"routes": ROUTES, "known_after_seconds": round(ready, 2), **ours, "bare_patch": theirs}
    figures["ratio_p50"] = round(ours["p50_ms"] / theirs["p50_ms"], 1)
    return Result("event-to-patch", "EndpointSlice change → patched TrafficSplit", figures, {"p99_ms": "< 250"})


async def _bare_patches(url: str, count: int) -> list[float]:
    """What one PATCH takes by itself: the part that no reactor can save."""
    seconds = []
    headers = {"Content-Type": "application/json-patch+json"}
    async with aiohttp.ClientSession(headers=headers) as session:
        for number in range(count):
            path = f"{url}/apis/split.smi-spec.io/v1alpha2/namespaces/{NAMESPACE}/trafficsplits/app{number}"
            body = f'[{{"op": "replace", "path": "/spec/backends/0/weight", "value": {number % 7 + 2}}}]'
            began = time.perf_counter()
            async with session.patch(path, data=body) as response:
                response.raise_for_status()
                await response.read()
            seconds.append(time.perf_counter() - began)
    return seconds


async def mass_move() -> Result:
    """500 routes lose their primary at once; each call of the API takes 50 ms."""
    async with world(AT_ONCE) as w:
        await w.known(AT_ONCE, 3)
        w.cluster.faults.add(Fault(Delay(LATENCY), verb="patch"))
        w.cluster.faults.add(Fault(Delay(LATENCY), verb="get"))
        w.cluster.faults.add(Fault(Delay(LATENCY), verb="create"))
        began = time.perf_counter()
        for number in range(AT_ONCE):
            w.break_service(number)
        await until(lambda: w.moved() >= AT_ONCE)
        took = time.perf_counter() - began
        await asyncio.sleep(1.0)
        doubled = w.moved() - AT_ONCE
    floor = AT_ONCE * LATENCY * 2 / CONCURRENCY
    figures = {
        "routes": AT_ONCE, "api_latency_ms": LATENCY * 1000, "seconds": round(took, 2), "doubled": doubled,
        "concurrency": CONCURRENCY, "bare_get_and_patch_seconds": round(floor, 2), "ratio": round(took / floor, 2),
    }  # fmt: skip
    return Result("mass-move", "500 routes moved at once, 50 ms of API latency", figures, {"seconds": "< 3"})
