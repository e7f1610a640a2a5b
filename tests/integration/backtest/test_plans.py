"""Queries for a rule file, and the notes about what the past cannot show."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from reactor.cli.backtest import backtest
from reactor.settings.server_settings import Endpoint
from reactor.workbench.backtest.alert_observations import FIRING
from reactor.workbench.backtest.backtest_run import Backtested, BacktestRequest, run
from reactor.workbench.backtest.history_builder import BacktestPlan, BacktestSpan, unplayable
from reactor.workbench.backtest.prometheus_gaps import NEWEST_SCRAPE
from rules import loader
from rules.loader import RuleSet
from tests.integration.backtest.recorded import Recorded, recorded, within

START = 1_767_225_600
SOURCES = """
apiVersion: reactor/v1
sources:
- {name: down, kind: PrometheusQuery, prometheus: eu, query: down, signal: health,
   target: 'service/east/shop/{service}'}
"""
CHECKOUT = """
rules:
- name: checkout
  kind: TrafficFailover
  route: {cluster: east, kind: TrafficSplit, namespace: shop, name: checkout}
  primary: checkout
  backends: [{service: checkout}, {service: fallback}]
"""


@pytest.fixture
async def prometheus() -> AsyncIterator[Recorded]:
    """Checkout is down for five minutes; of the fallback nothing is ever heard."""
    async with recorded() as server:
        server.says = {"down": [({"service": "checkout"}, within((START + 600, START + 900)))]}
        yield server


def load(text: str) -> RuleSet:
    return loader.load_rules([("shop.yaml", text)])


def plan(text: str, *, hours: int = 1) -> BacktestPlan:
    to_ms = (START + hours * 3600) * 1000
    return BacktestPlan(load(text), BacktestSpan(START * 1000, to_ms, to_ms), ("eu", "us"))


async def played(of: BacktestPlan, server: Recorded) -> Backtested:
    endpoints = {name: Endpoint.model_validate({"url": server.url}) for name in of.servers}
    return await run(BacktestRequest(of, endpoints), lambda *_: None)


def test_each_source_asks_its_own_server_at_its_own_pace() -> None:
    alerts = (
        "- {name: am, kind: AlertmanagerWebhook, target: 'custom/{a}', "
        "confirm: {prometheus: us, query: good, everySeconds: 60}}\n"
    )
    asks = {(ask.prometheus, ask.query, ask.grid.step_ms) for ask in plan(SOURCES + alerts + CHECKOUT).asks()}
    assert asks == {
        ("eu", "down", 15_000), ("eu", NEWEST_SCRAPE, 15_000), ("eu", FIRING, 60_000), ("us", FIRING, 60_000),
        ("us", "good", 60_000), ("us", NEWEST_SCRAPE, 60_000),
    }  # fmt: skip


def test_a_step_counts_for_all_and_no_setting_is_needed_for_scrapes() -> None:
    of = plan(SOURCES + CHECKOUT)
    other = replace(of, span=replace(of.span, step_ms=45_000), scrapes="", only="one")
    assert [(ask.prometheus, ask.query, ask.grid.step_ms) for ask in other.asks()] == [("one", "down", 45_000)]


async def test_a_backend_without_an_observation_gets_no_traffic_unless_it_is_assumed(prometheus: Recorded) -> None:
    of = plan(SOURCES + CHECKOUT)
    alone = (await played(of, prometheus)).played.stories["checkout"]
    assert (alone.acts, [wait.reason for wait in alone.waits]) == ([], ["NoHealthySecondary"])
    assumed = (await played(replace(of, assume_healthy=("service/**",)), prometheus)).played.stories["checkout"]
    assert [act.move for act in assumed.acts] == ["Away", "Home"]
    # The source that publishes it later counts, under the same signal.
    lane = assumed.lanes["east/shop/TrafficSplit/checkout", "service/east/shop/checkout"]
    assert lane.bad_seconds == 300


def test_what_cannot_be_played_is_told() -> None:
    text = """
apiVersion: reactor/v1
sources:
- {name: readiness, kind: EndpointsWatch, cluster: east}
rules:
- {name: all, kind: TrafficFailover, route: {cluster: east, kind: TrafficSplit, selector: team=shop}}
- {name: one, kind: TrafficFailover, route: {cluster: east, kind: TrafficSplit, namespace: shop, name: one}}
- {name: off, kind: Notification, mode: 'Off', match: service/**}
"""
    told = list(unplayable(load(text)))
    assert [line.split(":")[0] for line in told] == ["rule all", "rule one", "rule off", "source readiness"]


def test_settings_that_lack_a_server_are_refused(tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(SOURCES + CHECKOUT)
    (tmp_path / "reactor.yaml").write_text(json.dumps({"prometheus": {"us": {"url": "http://127.0.0.1:1"}}}))
    words = ["--rules", str(tmp_path / "shop.yaml"), "--config", str(tmp_path / "reactor.yaml"), "--from", "-1h"]
    result = CliRunner().invoke(backtest, words)
    assert result.exit_code == 1
    assert "'eu' is not in the settings; there are us" in result.stderr
