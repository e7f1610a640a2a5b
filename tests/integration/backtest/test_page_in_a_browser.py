"""The page of a backtest as Chromium shows it: a month of many rules, in the light and in the dark, on a telephone."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from reactor.settings.server_settings import Endpoint
from reactor.workbench.backtest.backtest_run import BacktestRequest, run
from reactor.workbench.backtest.history_builder import BacktestPlan, BacktestSpan
from reactor.workbench.backtest.page import page
from reactor.workbench.backtest.prometheus_gaps import NEWEST_SCRAPE
from rules import loader
from rules.rehearsal.backtest.backtester import Sweep
from tests.browser import Browser
from tests.integration.backtest.recorded import recorded

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("a backtest of a month")]
START = 1_767_225_600
DAYS = 30
RULES = 6
SOURCE = """apiVersion: reactor/v1
sources:
- {name: up, kind: PrometheusQuery, prometheus: main, query: up_ratio, everySeconds: 300,
   target: 'service/east/shop/{service}', unhealthyWhen: {below: 0.5}}
rules:
"""
RULE = """\
- name: shop-{n}
  kind: TrafficFailover
  route: {{cluster: east, kind: TrafficSplit, namespace: shop, name: s{n}}}
  backends: [{{service: a{n}}}, {{service: a-rather-long-name-of-a-service-in-another-region-{n}}}]
  tolerationSeconds: {toleration}
  recoverySeconds: 300
"""
SWEPT = (0.0, 10.0, 30.0, 60.0, 600.0, 3600.0)
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


def rules(toleration: int) -> str:
    return SOURCE + "".join(RULE.format(n=n, toleration=toleration) for n in range(RULES))


def up(number: int) -> Any:
    """Bad for a few minutes every few hours, and now and then for longer."""
    every = 20_000 + 977 * number

    def value(second: float) -> float:
        turn, since = divmod(second - START, every)
        return 0.0 if since < (4000 if turn % 40 == 3 else 400) else 1.0

    return value


_played: list[str] = []


@pytest.fixture
async def written(tmp_path: Path) -> Path:
    """The page of a month, swept and compared: played once, which takes most of the time of these tests."""
    file = tmp_path / "page.html"
    if not _played:
        _played.append(await _page())
    file.write_text(_played[0], "utf-8")
    return file


async def _page() -> str:
    async with recorded() as server:
        series: list[Any] = [({"service": f"a{n}"}, up(n)) for n in range(RULES)]
        others = [f"a-rather-long-name-of-a-service-in-another-region-{n}" for n in range(RULES)]
        series += [({"service": name}, lambda _: 1.0) for name in others]
        server.says = {"up_ratio": series, NEWEST_SCRAPE: [({}, lambda second: second - 5)]}
        end = (START + DAYS * 86_400) * 1000
        span = BacktestSpan(START * 1000, end, end + 10**10, None)
        plans = [BacktestPlan(loader.load_rules([("shop.yaml", rules(bears))]), span, ("main",)) for bears in (300, 0)]
        endpoints = {"main": Endpoint.model_validate({"url": server.url})}
        request = BacktestRequest(plans[0], endpoints, plans[1], Sweep("tolerationSeconds", SWEPT))
        done = await run(request, lambda *_: None)
    return page(done)


async def test_the_page_is_shown_as_it_is_meant(browser: Browser, written: Path) -> None:
    await browser.resize(1280, 900)
    await browser.go(written.as_uri())
    assert browser.complaints == []

    # All rules and all their lanes are there, in colours, before any of the long lists.
    assert await browser.ask("document.querySelectorAll('h2[id]').length") == RULES
    lanes = await browser.ask(
        "[...document.querySelectorAll('svg.lane')].map(one => one.getBoundingClientRect().width)"
    )
    assert len(lanes) == 3 * RULES
    assert min(lanes) > 800
    for kind in ("good", "bad", "away", "home"):
        colour = f"getComputedStyle(document.querySelector('rect.{kind}')).fill"
        assert await browser.ask(colour) not in ("", "none", "rgb(0, 0, 0)")
    assert await browser.ask("[...document.querySelectorAll('details')].some(one => one.open)") is False
    await browser.ask("document.querySelector('h2[id] ~ details:has(li) summary').click()")
    assert await browser.ask("document.querySelector('h2[id] ~ details li').checkVisibility()") is True

    # Zoomed, all lanes show the same part, and the time is said in UTC and in the reader's own.
    views = "[...new Set([...document.querySelectorAll('svg.lane')].map(one => one.getAttribute('viewBox')))]"
    assert await browser.ask(views) == ["0 0 1000 20"]
    assert "2026-01-01 00:00 to 2026-01-31 00:00 UTC" in await browser.ask("document.getElementById('at').value")
    await browser.ask("document.getElementById('closer').click()")
    assert await browser.ask(views) == ["250 0 500 20"]
    await browser.ask(
        "document.querySelector('svg.lane').dispatchEvent(new PointerEvent('pointermove', {clientX: 300}))"
    )
    hovered = await browser.ask("document.getElementById('at').value")
    assert re.fullmatch(r"2026-01-\d\d \d\d:\d\d UTC, 2026-01-\d\d \d\d:\d\d \S+", hovered), hovered
    await browser.ask("document.getElementById('whole').click()")
    assert "tolerationSeconds: 300" in await browser.ask("document.querySelector('h2[id] ~ details pre').textContent")

    # The overview leads to each rule.
    await browser.ask("document.querySelector('a[href=\"#rule-5\"]').click()")
    assert await browser.ask("document.getElementById('rule-5').getBoundingClientRect().top < innerHeight") is True


async def test_the_values_of_a_sweep_can_be_told_apart(browser: Browser, written: Path) -> None:
    await browser.go(written.as_uri())
    boxes = await browser.ask(
        "[...document.querySelectorAll('svg.trade text')].map(one => {"
        "const box = one.getBoundingClientRect();"
        "return [one.textContent, box.left, box.right, box.top, box.bottom]})"
    )
    assert {f"{value:g}" for value in SWEPT} <= {box[0] for box in boxes}
    for (one, *a), (other, *b) in combinations(boxes, 2):
        apart = a[1] <= b[0] or b[1] <= a[0] or a[3] <= b[2] + 3 or b[3] <= a[2] + 3
        assert apart, (one, other)


async def test_it_is_dark_where_the_readers_system_is(browser: Browser, written: Path) -> None:
    await browser.go(written.as_uri())
    await browser.prefer("light")
    light = await browser.ask(BACKGROUND)
    await browser.prefer("dark")
    assert (light, await browser.ask(BACKGROUND)) == ("rgb(255, 255, 255)", "rgb(21, 24, 28)")


async def test_on_a_telephone_nothing_is_wider_than_the_screen(browser: Browser, written: Path) -> None:
    await browser.resize(360, 740)
    await browser.go(written.as_uri())
    assert await browser.ask("document.documentElement.scrollWidth") <= 360
    # What is short is drawn two pixels wide at least, however narrow the window and long the time.
    bad = "getComputedStyle(document.querySelector('rect.bad'))"
    assert await browser.ask(f"[{bad}.strokeWidth, {bad}.vectorEffect].join()") == "2px,non-scaling-stroke"
