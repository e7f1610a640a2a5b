"""PromQL results become health."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest

from bus.messages import Health
from reactor.clients.instant_queries import Queries, QueryFailed, QueryRefused, Sample
from reactor.runtime.errors import SettingsError
from reactor.sources.prometheus import prometheus_query
from reactor.sources.source_context import SourceContext
from rules.rulefile.sources import Bound, PrometheusQuery
from tests.integration.sources.conftest import Heard, Running
from tests.unit.webhook.builders import counted

H, U, N = Health.HEALTHY, Health.UNHEALTHY, Health.UNKNOWN


class Results:
    """A Prometheus whose next results are put in by hand."""

    def __init__(self) -> None:
        self.series: dict[str, float] = {}
        self.broken = False
        self.refused = ""
        self.asked: list[tuple[str, datetime | None]] = []

    async def query(self, promql: str, *, at: datetime | None = None) -> list[Sample]:
        self.asked.append((promql, at))
        if self.refused:
            raise QueryRefused(f"prometheus.main: {self.refused}")
        if self.broken:
            raise QueryFailed("prometheus.main: no answer within 10 s")
        return [Sample({"service": name.partition("#")[0], "i": name}, value, 0) for name, value in self.series.items()]


@pytest.fixture
def results() -> Results:
    return Results()


@pytest.fixture
def prometheus(results: Results) -> Mapping[str, Queries]:
    return {"main": results}


def source(unhealthy_when: Any = "Present", target: str = "service/east/shop/{service}") -> PrometheusQuery:
    return PrometheusQuery(
        name="errors", kind="PrometheusQuery", prometheus="main", query="up == 0", every_seconds=0.1, target=target,
        unhealthy_when=unhealthy_when,
    )  # fmt: skip


def of(name: str) -> str:
    return f"service/east/shop/{name}"


async def test_a_series_that_is_there_is_unhealthy_and_one_that_leaves_healthy(
    world: SourceContext, heard: Heard, results: Results, running: Running
) -> None:
    results.series = {"cart": 1, "pay": 1}
    async with running(prometheus_query.run(source(), world)):
        said = await heard.status(of("cart"), U)
        assert (said.detail, said.labels["service"]) == ("value 1", "cart")
        del results.series["cart"]
        await heard.status(of("cart"), H)
        await heard.status(of("pay"), U)
    assert results.asked[0] == ("up == 0", None)


async def test_absence_is_the_other_way_round(
    world: SourceContext, heard: Heard, results: Results, running: Running
) -> None:
    results.series = {"cart": 1}
    async with running(prometheus_query.run(source("Absent"), world)):
        await heard.status(of("cart"), H)
        results.series = {}
        await heard.status(of("cart"), U)


@pytest.mark.parametrize(("when", "status"), [("Present", H), ("Absent", U), (Bound(above=1), N)])
async def test_a_fixed_target_is_spoken_of_from_the_first_empty_result(
    world: SourceContext, heard: Heard, results: Results, running: Running, when: Any, status: Health
) -> None:
    async with running(prometheus_query.run(source(when, target="custom/payments"), world)):
        await heard.status("custom/payments", status)


async def test_a_failed_query_makes_all_its_targets_unknown(
    world: SourceContext, heard: Heard, results: Results, running: Running
) -> None:
    results.series = {"cart": 1, "pay": 1}
    async with running(prometheus_query.run(source(), world)):
        await heard.status(of("cart"), U)
        results.broken = True
        for name in ("cart", "pay"):
            assert "no answer" in (await heard.status(of(name), N)).detail
        results.broken = False
        await heard.status(of("cart"), U)


async def test_why_a_query_has_never_worked_is_logged_once_and_that_it_works_again(
    world: SourceContext, heard: Heard, results: Results, running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    async def asked_again() -> None:
        asked = len(results.asked) + 2
        async with asyncio.timeout(60):
            while len(results.asked) < asked:
                await asyncio.sleep(0.01)

    caplog.set_level(logging.INFO, prometheus_query.log.name)
    results.series = {"cart": 1}
    async with running(prometheus_query.run(source(), world)):
        for why in ("HTTP 401: <x object at 0x7f01>", "HTTP 401: <x object at 0x7f02>", "HTTP 400", "HTTP 401: <x>"):
            results.refused = why
            await asked_again()
        assert heard.observations == []
        results.refused = ""
        await heard.status(of("cart"), U)
    logged = [f"{record.levelname} {getattr(record, 'reason', '')}" for record in caplog.records]
    # On a busy machine an answer may be late besides, which is a reason of its own.
    refused = [line for line in logged if "HTTP" in line]
    assert refused == ["WARNING prometheus.main: HTTP 401: <x>", "WARNING prometheus.main: HTTP 400"]
    assert [record.getMessage() for record in caplog.records if record.levelname == "INFO"] == ["a query works again"]


async def test_samples_are_compared_with_the_bounds(
    world: SourceContext, heard: Heard, results: Results, running: Running
) -> None:
    results.series = {"cart": 0.01, "pay": 0.2, "odd": math.nan}
    async with running(prometheus_query.run(source(Bound(above=0.05)), world)):
        await heard.status(of("cart"), H)
        await heard.status(of("pay"), U)
        await heard.status(of("odd"), N)
        del results.series["pay"]
        await heard.status(of("pay"), N)


async def test_the_worst_of_several_series_speaks(
    world: SourceContext, heard: Heard, results: Results, running: Running
) -> None:
    results.series = {"cart#1": 0.0, "cart#2": 9.0, "cart#3": math.nan, "pay#1": 0.0, "pay#2": math.nan}
    async with running(prometheus_query.run(source(Bound(above=1)), world)):
        await heard.status(of("cart"), U)
        await heard.status(of("pay"), N)


async def test_a_series_without_the_label_is_about_no_target(
    world: SourceContext, heard: Heard, results: Results, running: Running
) -> None:
    results.series = {"": 1, "cart": 1}
    async with running(prometheus_query.run(source(), world)):
        await heard.status(of("cart"), U)
    assert {observation.target for observation in heard.observations} == {of("cart")}


async def test_targets_that_come_and_go_are_forgotten_the_longest_absent_first(
    world: SourceContext, heard: Heard, results: Results, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus_query, "FORGOTTEN_SECONDS", 0.0)
    results.series = {"a": 1, "b": 1}
    async with running(prometheus_query.run(source().model_copy(update={"max_targets": 2}), world)):
        await heard.status(of("b"), U)
        results.series = {"b": 1, "c": 1}
        await heard.status(of("c"), U)
        results.series = {}
        await heard.status(of("c"), H)
        await heard.status(of("b"), H)
    assert heard.statuses(of("a")) == [U]


async def test_targets_beyond_the_limit_are_refused_and_those_that_are_known_go_on(
    world: SourceContext, heard: Heard, results: Results, running: Running
) -> None:
    results.series = {"a": 1, "b": 1}
    before = counted("reactor_targets_refused_total", source="errors")
    async with running(prometheus_query.run(source().model_copy(update={"max_targets": 2}), world)):
        await heard.status(of("b"), U)
        results.series = {f"random-{number}": 1.0 for number in range(50)} | {"b": 1}
        await heard.status(of("a"), H)
        results.series = {"a": 1}
        await heard.status(of("b"), H)
        await heard.status(of("a"), U)
    assert {observation.target for observation in heard.observations} == {of("a"), of("b")}
    assert counted("reactor_targets_refused_total", source="errors") >= before + 50


async def test_a_prometheus_that_the_settings_do_not_name_is_told(world: SourceContext) -> None:
    unnamed = source().model_copy(update={"prometheus": "other"})
    with pytest.raises(SettingsError, match=r"prometheus.other: .* \(they name: main\)"):
        await prometheus_query.run(unnamed, world)
