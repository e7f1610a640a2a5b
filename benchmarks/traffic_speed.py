"""Time from a change of readiness in the cluster to patched weights in the cluster, through the whole service."""

from __future__ import annotations

import asyncio
import time

import aiohttp

from benchmarks.measure import Result, cpu, spread
from benchmarks.world import NAMESPACE, RULES, world
from reactor.demo.kube import Delay, Fault
from reactor.settings.model import Settings

ROUTES = 1000
AT_ONCE = 500
LATENCY = 0.05
CONCURRENCY = Settings.model_fields["concurrency"].default
HEAD = """
apiVersion: reactor/v1
sources:
- {name: readiness, kind: EndpointsWatch, cluster: east}
rules:
"""
NAMED = """- name: app{n}
  kind: TrafficFailover
  mode: Enforce
  route: {{cluster: east, kind: TrafficSplit, namespace: shop, name: app{n}}}
"""
BACKENDS = "  backends: [{{service: app{n}}}, {{service: app{n}-west}}, {{service: app{n}-central}}]\n"
FORMS = {
    "selector": RULES,
    "named": HEAD + "".join((NAMED + BACKENDS).format(n=n) for n in range(AT_ONCE)),
    "named_without_backends": HEAD + "".join(NAMED.format(n=n) for n in range(AT_ONCE)),
}
"""Rules by their form: one for all routes; one for each, with its backends named or not."""


async def event_to_patch() -> Result:
    """1,000 routes, one event at a time, toleration 0; beside it, one bare patch to the same server."""
    seconds = []
    async with world(ROUTES) as w:
        began = time.perf_counter()
        await w.known(ROUTES, 3)
        ready = time.perf_counter() - began
        for number in range(ROUTES):
            began = time.perf_counter()
            w.break_service(number)
            await w.moves.reach(number + 1)
            seconds.append(w.moves.last_at - began)
        bare = await _bare_patches(w.url, 200)
    ours, theirs = spread(seconds), spread(bare)
    figures = {"routes": ROUTES, "known_after_seconds": round(ready, 2), **ours, "bare_patch": theirs}
    figures["ratio_p50"] = round(ours["p50_ms"] / theirs["p50_ms"], 1)
    return Result("event-to-patch", "EndpointSlice change → patched TrafficSplit", figures, {"p99_ms": "< 250"})


async def _bare_patches(url: str, count: int) -> list[float]:
    """Seconds of single PATCH requests by themselves: the part that no reactor can save."""
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
    """500 routes lose their primary at once; each call of the API takes 50 ms. In all three forms of rule."""
    floor = AT_ONCE * LATENCY / CONCURRENCY
    figures: dict[str, object] = {
        "routes": AT_ONCE, "api_latency_ms": LATENCY * 1000, "actions_at_once": CONCURRENCY,
        "bare_patch_seconds": round(floor, 2),
    }  # fmt: skip
    for form, rules in FORMS.items():
        figures[form] = {**(moved := await _moved(rules)), "ratio": round(moved["seconds"] / floor, 2)}
    bars = {"seconds": "≤ 1.2", "cpu_ms_each": "≤ 1.5", "doubled": "0"}
    return Result("mass-move", f"{AT_ONCE} routes moved at once, 50 ms of API latency", figures, bars)


async def _moved(rules: str) -> dict[str, float]:
    began = time.perf_counter()
    async with world(AT_ONCE, rules) as w:
        await w.known(AT_ONCE, 3)
        known = time.perf_counter() - began
        before = cpu(w.pid)
        w.cluster.faults.add(Fault(Delay(LATENCY), verb="patch"))
        w.cluster.faults.add(Fault(Delay(LATENCY), verb="get"))
        w.cluster.faults.add(Fault(Delay(LATENCY), verb="create"))
        began = time.perf_counter()
        for number in range(AT_ONCE):
            w.break_service(number)
        await w.moves.reach(AT_ONCE)
        took, spent = time.perf_counter() - began, cpu(w.pid) - before
        await asyncio.sleep(1.0)
        doubled = w.moves.count - AT_ONCE
    return {
        "known_after_seconds": round(known, 2), "seconds": round(took, 2),
        "cpu_ms_each": round(spent / AT_ONCE * 1000, 2), "doubled": doubled,
    }  # fmt: skip
