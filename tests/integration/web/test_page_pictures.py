"""Pictures of the page in Chromium: windows over time, the course of an action, weights, a metric."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.browser import Browser
from tests.integration.web.busy import BUSY, SEARCH, busy
from tests.integration.web.conftest import EAST, PAY, Scene, running, settings

pytestmark = pytest.mark.long

TOLERANT = BUSY.replace("tolerationSeconds: 0\nsources", "tolerationSeconds: 1\nsources")
"""The rule search has a window before it acts."""
RECTS = """(of) => [...document.querySelectorAll(of)].map((one) => (
  {x: +one.getAttribute('x'), width: +one.getAttribute('width'),
   is: one.getAttribute('class'), text: one.textContent}))"""


async def rects(browser: Browser, of: str) -> list[dict[str, Any]]:
    await browser.until(f"document.querySelector({of!r}) !== null")
    found: list[dict[str, Any]] = await browser.ask(f"({RECTS})({of!r})")
    return found


async def open_page(browser: Browser, scene: Scene, page: str) -> None:
    await browser.go(f"{scene.url}/#/{page}")
    await browser.until("document.querySelector('main h1') !== null")


async def test_a_targets_timeline_has_its_observations_windows_and_rules(tmp_path: Path, browser: Browser) -> None:
    async with running(settings(tmp_path, rules=TOLERANT)) as scene:
        await busy(scene)
        await open_page(browser, scene, f"target/{EAST}")
        drawn = await rects(browser, ".lane[aria-label='health by error-rate'] rect")
        [window] = [one for one in drawn if "window" in one["is"]]
        assert "checkout: toleration since" in window["text"]
        assert window["text"].endswith("5 min")
        seen = [one for one in drawn if "window" not in one["is"]]
        bad = next(one for one in seen if one["text"].endswith("Unhealthy"))
        assert abs(window["x"] - bad["x"]) < 1, "it begins with what it is about"
        assert abs(window["x"] + window["width"] - 1000) < 1, "the axis reaches to its end"
        assert max(one["x"] + one["width"] for one in seen) < 999, "what is to come has no health"
        assert "checkout" in await browser.ask("document.querySelector('main').textContent")
        await browser.looks("timeline")

        await browser.ask(f"location.hash = '#/target/{SEARCH}'")
        await browser.until("document.querySelector('h1')?.textContent.endsWith('search')")
        drawn = await rects(browser, ".lane rect")
        [ended] = [one for one in drawn if "window" in one["is"]]
        [act] = [one for one in drawn if one["is"] == "v-act"]
        assert abs(ended["x"] + ended["width"] - act["x"]) < 1, "what was done was done at its end"
        assert browser.violations() == []


async def test_the_course_of_an_action_has_a_box_for_each_part_and_how_long_after_the_one_before(
    tmp_path: Path, browser: Browser
) -> None:
    async with running(settings(tmp_path, rules=TOLERANT)) as scene:
        await busy(scene)
        [act] = (await scene.get("/api/v1/actions?rule=search"))[1]["actions"]
        await open_page(browser, scene, f"actions/{act['id']}")
        boxes = "[...document.querySelectorAll('.course li')].map((one) => one.innerText.replace(/\\s+/g, ' '))"
        shown = await browser.until(f"{boxes}.length && {boxes}")
        assert [text.split()[0] for text in shown] == ["Observed", "Window", "Decided", "Guards", "Written", "Done"]
        assert re.search(r"\+ [\d.]+ (ms|s) toleration 1(\.\d)? s", shown[1])
        assert re.search(r"\+ 1\.\d s", shown[2]), "it was decided when the toleration was over"
        assert shown[3] == "Guards none held it back"
        assert shown[4] == "Written east/shop/TrafficSplit/search"
        assert re.search(r"\+ [\d.]+ (ms|s)", shown[5])
        bar = await browser.ask("document.querySelector('.c-window .track').getAttribute('aria-label')")
        assert bar.startswith("toleration: 1")
        await browser.looks("course")
        assert browser.violations() == []


async def test_a_rule_shows_which_sources_observe_what_it_watches_and_its_weights_over_time(
    tmp_path: Path, browser: Browser
) -> None:
    async with running(settings(tmp_path, rules=BUSY)) as scene:
        await busy(scene)
        await open_page(browser, scene, "rules/pay")
        rows = "[...document.querySelectorAll('.list li.row')].map((one) => one.innerText.replace(/\\s+/g, ' '))"
        shown = await browser.until(f"{rows}.length && {rows}")
        assert f"{PAY} no source" in shown
        assert "service/west/shop/checkout error-rate" in shown

        await browser.ask("location.hash = '#/rules/search'")
        await browser.until("document.querySelector('.lane.tall') !== null")
        before, after = await rects(browser, ".lane.tall rect")
        assert (before["x"], before["text"].split()[1:]) == (0, ["search", "1"])
        assert after["text"].split()[1:] == ["search-west", "1"]
        assert 0 < after["x"] < 1000
        assert abs(before["width"] - after["x"]) < 1, "the step is where the one ends and the other begins"
        assert abs(after["x"] + after["width"] - 1000) < 1
        words = await browser.ask("document.querySelector('.lane.tall').getAttribute('aria-label')")
        assert re.search(r"search 1, search-west 0; .*search 0, search-west 1$", words)
        assert browser.violations() == []


async def test_a_metric_is_drawn_on_both_sides_of_its_threshold(tmp_path: Path, browser: Browser) -> None:
    async with running(settings(tmp_path, rules=BUSY)) as scene:
        await busy(scene)
        await open_page(browser, scene, f"target/{EAST}")
        await browser.until("document.querySelector('.metric .curve') !== null")
        line = await browser.ask("document.querySelector('.metric .curve').getAttribute('d')")
        heights = [float(one) for one in re.findall(r"(?:V|M[\d.]+ )([\d.]+)", line)]
        threshold = float(await browser.ask("document.querySelector('.metric .threshold').getAttribute('y1')"))
        assert min(heights) < threshold < max(heights)
        assert heights[-1] == min(heights), "it is above now"
        label = await browser.ask("document.querySelector('.lane.metric').getAttribute('aria-label')")
        assert label == "error-rate: 0.134. Unhealthy above 0.05"
