"""Many namespaces of one cluster are watched by one watch, and only the server notices."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from reactor.clients import shared_watch
from reactor.clients.changes import ObjectChange, ObjectKey
from reactor.clients.kubernetes_api import Kubernetes
from reactor.clients.kubernetes_port import ApiUnavailable, Forbidden
from reactor.clients.reflector import RELIST_SECONDS, Reflector
from reactor.clients.shared_watch import SharedWatches
from reactor.clients.watching import Expired
from reactor.demo.kube import CutWatch, EmulatedCluster, EndWatch, Fault, JsonObject
from reactor.runtime import telemetry
from reactor.runtime.clock import Clock
from reactor.runtime.retry_backoff import RetryBackoff

NAMESPACES = [f"team-{number}" for number in range(200)]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the shared watch end, and be opened again, every two seconds."""
    monkeypatch.setattr(shared_watch, "WATCH_SECONDS", 2)
    monkeypatch.setattr(shared_watch, "YOUNG_SECONDS", 1.5)
    monkeypatch.setattr(shared_watch, "SHORT_SECONDS", 0.0)


def config_map(namespace: str, name: str = "one", value: str = "1") -> JsonObject:
    return {
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"value": value},
        "metadata": {"name": name, "namespace": namespace},
    }  # fmt: skip


def namespaces(east: EmulatedCluster, names: Sequence[str]) -> None:
    for name in names:
        east.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        east.create(config_map(name))


class Copies:
    """A reflector for each namespace."""

    def __init__(self, api: Kubernetes, names: Sequence[str], *, relist_seconds: float = RELIST_SECONDS) -> None:
        self.heard: dict[str, list[ObjectChange]] = {name: [] for name in names}
        self.of = {name: self._reflector(api, name, relist_seconds) for name in names}

    def _reflector(self, api: Kubernetes, name: str, relist_seconds: float) -> Reflector:
        async def take(changes: Sequence[ObjectChange]) -> None:
            self.heard[name] += changes

        path = f"/api/v1/namespaces/{name}/configmaps"
        quick = RetryBackoff(first_seconds=0.02, most_seconds=0.2)
        return Reflector(api, path, take, clock=Clock(), backoff=quick, relist_seconds=relist_seconds)

    def values(self) -> dict[ObjectKey, str]:
        return {key: found["data"]["value"] for one in self.of.values() for key, found in one.objects.items()}


@asynccontextmanager
async def running(copies: Copies) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(one.run()) for one in copies.of.values()]
    try:
        async with asyncio.timeout(60):
            await asyncio.gather(*(one.synced.wait() for one in copies.of.values()))
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.02)


def open_watches() -> float:
    return telemetry.REGISTRY.get_sample_value("reactor_open_watches", {"cluster": "east"}) or 0


async def test_two_hundred_namespaces_open_a_dozen_watches(api: Kubernetes, east: EmulatedCluster) -> None:
    namespaces(east, NAMESPACES)
    copies = Copies(api, NAMESPACES)
    most = 0.0
    async with running(copies):
        for _ in range(200):  # two cycles and more
            most = max(most, open_watches())
            await asyncio.sleep(0.02)
        assert most <= shared_watch.NAMESPACES_MAX + 1
        for name in NAMESPACES:
            east.apply(config_map(name, value=f"of {name}"))
        await until(lambda: all(copies.values().get(ObjectKey(name, "one")) == f"of {name}" for name in NAMESPACES))
        await until(lambda: all(one.connected for one in copies.of.values()))
    for name, changes in copies.heard.items():
        assert {change.object["metadata"]["namespace"] for change in changes} == {name}


async def test_namespaces_that_are_soon_listed_again_open_no_watch_of_their_own(
    api: Kubernetes, east: EmulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All were listed in the same moment, and will be: 200 watches for two seconds, every 40 s."""
    monkeypatch.setattr(shared_watch, "WATCH_SECONDS", 3)
    monkeypatch.setattr(shared_watch, "SHORT_SECONDS", 2.0)
    names = NAMESPACES[:50]
    namespaces(east, names)
    most = 0.0
    async with running(Copies(api, names, relist_seconds=5)):
        for _ in range(400):  # until all were listed again, or more
            most = max(most, open_watches())
            await asyncio.sleep(0.02)
    assert most <= shared_watch.NAMESPACES_MAX + 1


async def test_a_few_namespaces_are_watched_each_by_itself(api: Kubernetes, east: EmulatedCluster) -> None:
    few = NAMESPACES[: shared_watch.NAMESPACES_MAX]
    namespaces(east, few)
    async with running(Copies(api, few)):
        await until(lambda: open_watches() == len(few))


@pytest.mark.parametrize("seed", range(3))
async def test_nothing_is_missed_or_mixed_up_while_watches_end_and_are_cut(
    api: Kubernetes, east: EmulatedCluster, seed: int
) -> None:
    dice, names = random.Random(seed), NAMESPACES[:30]
    namespaces(east, names)
    copies = Copies(api, names)
    truth = {ObjectKey(name, "one"): "1" for name in names}
    async with running(copies):
        for step in range(300):
            key = ObjectKey(dice.choice(names), dice.choice(["one", "two"]))
            if key in truth and dice.random() < 0.3:
                east.delete("configmaps", key.name, key.namespace)
                del truth[key]
            else:
                east.apply(config_map(key.namespace, key.name, value=str(step)))
                truth[key] = str(step)
            if dice.random() < 0.02:
                effect = CutWatch() if dice.random() < 0.5 else EndWatch()
                east.faults.add(Fault(effect, verb="watch", count=1))
            await asyncio.sleep(dice.choice([0, 0, 0.01, 0.05]))
        await until(lambda: copies.values() == truth)


async def test_where_the_whole_cluster_may_not_be_watched_each_namespace_is(
    api: Kubernetes, east: EmulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, asked = api._watches._open, list[str]()

    def forbidding(path: str, query: Mapping[str, str], idle_seconds: float) -> Any:
        asked.append(path)
        if "/namespaces/" not in path:
            raise Forbidden("watch configmaps at the cluster scope")
        return opened(path, query, idle_seconds)

    monkeypatch.setattr(api._watches, "_open", forbidding)
    names = NAMESPACES[:40]
    namespaces(east, names)
    copies = Copies(api, names)
    async with running(copies):
        await until(lambda: open_watches() == len(names))
        east.apply(config_map("team-39", value="2"))
        await until(lambda: copies.values()[ObjectKey("team-39", "one")] == "2")
    assert asked.count("/api/v1/configmaps") == 1


class Server:
    """Watches of which a test says the lines."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.lines: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()

    @asynccontextmanager
    async def open(
        self, path: str, query: Mapping[str, str], idle_seconds: float  # noqa: ARG002 - what opens a watch is given it
    ) -> AsyncIterator[AsyncIterator[bytes]]:  # fmt: skip
        self.asked.append((path, query["resourceVersion"]))
        yield self._lines() if "/namespaces/" not in path else self._quiet()

    async def _lines(self) -> AsyncIterator[bytes]:
        while (line := await self.lines.get()) is not None:
            if isinstance(line, Exception):
                raise line
            yield line

    async def _quiet(self) -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    def says(self, namespace: str, version: int) -> None:
        text = '{"type":"ADDED","object":{"metadata":{"namespace":"%s","name":"x","resourceVersion":"%d"}}}'
        self.lines.put_nowait((text % (namespace, version)).encode())


QUERY = {"watch": "true", "timeoutSeconds": "15"}


@asynccontextmanager
async def many(watches: SharedWatches) -> AsyncIterator[None]:
    """Let more namespaces be watched than are watched each by itself."""
    async with AsyncExitStack() as stack:
        for number in range(shared_watch.NAMESPACES_MAX):
            path, query = f"/api/v1/namespaces/other-{number}/pods", QUERY | {"resourceVersion": "1"}
            await stack.enter_async_context(watches.stream(path, query, idle_seconds=20))
        yield


async def test_who_begins_late_hears_what_has_happened_since_its_own_version_once() -> None:
    server = Server()
    watches = SharedWatches("east", server.open)
    async with many(watches):
        first = watches.stream("/api/v1/namespaces/a/pods", QUERY | {"resourceVersion": "10"}, idle_seconds=20)
        async with first as lines:
            for version in range(11, 20):
                server.says("b" if version % 2 else "a", version)
            assert b'"12"' in await anext(lines)
            for _ in range(3):
                await anext(lines)
            query = QUERY | {"resourceVersion": "14"}
            async with watches.stream("/api/v1/namespaces/b/pods", query, idle_seconds=20) as late:
                heard = [await anext(late) for _ in range(3)]
                assert [version for version in (b"15", b"17", b"19") if version in b"".join(heard)] == [
                    b"15", b"17", b"19"
                ]  # fmt: skip
            with pytest.raises(Expired):
                async with watches.stream(
                    "/api/v1/namespaces/c/pods", QUERY | {"resourceVersion": "9"}, idle_seconds=20
                ):
                    pass
    assert server.asked[-1] == ("/api/v1/pods", "10")
    await watches.close()


async def test_a_refusal_that_is_not_yet_noted_is_not_asked_for_again() -> None:
    """A watch that begins between the server's answer and the first of those who wait for it."""
    asked = list[str]()

    @asynccontextmanager
    async def forbidding(path: str, query: Mapping[str, str], idle_seconds: float) -> AsyncIterator[Any]:
        asked.append(path)
        if "/namespaces/" not in path:
            raise Forbidden("watch pods at the cluster scope")
        yield asyncio.Queue()

    watches = SharedWatches("east", forbidding)
    query = QUERY | {"resourceVersion": "10"}

    async def watch(name: str) -> None:
        async with watches.stream(f"/api/v1/namespaces/{name}/pods", query, idle_seconds=20):
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(watch(f"n{number}")) for number in range(shared_watch.NAMESPACES_MAX + 1)]
        for number in range(20):  # one in each turn of the event loop
            await asyncio.sleep(0)
            tasks.append(group.create_task(watch(f"m{number}")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
    assert asked.count("/api/v1/pods") == 1
    await watches.close()


async def test_its_failure_is_the_failure_of_all_and_the_next_one_starts_again() -> None:
    server = Server()
    watches = SharedWatches("east", server.open)
    async with many(watches):
        query = QUERY | {"resourceVersion": "10"}
        async with watches.stream("/api/v1/namespaces/a/pods", query, idle_seconds=20) as lines:
            server.lines.put_nowait(ApiUnavailable("cut"))
            with pytest.raises(ApiUnavailable, match="cut"):
                await anext(lines)
        query = QUERY | {"resourceVersion": "30"}
        async with watches.stream("/api/v1/namespaces/a/pods", query, idle_seconds=20) as lines:
            server.says("a", 31)
            assert b"31" in await anext(lines)
    assert server.asked[-1] == ("/api/v1/pods", "30")
    await watches.close()
