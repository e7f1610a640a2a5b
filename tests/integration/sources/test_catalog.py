"""Sources are kept running, each for itself."""

from __future__ import annotations

import asyncio
import importlib
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, get_args

import pytest

from bus.messages import Health
from reactor.demo.kube import EmulatedCluster
from reactor.runtime.errors import SettingsError
from reactor.runtime.telemetry import REGISTRY
from reactor.sources.catalog import ELSEWHERE, module_of, start_all
from reactor.sources.probes import http_probe
from reactor.sources.source_context import SourceContext
from reactor.sources.ticker import Ticker
from rules.kinds.traffic.model import RouteSelection
from rules.rulefile.sources import (
    AlertmanagerWebhook,
    EndpointsWatch,
    HttpProbe,
    LoadedSource,
    PrometheusQuery,
    Quorum,
    TcpProbe,
)
from tests.clock import HandClock
from tests.integration.sources.conftest import Heard
from tests.serving import serving


def tcp(port: int, name: str = "port", **more: Any) -> TcpProbe:
    return TcpProbe(
        name=name, kind="TcpProbe", target=f"custom/{name}", host="127.0.0.1", port=port, every_seconds=0.1, **more
    )


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """A port that accepts connections."""

    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with serving(greet) as port:
        yield port


async def stop(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def broken(source: str, reason: str) -> float:
    labels = {"source": source, "reason": reason}
    return REGISTRY.get_sample_value("reactor_source_errors_total", labels) or 0.0


async def test_sources_of_all_kinds_run_side_by_side(
    world: SourceContext, heard: Heard, east: EmulatedCluster, port: int
) -> None:
    metadata = {"name": "a", "namespace": "shop", "labels": {"kubernetes.io/service-name": "cart"}}
    east.create({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": metadata, "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"]}],
    })  # fmt: skip
    sources: list[LoadedSource] = [
        tcp(port),
        EndpointsWatch(name="readiness", kind="EndpointsWatch", cluster="east"),
        AlertmanagerWebhook(name="alerts", kind="AlertmanagerWebhook", target="custom/a"),
    ]
    selection = RouteSelection(cluster="east", kind="TrafficSplit", namespace="shop", name="cart")
    tasks = start_all(sources, world, routes=[selection])
    assert {task.get_name() for task in tasks} == {"source port", "source readiness", "routes"}
    await heard.status("custom/port", Health.HEALTHY)
    await heard.status("service/east/shop/cart", Health.HEALTHY)
    await heard.until(lambda: len(heard.routes) > 0)
    await stop(tasks)
    assert world.scheduler.get_jobs() == []


async def test_a_source_that_cannot_run_takes_no_other_down(
    world: SourceContext, heard: Heard, port: int, caplog: pytest.LogCaptureFixture
) -> None:
    sources: list[LoadedSource] = [
        EndpointsWatch(name="nowhere", kind="EndpointsWatch", cluster="nowhere"),
        PrometheusQuery(name="nobody", kind="PrometheusQuery", target="custom/q", prometheus="nobody", query="up"),
        tcp(port),
    ]
    before = broken("nowhere", "SettingsError")
    tasks = start_all(sources, world)
    await heard.status("custom/port", Health.HEALTHY)
    assert broken("nowhere", "SettingsError") == before + 1
    assert broken("nobody", "SettingsError") >= 1
    await stop(tasks)


async def test_why_a_source_cannot_run_is_logged_once_and_in_one_line(
    world: SourceContext, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reasons = ["no kubeconfig", "no kubeconfig", "no kubeconfig", "no context"]
    tries, done = iter(reasons), asyncio.Event()

    async def cannot(source: HttpProbe, world: SourceContext) -> None:
        reason = next(tries, None)
        if reason is None:
            done.set()
            await asyncio.Event().wait()
        raise ExceptionGroup("unhandled", [SettingsError(str(reason))])

    monkeypatch.setattr(http_probe, "run", cannot)
    before = broken("web", "SettingsError")
    probe = HttpProbe(name="web", kind="HttpProbe", target="custom/web", url="http://127.0.0.1:1/")
    tasks = start_all([probe], replace(world, clock=HandClock()))
    async with asyncio.timeout(60):
        await done.wait()
    assert [record.reason for record in caplog.records] == ["no kubeconfig", "no context"]  # type: ignore[attr-defined]
    assert not any(record.exc_info for record in caplog.records)
    assert broken("web", "SettingsError") == before + len(reasons)
    await stop(tasks)


async def test_a_source_that_breaks_is_started_again(
    world: SourceContext, heard: Heard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    started: list[int] = []
    twice = asyncio.Event()

    async def breaks(source: HttpProbe, world: SourceContext) -> None:
        started.append(1)
        if len(started) == 2:
            twice.set()
        raise ExceptionGroup("unhandled", [ZeroDivisionError()])

    monkeypatch.setattr(http_probe, "run", breaks)
    before = broken("web", "ZeroDivisionError")
    probe = HttpProbe(name="web", kind="HttpProbe", target="custom/web", url="http://127.0.0.1:1/")
    tasks = start_all([probe], world)
    async with asyncio.timeout(60):
        await twice.wait()
    assert broken("web", "ZeroDivisionError") >= before + 1
    assert any(record.message == "a source broke, starting it again" for record in caplog.records)
    await stop(tasks)


async def test_readings_go_on_when_the_scheduler_has_lost_its_pace(
    world: SourceContext, caplog: pytest.LogCaptureFixture
) -> None:
    readings = asyncio.Semaphore(0)

    async def reading(*, extra: bool) -> None:
        assert not extra
        readings.release()

    pace = Ticker(world, reading, name="p", every_seconds=0.1, timeout_seconds=0.1)
    task = asyncio.create_task(pace.run())
    for _ in range(2):
        async with asyncio.timeout(60):
            await readings.acquire()
    (job,) = world.scheduler.get_jobs()
    # What a wall clock that is set back by an hour comes to: the next run is an hour away.
    later = job.next_run_time.replace(year=job.next_run_time.year + 1)
    job.modify(next_run_time=later)
    while not readings.locked():
        await readings.acquire()
    async with asyncio.timeout(60):
        await readings.acquire()
    assert any(record.message == "readings have stopped, starting them again" for record in caplog.records)
    await stop([task])


def test_a_kind_that_is_not_used_costs_nothing() -> None:
    program = (
        "import sys, reactor.sources.catalog, reactor.sources.source_context;"
        "print([m for m in ('kubernetes', 'grpc', 'prometheus_api_client') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_kind_has_its_module() -> None:
    kinds = {one.__name__ for one in get_args(LoadedSource)}
    assert kinds > ELSEWHERE
    for kind in kinds - ELSEWHERE:
        assert callable(importlib.import_module(module_of(kind)).run)


async def test_a_kind_that_the_core_carries_out_is_no_task(world: SourceContext) -> None:
    quorum = Quorum(name="q", kind="Quorum", members="node/*/*", target="custom/q", unhealthy_at=1)
    assert start_all([quorum], world) == []
