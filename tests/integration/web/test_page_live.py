"""The page in Chromium: each page at both widths in both colours, live, by keyboard, with markup in what is shown."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bus.messages import Health
from tests.integration.backtest.browser import Browser, browsing
from tests.integration.web.conftest import EAST, XSS, Scene, Start, running, settings

TAB, ENTER = "\ue004", "\ue007"
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


async def test_each_page_fits_its_window_and_breaks_no_policy(start: Start, browser: Browser) -> None:
    scene = await start()
    await scene.ask_for_approval()
    await scene.break_checkout()
    pages = {
        "now": ".card .window", "map": ".flow", "actions": ".filters", "rules": "table", "rules/checkout": "pre",
        "members": "table", f"target/{EAST}": ".lane",
    }  # fmt: skip
    await browser.go(f"{scene.url}/")
    for width, height in WIDTHS:
        await browser.resize(width, height)
        for scheme in ("light", "dark"):
            await browser.prefer(scheme)
            for page, part in pages.items():
                await browser.ask(f"location.hash = '#/{page}'")
                await until(browser, f"document.querySelector('{part}') !== null")
                assert await browser.ask("document.documentElement.scrollWidth") <= width, (page, width)
                assert await browser.ask("document.querySelectorAll('h1').length") == 1, page
                if PICTURES:
                    name = f"{page.replace('/', '_')}-{width}-{scheme}.png"
                    await browser.picture(Path(PICTURES, name))
    assert violations(await browser.complaints()) == []


async def test_a_window_that_opens_shows_without_a_reload_and_markup_is_text(start: Start, browser: Browser) -> None:
    scene = await start()
    await browser.go(f"{scene.url}/")
    await until(browser, "document.querySelector('.live') && !document.querySelector('.live.stale')")
    await scene.break_checkout(XSS)
    await until(browser, "document.querySelector('#counting .card .window') !== null")
    text = await browser.ask("document.querySelector('#counting').textContent")
    assert XSS in text
    assert f"Then checkout moves traffic away from {EAST}." in text
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
