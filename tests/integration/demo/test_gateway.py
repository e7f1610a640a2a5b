"""The gateway: real requests, by the current weights in the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from reactor.demo import scene
from reactor.demo.children import Child, child
from reactor.demo.demo_world import world
from reactor.demo.errors import ChildFailed
from reactor.demo.folder import temporary_folder
from reactor.demo.follow import RouteName, follow
from reactor.demo.gateway import Gateway
from reactor.demo.kube import CutWatch, Emulator, FailWatch, Fault, Html, JsonObject, StatusFault, TruncateWatch
from reactor.demo.kube.faults import WatchEffect
from reactor.demo.service import Service, serving
from reactor.demo.tally import RequestCount, TrafficSecond
from reactor.runtime.clock import Clock
from tests.integration.demo.processes import PATIENCE

SPLIT = RouteName("TrafficSplit", "shop", "checkout")
FIRST = {"checkout": 1, "checkout-west": 0, "checkout-central": 0}


@pytest.fixture
async def emulator() -> AsyncIterator[Emulator]:
    """The demo's clusters."""
    async with Emulator(clock=Clock().now) as running:
        scene.furnish(running)
        yield running


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as opened:
        yield opened


def move(emulator: Emulator, *weights: int) -> dict[str, int]:
    """Set the weights of the split, and give them."""
    patch = [{"op": "replace", "path": f"/spec/backends/{i}/weight", "value": w} for i, w in enumerate(weights)]
    emulator.clusters["east"].patch("trafficsplits", "checkout", patch, "shop")
    return dict(zip(scene.BACKENDS, weights, strict=True))


@dataclass(frozen=True)
class Followed:
    """Weights as they come."""

    _weights: AsyncIterator[dict[str, int]]

    async def next(self) -> dict[str, int]:
        async with asyncio.timeout(PATIENCE):
            return await anext(self._weights)


def following(session: aiohttp.ClientSession, emulator: Emulator, route: RouteName = SPLIT) -> Followed:
    """Follow a route of the first cluster."""
    return Followed(follow(session, emulator.url("east"), route))


async def test_weights_come_as_they_are_and_then_as_they_change(
    emulator: Emulator, session: aiohttp.ClientSession
) -> None:
    weights = following(session, emulator)
    assert await weights.next() == FIRST
    moved = move(emulator, 0, 1, 1)
    assert await weights.next() == moved


@pytest.mark.parametrize("how", [CutWatch(), FailWatch(410), TruncateWatch()])
async def test_a_watch_that_breaks_loses_no_change(
    emulator: Emulator, session: aiohttp.ClientSession, how: WatchEffect
) -> None:
    weights = following(session, emulator)
    assert await weights.next() == FIRST
    east = emulator.clusters["east"]
    pending = asyncio.ensure_future(weights.next())
    async with asyncio.timeout(PATIENCE):
        while not east.cut_watches(how):
            await asyncio.sleep(0.01)
    moved = move(emulator, 0, 1, 0)
    assert await pending == moved


@pytest.mark.parametrize("fault", [StatusFault(503), Html(502)])
async def test_an_api_that_cannot_answer_is_asked_again(
    emulator: Emulator, session: aiohttp.ClientSession, fault: StatusFault | Html
) -> None:
    emulator.clusters["east"].faults.add(Fault(fault, verb="list", count=1))
    weights = following(session, emulator)
    assert await weights.next() == FIRST


async def test_an_api_server_that_restarts_is_found_again(emulator: Emulator, session: aiohttp.ClientSession) -> None:
    weights = following(session, emulator)
    assert await weights.next() == FIRST
    pending = asyncio.ensure_future(weights.next())
    await emulator.close()
    moved = move(emulator, 0, 0, 1)
    async with emulator:  # the same port again
        assert await pending == moved


async def test_a_route_that_goes_has_no_weights_and_one_that_comes_is_followed(
    emulator: Emulator, session: aiohttp.ClientSession
) -> None:
    weights = following(session, emulator, RouteName("HTTPRoute", "shop", "web"))
    assert await weights.next() == {}
    emulator.clusters["east"].create(_http_route())
    assert await weights.next() == {"web": 3, "web-west": 1}
    emulator.clusters["east"].delete("httproutes", "web", "shop")
    assert await weights.next() == {}


def _http_route() -> JsonObject:
    backends = [{"name": "web", "port": 80, "weight": 3}, {"name": "web-west", "port": 80}]
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"rules": [{"backendRefs": backends}]},
    }


async def test_requests_go_where_the_weights_say_and_failures_are_counted(
    emulator: Emulator, session: aiohttp.ClientSession
) -> None:
    broken = Service("west")
    broken.status = 503
    async with AsyncExitStack() as stack:
        east = await stack.enter_async_context(serving(Service("east"), "127.0.0.1", 0))
        west = await stack.enter_async_context(serving(broken, "127.0.0.1", 0))
        move(emulator, 3, 1, 1)
        gateway = Gateway(session, {"checkout": east, "checkout-west": west})  # and no process runs central
        following = asyncio.create_task(gateway.follow(emulator.url("east"), SPLIT))
        async with asyncio.timeout(PATIENCE):
            while not gateway.take(0).weights:
                await asyncio.sleep(0.01)
        for _ in range(10):
            await gateway.request()
        second = gateway.take(1.0)
        following.cancel()
    assert second.counts == {
        "checkout": RequestCount(6, 0), "checkout-west": RequestCount(0, 2), "checkout-central": RequestCount(0, 2)
    }  # fmt: skip
    assert second.failures is not None
    assert second.failures[0] <= second.failures[1]
    assert gateway.take(2.0).failures is None  # counted once


async def next_second(gateway: Child) -> TrafficSecond:
    return TrafficSecond.from_json(await gateway.line())


async def test_as_a_process_it_follows_the_cluster_at_its_rate(emulator: Emulator, tmp_path: Path) -> None:
    async with serving(Service("east"), "127.0.0.1", 0) as east, serving(Service("west"), "127.0.0.1", 0) as west:
        arguments = (
            "--api", emulator.url("east"), "--route", "TrafficSplit/shop/checkout", "--rate", "40",
            f"--backend=checkout={east}", f"--backend=checkout-west={west}",
        )  # fmt: skip
        async with child("gateway", "reactor.demo.gateway", *arguments, log=tmp_path / "log") as gateway:
            async with asyncio.timeout(PATIENCE):
                while (await next_second(gateway)).counts["checkout"].ok < 35:
                    pass
                move(emulator, 0, 1, 0)
                while (second := await next_second(gateway)).counts["checkout"].sent:
                    pass
            assert second.counts["checkout-west"].ok > 0
            assert second.failures is None


async def test_the_world_comes_up_works_and_leaves_no_file_behind() -> None:
    with temporary_folder() as folder:
        async with world(folder, Clock()) as built:
            listening = asyncio.create_task(built.listen())
            async with asyncio.timeout(PATIENCE):
                while not built.traffic.requests:
                    await asyncio.sleep(0.05)
                assert built.traffic.failed == 0
                await built.tell("checkout", broken=True)
                while not built.traffic.failed:
                    await asyncio.sleep(0.05)
            listening.cancel()
            assert built.settings().rule_files == (str(built.rules),)
            assert built.kubeconfig.stat().st_mode & 0o077 == 0
    assert not folder.exists()


async def test_a_gateway_that_ends_is_noticed(tmp_path: Path) -> None:
    async with world(tmp_path, Clock()) as built:
        built.gateway._process.kill()
        with pytest.raises(ChildFailed, match="gateway ended with code -9"):
            await built.listen()
