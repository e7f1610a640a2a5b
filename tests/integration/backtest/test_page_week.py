"""The page of a week with one outage of eight minutes, in Chromium: its curve, threshold, window and action."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from reactor.settings.server_settings import Endpoint
from reactor.workbench.backtest.backtest_run import BacktestRequest, run
from reactor.workbench.backtest.backtest_text import COLUMNS
from reactor.workbench.backtest.history_builder import BacktestPlan, BacktestSpan
from reactor.workbench.backtest.page import page
from reactor.workbench.backtest.prometheus_gaps import NEWEST_SCRAPE
from rules import loader
from rules.rehearsal.backtest.backtester import Sweep
from tests.browser import PICTURES, Browser
from tests.integration.backtest.recorded import recorded

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("a backtest of a week")]
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


_played: list[str] = []


@pytest.fixture
async def week(tmp_path: Path) -> Path:
    """The page of the week: played once, for all tests of this file."""
    file = tmp_path / "week.html"
    if not _played:
        _played.append(await _page())
    file.write_text(_played[0], "utf-8")
    return file


async def _page() -> str:
    async with recorded() as server:
        series: list[Any] = [({"service": "checkout"}, errors), ({"service": "checkout-west"}, lambda _: 0.001)]
        server.says = {"errors": series, NEWEST_SCRAPE: [({}, lambda second: second - 5)]}
        end = (START + DAYS * 86_400) * 1000
        span = BacktestSpan(START * 1000, end, end, None)
        versions = (RULES + SECOND, RULES.replace("Seconds: 120", "Seconds: 600") + SECOND)
        plan, other = (BacktestPlan(loader.load_rules([("shop.yaml", one)]), span, ("main",)) for one in versions)
        endpoints = {"main": Endpoint.model_validate({"url": server.url})}
        done = await run(
            BacktestRequest(plan, endpoints, other, Sweep("tolerationSeconds", (0, 600)), curves=True), lambda *_: None
        )
    return page(done)


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
    at = (OUTAGE - START) / (DAYS * 86_400) * 1000

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
    assert re.search(r"error-rate 0\.\d", said), said
    assert "tolerationSeconds: 120" in await browser.ask("document.querySelector('h2[id] ~ details pre').textContent")
    assert browser.complaints == []


MINUTE = 60.0
ZOOMS = {"a week": (START, START + DAYS * 86_400), "two hours": (OUTAGE - 61 * MINUTE, OUTAGE + 60 * MINUTE),
         "ten minutes": (OUTAGE - 3 * MINUTE, OUTAGE + 7 * MINUTE)}  # fmt: skip
HAPPENED = {
    "rect.bad": (OUTAGE, OUTAGE + 8 * MINUTE),
    "rect.window": (OUTAGE, OUTAGE + 2 * MINUTE),
    "rect.away": (OUTAGE + 2 * MINUTE, OUTAGE + 13 * MINUTE),
    "line.away": (OUTAGE + 2 * MINUTE, OUTAGE + 2 * MINUTE),
    "line.home": (OUTAGE + 13 * MINUTE, OUTAGE + 13 * MINUTE),
}
"""Intervals of the picture that follow from the test's past and its rule: from, until."""
# What is on the screen: the box without its outline, and whether a pointer in its middle is on it.
SEEN = """(kind) => {
  const one = document.querySelector(`svg.lane ${kind}`);
  const {left, right, top, bottom} = one.getBoundingClientRect();
  const lane = one.closest("svg").getBoundingClientRect();
  const middle = Math.min(Math.max((left + right) / 2, lane.left + 1), lane.right - 1);
  return [left, right, lane.left, lane.width, document.elementFromPoint(middle, (top + bottom) / 2) === one];
}"""


async def zoom(browser: Browser, first: float, until: float) -> None:
    """Drag over the first lane, ever nearer, until it shows this time."""
    assert (until - first) >= 10 * MINUTE  # nearer it does not go
    for _ in range(3):
        view = await browser.ask("document.querySelector('svg.lane').getAttribute('viewBox').split(' ').map(Number)")
        left, top, width, height = await browser.ask(
            "(({left, top, width, height}) => [left, top, width, height])"
            "(document.querySelector('svg.lane').getBoundingClientRect())"
        )
        # Pointers know half pixels at best: each drag takes twice the time that is wanted, the last one all but that.
        places = [(moment - START) / (DAYS * 86_400) * 1000 for moment in (first, until)]
        spare = max((places[1] - places[0]) / 2, view[2] / 100) if view[2] > 4 * (places[1] - places[0]) else 0
        begin, end = (
            left + min(max((place - view[0]) / view[2], 0), 1) * width
            for place in (places[0] - spare, places[1] + spare)
        )
        await browser.page.mouse.move(begin, top + height / 2)
        await browser.page.mouse.down()
        await browser.page.mouse.move(end, top + height / 2)
        await browser.page.mouse.up()


@pytest.mark.parametrize("near", ZOOMS)
async def test_what_is_drawn_is_at_its_time_however_near_one_looks(browser: Browser, week: Path, near: str) -> None:
    await browser.resize(1280, 900)
    await browser.go(week.as_uri())
    await browser.ask("document.querySelector('h3').scrollIntoView({block: 'center'})")
    if near != "a week":
        await zoom(browser, *ZOOMS[near])
    begin, _, wide, _ = await browser.ask(
        "document.querySelector('svg.lane').getAttribute('viewBox').split(' ').map(Number)"
    )
    shown: list[float] = [START + part / 1000 * DAYS * 86_400 for part in (begin, begin + wide)]
    pixel = (shown[1] - shown[0]) / 1200
    assert shown == pytest.approx(ZOOMS[near], abs=max(30, 3 * pixel))  # as the drag went
    await browser.page.screenshot(path=Path(PICTURES, f"backtest-{near.replace(' ', '-')}.png")) if PICTURES else None

    def moment(x: float, left: float, width: float) -> float:
        return shown[0] + (x - left) / width * (shown[1] - shown[0])

    for kind, (since, until) in HAPPENED.items():
        if since >= shown[1]:
            continue
        x1, x2, left, width, is_on_top = await browser.page.evaluate(SEEN, kind)
        assert is_on_top or near == "a week", kind  # of a week the ends of these are one pixel
        assert moment(x1, left, width) == pytest.approx(since, abs=2 * pixel), kind
        assert moment(x2, left, width) == pytest.approx(until, abs=2 * pixel), kind
    assert (await browser.page.evaluate(SEEN, "rect.window"))[4]  # the window, from wherever one looks

    # Under the pointer, in the middle of the outage, is what was measured then.
    left, top, width = await browser.ask(
        "(({left, top, width}) => [left, top, width])(document.querySelector('svg.metric').getBoundingClientRect())"
    )
    place = (OUTAGE + 4 * MINUTE - shown[0]) / (shown[1] - shown[0])
    await browser.page.mouse.move(left + place * width, top + 10)
    said = await browser.ask("document.getElementById('at').value")
    assert said.startswith("2026-01-04 07:0"), said
    assert near == "a week" or said.endswith(": error-rate 0.4"), said


async def test_near_an_outage_the_curve_has_each_sample(browser: Browser, week: Path) -> None:
    await browser.go(week.as_uri())
    runs = await browser.ask(
        "document.querySelector('svg.metric').dataset.values.split(';').map(one => one.split(',').map(Number))"
    )
    second = DAYS * 86_400 / 1000
    bad = [run for run in runs if run[3] == 0.4]
    # The samples of 07:02:00 to 07:09:30 count for 30 s each.
    assert [bad[0][0] * second, bad[-1][1] * second] == pytest.approx([OUTAGE - START, OUTAGE + 480 - START], abs=1)
    assert {run[2] for run in bad} == {0.4}  # no part of it reaches down to what was measured before and after
    around = [run for run in runs if abs(run[0] * second - (OUTAGE - START)) < 20 * MINUTE]
    assert len(around) > 30
    assert all(a[1] == b[0] for a, b in pairwise(runs))  # without a gap
    assert len(runs) < 1500
    assert len(week.read_bytes()) < 500_000


async def test_axes_and_pointer_say_which_time_is_utc_and_which_is_the_readers(browser: Browser, week: Path) -> None:
    running = browser.page.context.browser
    assert running is not None
    far = Browser(await running.new_page(timezone_id="Asia/Kolkata"))  # 5 h 30 min before UTC
    await far.go(week.as_uri())
    first = "[...document.querySelector('.scale').children].map(one => one.innerText)"
    assert await far.ask(first) == [
        "2026-01-01 00:00 UTC\n2026-01-01 05:30 local", "2026-01-04 12:00 UTC\n2026-01-04 17:30 local",
        "2026-01-08 00:00 UTC\n2026-01-08 05:30 local",
    ]  # fmt: skip
    said = await far.ask("document.getElementById('at').value")
    assert re.fullmatch(
        r"2026-01-01 00:00 to 2026-01-08 00:00 UTC, "
        r"2026-01-01 05:30 Asia/(Kolkata|Calcutta) to 2026-01-08 05:30 Asia/(Kolkata|Calcutta)",
        said,
    ), said
    assert re.fullmatch(
        r"2026-01-04 12:34 Asia/(Kolkata|Calcutta)", await far.ask("document.querySelector('time').title")
    )
    await far.looks("backtest-india")
    # Who is in UTC is told so once.
    await browser.go(week.as_uri())
    if await browser.ask("new Date().getTimezoneOffset()") == 0:
        assert (await browser.ask(first))[0] == "2026-01-01 00:00 UTC"


async def test_a_sweep_with_one_failover_says_why_it_has_no_picture_and_the_legend_names_what_is_drawn(
    browser: Browser, week: Path
) -> None:
    await browser.go(week.as_uri())
    text = await browser.ask("document.body.innerText")
    assert "No failover with tolerationSeconds 600, so there is no picture." in text
    assert await browser.ask("document.querySelector('svg.trade')") is None
    named = await browser.ask("[...document.querySelectorAll('.legend i')].map(one => one.dataset.of)")
    assert named == ["good", "bad", "window", "away", "home", "curve", "threshold"]
    for kind in named:
        assert await browser.ask(f"document.querySelectorAll('svg .{kind}').length") > 0, kind


async def test_on_a_telephone_each_number_of_a_table_is_seen_with_its_name(browser: Browser, week: Path) -> None:
    await browser.resize(390, 844)
    await browser.go(week.as_uri())
    cells = await browser.ask(
        "[...document.querySelector('table').querySelectorAll('tbody tr:first-child td')].map(one => {"
        "const {left, right} = one.getBoundingClientRect();"
        "return [getComputedStyle(one, '::before').content, left, right]})"
    )
    assert [name for name, *_ in cells] == [f'"{name}: "' for name in COLUMNS]
    assert all(left >= 0 and right <= 390 for _, left, right in cells)
    assert await browser.ask("[...document.querySelectorAll('.wide')].every(one => one.scrollWidth <= one.clientWidth)")
