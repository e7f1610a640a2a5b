"""The page in Chromium: each page at both widths in both colours, live, by keyboard, with markup in what is shown."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import axe_core_python
import pytest

from bus.messages import Health
from tests.integration.backtest.browser import Browser, browsing
from tests.integration.web.busy import BUSY, busy
from tests.integration.web.conftest import EAST, XSS, Scene, Start, running, settings

TAB, ENTER = "\ue004", "\ue007"
AXE = Path(axe_core_python.__file__).with_name("axe.min.js").read_text()
WIDTHS = ((1280, 900), (390, 844))
PICTURES = os.environ.get("REACTOR_SCREENSHOTS")
"""A folder for the pictures of all pages, for people to look at."""


@pytest.fixture
async def browser(tmp_path: Path) -> AsyncIterator[Browser]:
    async with browsing(tmp_path / "profile") as browser:
        yield browser


async def until(browser: Browser, expression: str, within: float = 30) -> Any:
    """Wait until an expression of the page holds."""
    async with asyncio.timeout(within):
        while not (value := await browser.ask(expression)):
            await asyncio.sleep(0.05)
    return value


def violations(said: list[str]) -> list[str]:
    return [line for line in said if "Content Security Policy" in line or "Trusted" in line or "SEVERE" in line]


async def faults(browser: Browser) -> list[str]:
    """Give what axe finds wrong with what is in the window for people who see, hear or move otherwise."""
    if not await browser.ask("typeof axe === 'object'"):
        await browser.later(f"{AXE}\nwindow.axe = axe; arguments[0](true)")
    found, passed = await browser.later(
        "const done = arguments[0]; axe.run().then((all) => done([all.violations, all.passes.length]))"
    )
    assert passed > 10  # it has looked
    return [f"{one['id']}: {node['target']} {node['failureSummary']}" for one in found for node in one["nodes"]]


async def test_each_page_fits_its_window_breaks_no_policy_and_can_be_used_by_all(
    tmp_path: Path, browser: Browser
) -> None:
    async with running(settings(tmp_path, rules=BUSY)) as scene:
        await busy(scene)
        [act] = (await scene.get("/api/v1/actions?rule=search"))[1]["actions"]
        pages = {
            "now": ".card .window", "map": ".zones .isolated", "actions": ".act", f"actions/{act['id']}": ".chain",
            "rules": "table", "rules/checkout": "pre", "rules/search": ".lane.tall", "members": "table",
            f"target/{EAST}": ".lane.metric", "approve/wrong": ".card",
        }  # fmt: skip
        await browser.go(f"{scene.url}/")
        for width, height in WIDTHS:
            for scheme in ("light", "dark"):
                await browser.prefer(scheme)
                for page, part in pages.items():
                    await browser.resize(width, height)
                    await browser.ask(f"location.hash = '#/{page}'")
                    await until(browser, f"document.querySelector('{part}') !== null")
                    assert await browser.ask("document.documentElement.scrollWidth") <= width, (page, width)
                    assert await browser.ask("document.querySelectorAll('h1').length") == 1, page
                    assert await faults(browser) == [], (page, width, scheme)
                    if PICTURES:
                        await browser.resize(width, int(await browser.ask("document.documentElement.scrollHeight")))
                        name = page.split("/")[0] + ("_" + page.split("/")[-1] if "/" in page else "")
                        await browser.picture(Path(PICTURES, f"{name}-{width}-{scheme}.png"))
        said = violations(await browser.complaints())
    assert [line for line in said if "410" not in line] == []  # a link that is none is answered so


async def test_a_window_that_opens_shows_without_a_reload_and_markup_is_text(start: Start, browser: Browser) -> None:
    scene = await start()
    await browser.go(f"{scene.url}/")
    await until(browser, "document.querySelector('.live') && !document.querySelector('.live.stale')")
    await scene.break_checkout(XSS)
    await until(browser, "document.querySelector('#counting .card .window') !== null")
    text = await browser.ask("document.querySelector('#counting').textContent")
    assert XSS in text
    assert f" checkout moves traffic away from {EAST}." in text
    assert await browser.ask("document.querySelectorAll('#app img[src=x], #app script').length") == 0
    assert "owned" not in await browser.ask("document.title")
    before = float(await browser.ask("document.querySelector('#counting .fill').style.width.replace('%', '')"))
    await until(browser, f"parseFloat(document.querySelector('#counting .fill').style.width) > {before}")
    await scene.see(EAST, Health.HEALTHY)
    await until(browser, "document.querySelector('#counting') === null")
    assert violations(await browser.complaints()) == []


async def test_what_is_old_is_marked_when_the_stream_is_lost(tmp_path: Path, browser: Browser) -> None:
    async with running(settings(tmp_path)) as scene:
        await scene.break_checkout()
        await browser.go(f"{scene.url}/")
        await until(browser, "document.querySelector('#counting') !== null")
        assert await browser.ask("document.querySelector('.stalebar') === null")
    text = await until(
        browser, "document.querySelector('.stalebar') && document.querySelector('.stalebar').textContent"
    )
    assert "What you see is old" in text


async def test_all_pages_can_be_reached_by_keyboard_alone(start: Start, browser: Browser) -> None:
    scene: Scene = await start()
    await browser.go(f"{scene.url}/")
    await until(browser, "document.querySelector('nav.tabs') && document.querySelector('main')")
    await browser.press(TAB)
    assert await browser.ask("document.activeElement.textContent") == "Skip to content"
    seen = []
    for _ in range(6):
        await browser.press(TAB)
        seen.append(await browser.ask("document.activeElement.textContent"))
    assert seen == ["alert-reactor", "Now", "Map", "Actions", "Rules", "Members"]
    await browser.press(ENTER)
    assert await until(browser, "document.querySelector('h1').textContent === 'Members'")
    assert await browser.ask("document.activeElement.id") == "main"
