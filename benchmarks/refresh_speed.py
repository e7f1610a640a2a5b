"""Cost of repeating how targets are: a thousand of them, asked for in 64 requests as the partitions ask.

The API server is a stub that answers from memory, so that the CPU time is that of the sources alone: reading JSON,
comparing, and encoding each observation as the bus takes it.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, cast

from benchmarks.measure import Result
from bus.envelope import encode
from bus.messages import Fact, RefreshRequest
from bus.subjects import refresh
from bus.testing.memory import MemoryBus
from reactor.runtime.clock import Clock
from reactor.sources import ticker
from reactor.sources.kubernetes import endpoints_watch
from reactor.sources.probes.probing import probe
from reactor.sources.refresh import RefreshRequests
from reactor.sources.source_context import SourceContext
from rules.rulefile.sources import EndpointsWatch, TcpProbe

TARGETS = 1000
REQUESTS = 64
WATCHED = [f"service/east/shop/app{number}" for number in range(TARGETS)]


class _Api:
    """An API server with slices and nothing else."""

    cluster = "east"

    def __init__(self) -> None:
        slices = [_slice(number, 1) for number in range(TARGETS)]
        self._page = json.dumps({"metadata": {"resourceVersion": "5000"}, "items": slices}).encode()
        self._events: asyncio.Queue[bytes] = asyncio.Queue()
        self.lists = 0

    async def page(self, path: str, query: Mapping[str, str]) -> Any:
        """Give the slices, or an empty list of whatever else is asked for."""
        assert query
        if not path.endswith("endpointslices"):
            return {"metadata": {"resourceVersion": "1"}, "items": []}
        self.lists += 1
        return json.loads(self._page)

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str], *, idle_seconds: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Give what changes, and be silent otherwise."""
        assert query["watch"] == "true"
        assert idle_seconds > 0
        yield self._lines() if path.endswith("endpointslices") else _silence()

    async def _lines(self) -> AsyncIterator[bytes]:
        while True:
            yield await self._events.get()

    def change(self, number: int, version: int) -> None:
        """Let one slice change, and keep its endpoint ready."""
        self._events.put_nowait(json.dumps({"type": "MODIFIED", "object": _slice(number, version)}).encode())


async def _silence() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b""


def _slice(number: int, version: int) -> dict[str, Any]:
    """An EndpointSlice as a cluster gives it: with what is read of it, and with what is not."""
    metadata = {
        "name": f"app{number}-x7k2p", "generateName": f"app{number}-", "namespace": "shop",
        "uid": f"5a1c7f0e-7d51-4a8e-9f0b-{number:012d}", "resourceVersion": str(version), "generation": 3,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {
            "kubernetes.io/service-name": f"app{number}", "app": f"app{number}",
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        },
        "ownerReferences": [{"apiVersion": "v1", "kind": "Service", "name": f"app{number}", "controller": True}],
        "managedFields": [{"manager": "kube-controller-manager", "fieldsV1": {"f:endpoints": {"f:addresses": {}}}}],
    }  # fmt: skip
    endpoints = [
        {
            "addresses": [f"10.0.{number % 250}.{pod}"], "nodeName": f"node-{pod}", "zone": "eu-1a",
            "conditions": {"ready": True, "serving": True, "terminating": False},
            "targetRef": {"kind": "Pod", "namespace": "shop", "name": f"app{number}-{pod}", "uid": "77"},
        }
        for pod in range(3)
    ]  # fmt: skip
    return {"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints, "ports": [{"port": 8080}]}


class _Clusters:
    def __init__(self, api: _Api) -> None:
        self._api = api

    async def get(self, _: str) -> Any:
        return self._api


class _Heard:
    """Receiver of the answers: counts them, encoded as the bus takes them."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.bus = MemoryBus(self.clock.now)
        self.newest: dict[str, datetime] = {}
        self.messages = self.bytes = 0

    async def tell(self, fact: Fact) -> None:
        """Take one observation."""
        self.bytes += len(encode(fact, id=f"observation/{fact.about}", source="/bench", time=fact.observed_at))
        self.messages += 1
        self.newest[fact.about] = fact.observed_at

    async def ask(self, requests: Sequence[tuple[str, Sequence[str]]], not_before: datetime) -> dict[str, float]:
        """Ask, and wait until all have answered."""
        wanted = [target for _, targets in requests for target in targets]
        messages, cpu, began = self.messages, time.process_time(), time.perf_counter()
        for source, targets in requests:
            request = RefreshRequest(targets=tuple(targets), not_before=not_before)
            await self.bus.notify(refresh(source), request.model_dump_json().encode())
        await self.until(lambda: all(self.newest[target] >= not_before for target in wanted))
        return {
            "cpu_ms": round((time.process_time() - cpu) * 1000, 1),
            "seconds": round(time.perf_counter() - began, 3),
            "requests": len(requests),
            "messages": self.messages - messages,
        }

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds."""
        async with asyncio.timeout(120):
            while not holds():
                await asyncio.sleep(0.002)

    def world(self, api: _Api) -> SourceContext:
        """Give a world whose only cluster is this one."""
        requests = RefreshRequests(self.bus, self.clock).hear
        return SourceContext(self.clock, self.tell, _Clusters(api), {}, cast("Any", None), requests=requests)


async def refreshing() -> Result:
    """Ask a watch that has just heard an event, a quiet watch, and probes."""
    figures = {**await _watch(), "by_probes": await _probes()}
    return Result(
        "refresh", f"{TARGETS} targets asked for again, CPU of the sources and messages", figures,
        {"from_copy.seconds": "< 1", "relist.share_of_a_core": "< 0.01"},
    )  # fmt: skip


async def _watch() -> dict[str, Any]:
    heard, api = _Heard(), _Api()
    source = EndpointsWatch(name="readiness", kind="EndpointsWatch", cluster="east")
    watch = endpoints_watch.ServiceWatcher(source, heard.world(api), cast("Any", api))
    async with _running(watch.run()):
        await heard.until(lambda: heard.messages == TARGETS)
        groups = [("readiness", WATCHED[number::REQUESTS]) for number in range(REQUESTS)]
        moment = heard.clock.now()
        api.change(0, 6000)
        await heard.until(lambda: watch.slices.look.began >= moment)
        one = await heard.ask([("readiness", WATCHED[:1])], moment)
        copy = await heard.ask([("readiness", targets[1:]) for _, targets in groups], moment)
        lists = api.lists
        listed = await heard.ask(groups, heard.clock.now())
        cpu, before = time.process_time(), api.lists
        watch.slices.look_again(heard.clock.now())
        await heard.until(lambda: api.lists > before and watch.slices.seen is not None)
        relist = time.process_time() - cpu
        every = watch.slices.relist_seconds
    return {
        "one_from_copy": one, "from_copy": copy, "by_list": {**listed, "lists": before - lists},
        "relist": {
            "cpu_ms": round(relist * 1000, 1), "every_seconds": every, "share_of_a_core": round(relist / every, 5)
        },
    }  # fmt: skip


async def _probes() -> dict[str, float]:
    heard = _Heard()
    world = heard.world(_Api())

    async def attempt() -> str:
        await asyncio.sleep(0.005)  # a round trip
        return "HTTP 200"

    probes = [
        TcpProbe(name=f"p{number}", kind="TcpProbe", host="h", port=1, target=target, every_seconds=3600)
        for number, target in enumerate(WATCHED)
    ]
    spread, ticker.SPREAD_SECONDS_MAX = ticker.SPREAD_SECONDS_MAX, 0.5
    world.scheduler.start()
    try:
        async with _running(*(probe(one, world, attempt) for one in probes)):
            await heard.until(lambda: heard.messages == TARGETS)
            return await heard.ask([(one.name, [one.target]) for one in probes], heard.clock.now())
    finally:
        world.scheduler.shutdown(wait=False)
        ticker.SPREAD_SECONDS_MAX = spread


@asynccontextmanager
async def _running(*sources: Awaitable[None]) -> AsyncIterator[None]:
    tasks = [asyncio.ensure_future(source) for source in sources]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
