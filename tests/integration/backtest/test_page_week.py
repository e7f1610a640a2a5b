"""The page of a week with one outage of eight minutes, in Chromium: its curve, threshold, window and action."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from reactor.settings.model import Endpoint
from reactor.workbench.backtest.backtest_run import BacktestRequest, run
from reactor.workbench.backtest.history_builder import BacktestPlan, BacktestSpan
from reactor.workbench.backtest.page import page
from reactor.workbench.backtest.prometheus_gaps import NEWEST_SCRAPE
from rules import loader
from rules.rehearsal.backtest.backtester import Sweep
from tests.browser import Browser
from tests.integration.backtest.recorded import recorded

START = 1_767_225_600
DAYS = 7
OUTAGE = START + 3 * 86_400 + 7 * 3_600 + 120
"""2026-01-04 07:02."""
RULES = """apiVersion: reactor/v1
sources:
- {name: error-rate, kind: PrometheusQuery, prometheus: main, query: errors, everySeconds: 30,
   target: 'service/east/shop/{service}', unhealthyWhen: {above: 0.05}}
rules:
- name: checkout
  kind: TrafficFailover
  route: {cluster: east, kind: TrafficSplit, namespace: shop, name: checkout}
  backends: [{service: checkout}, {service: checkout-west}]
  tolerationSeconds: 120
  recoverySeconds: 300
"""
SECOND = RULES[RULES.index("- name: checkout") :].replace("checkout", "pay", 1).replace("name: checkout}", "name: pay}")


def errors(second: float) -> float:
    return 0.4 if OUTAGE <= second < OUTAGE + 480 else 0.01 + (second % 7_200) / 1_000_000


@pytest.fixture
async def week(tmp_path: Path) -> Path:
    async with recorded() as server:
        series: list[Any] = [({"service": "checkout"}, errors), ({"service": "checkout-west"}, lambda _: 0.001)]
        server.says = {"errors": series, NEWEST_SCRAPE: [({}, lambda second: second - 5)]}
        end = (START + DAYS * 86_400) * 1000
        span = BacktestSpan(START * 1000, end, end, None)
        versions = (RULES + SECOND, RULES.replace("Seconds: 120", "Seconds: 600") + SECOND)
        plan, other = (BacktestPlan(loader.load([("shop.yaml", one)]), span, ("main",)) for one in versions)
        endpoints = {"main": Endpoint.model_validate({"url": server.url})}
        done = await run(
            BacktestRequest(plan, endpoints, other, Sweep("tolerationSeconds", (0, 600)), curves=True), lambda *_: None
        )
    file = tmp_path / "week.html"
    file.write_text(page(done), "utf-8")
    return file


async def test_a_short_outage_in_a_week_is_seen_with_its_curve_threshold_window_and_action(
    browser: Browser, week: Path
) -> None:
    await browser.go(week.as_uri())
    await browser.looks("backtest")
    assert await browser.ask("document.querySelectorAll('svg.metric').length") == 4
    drawn = "document.querySelector('svg.metric .curve').getBBox()"
    threshold = float(await browser.ask("document.querySelector('svg.metric .threshold').getAttribute('y1')"))
    top = await browser.ask(f"{drawn}.y")
    assert top < threshold < top + await browser.ask(f"{drawn}.height")
    for width in (1280, 390):
        await browser.resize(width, 900)
        for kind in ("bad", "window", "away"):
            box = f"document.querySelector('svg.lane rect.{kind}').getBoundingClientRect()"
            line = f"parseFloat(getComputedStyle(document.querySelector('svg.lane rect.{kind}')).strokeWidth)"
            assert await browser.ask(f"{box}.width + {line}") >= 2, (kind, width)
    # The window and the action are drawn where they were, however near one looks.
    window, away = [float(await browser.ask(f"document.querySelector('rect.{kind}').getAttribute('x')")) for kind in
                    ("window", "away")]  # fmt: skip
    at = (OUTAGE - START) / (DAYS * 86_400) * 1000
    assert window == pytest.approx(at, abs=0.1)
    assert away == pytest.approx(at + 120 / (DAYS * 86_400) * 1000, abs=0.1)

    # Under the pointer it says the time, in UTC and in the reader's zone, and what was measured.
    box = await browser.ask("(({left, top, width}) => [left, top, width])"
                            "(document.querySelector('svg.metric').getBoundingClientRect())")  # fmt: skip
    await browser.ask("document.querySelector('svg.metric').scrollIntoView({block: 'center'})")
    await browser.resize(1280, 900)
    box = await browser.ask("(({left, top, width}) => [left, top, width])"
                            "(document.querySelector('svg.metric').getBoundingClientRect())")  # fmt: skip
    await browser.page.mouse.move(box[0] + box[2] * (at + 0.4) / 1000, box[1] + 10)
    said = await browser.ask("document.getElementById('at').value")
    assert re.search(r"2026-01-04 0[67]:\d\d UTC, 2026-01-04 \d\d:\d\d \S+", said), said
    assert re.search(r"error-rate 0\.01\S* to 0\.4", said), said
    assert "tolerationSeconds: 120" in await browser.ask("document.querySelector('h2[id] ~ details pre').textContent")
    assert browser.complaints == []
