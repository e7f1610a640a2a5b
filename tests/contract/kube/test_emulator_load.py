"""The emulator under load: a thousand routes, hundreds of writes in flight, many watchers, in seconds."""

from __future__ import annotations

import asyncio

from reactor.demo.kube import Delay, EmulatedCluster, Fault
from tests.contract.kube.test_emulator_world import traffic_split
from tests.kube.api import JSON_PATCH, Api

ROUTES = 1_000
PATCHES = 500
WATCHES = 20


async def test_many_routes_are_listed_watched_and_patched_at_once(east: EmulatedCluster, api: Api) -> None:
    for number in range(ROUTES):
        east.create(traffic_split(f"route-{number:04}"))
        east.set_endpoints("shop", f"route-{number:04}", ready=2)
    path = api.path("trafficsplits", group="split.smi-spec.io/v1alpha2")
    start = await api.get(path)
    assert len(start.body["items"]) == ROUTES
    assert len((await api.get(api.path("endpointslices", group="discovery.k8s.io/v1"))).body["items"]) == ROUTES
    east.faults.add(Fault(Delay(0.05), verb="patch"))
    operations = [
        {"op": "test", "path": "/spec/backends/0/weight", "value": 100},
        {"op": "replace", "path": "/spec/backends/0/weight", "value": 0},
    ]

    async def follow() -> int:
        async with api.watch(path, resourceVersion=start.version) as events:
            seen = {(await events.next())["object"]["metadata"]["name"] for _ in range(PATCHES)}
        return len(seen)

    followers = [asyncio.create_task(follow()) for _ in range(WATCHES)]
    patches = [api.patch(f"{path}/route-{number:04}", operations, JSON_PATCH) for number in range(PATCHES)]
    answers = await asyncio.gather(*patches)
    assert {answer.code for answer in answers} == {200}
    assert await asyncio.gather(*followers) == [PATCHES] * WATCHES
    assert len(east.log.effective("trafficsplits")) == ROUTES + PATCHES
