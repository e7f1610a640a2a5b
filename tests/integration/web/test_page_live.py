"""The page in Chromium: each page at both widths in both colours, live, by keyboard, with markup in what is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from bus.messages import Health
from tests.browser import ENTER, TAB, Browser
from tests.integration.web.busy import BUSY, busy
from tests.integration.web.conftest import EAST, WEST, XSS, Scene, Start, running, settings


@pytest.mark.long
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
        for page, part in pages.items():
            await browser.ask(f"location.hash = '#/{page}'")
            await browser.until(f"document.querySelector('{part}') !== null")
            assert await browser.ask("document.querySelectorAll('h1').length") == 1, page
            await browser.looks(page.split("/")[0] + ("_" + page.split("/")[-1] if "/" in page else ""))
        await browser.ask("location.hash = '#/rules'")
        table = await browser.until("document.querySelector('.wide') && [document.querySelector('.wide')]"
                                    ".map((one) => [one.scrollWidth, one.clientWidth])[0]")  # fmt: skip
        assert table[0] <= table[1], "the states are in view on a telephone"
        assert browser.violations() == []


async def test_a_window_that_opens_shows_without_a_reload_and_markup_is_text(start: Start, browser: Browser) -> None:
    scene = await start()
    await browser.go(f"{scene.url}/")
    await browser.until("document.querySelector('.live') && !document.querySelector('.live.stale')")
    await scene.break_checkout(XSS)
    await browser.until("document.querySelector('#counting .card .window') !== null")
    text = await browser.ask("document.querySelector('#counting').textContent")
    assert XSS in text
    assert f" checkout moves traffic away from {EAST} to checkout-west." in text
    assert await browser.ask("document.querySelectorAll('#app img[src=x], #app script').length") == 0
    assert "owned" not in await browser.ask("document.title")
    before = float(await browser.ask("document.querySelector('#counting .fill').style.width.replace('%', '')"))
    await browser.until(f"parseFloat(document.querySelector('#counting .fill')?.style.width) > {before}")
    await scene.see(EAST, Health.HEALTHY)
    await browser.until("document.querySelector('#counting') === null")
    assert browser.violations() == []


async def test_a_reactor_that_watches_nothing_does_not_look_healthy(start: Start, browser: Browser) -> None:
    scene = await start()
    await browser.go(f"{scene.url}/")
    text = await browser.until("document.querySelector('#unfed')?.textContent")
    assert "Nothing is watched" in text
    assert "All quiet" not in await browser.ask("document.querySelector('main').textContent")
    await browser.looks("unfed")
    await scene.list_route("checkout")
    await scene.see(WEST, Health.HEALTHY)
    await scene.see(EAST, Health.HEALTHY)
    await browser.until("document.querySelector('.calm') !== null")
    assert await browser.ask("document.querySelector('#unfed') === null")


async def test_what_is_old_is_marked_when_the_stream_is_lost(tmp_path: Path, browser: Browser) -> None:
    async with running(settings(tmp_path)) as scene:
        await scene.break_checkout()
        await browser.go(f"{scene.url}/")
        await browser.until("document.querySelector('#counting') !== null")
        assert await browser.ask("document.querySelector('.stalebar') === null")
    text = await browser.until("document.querySelector('.stalebar')?.textContent")
    assert "What you see is old" in text


async def test_all_pages_can_be_reached_by_keyboard_alone(start: Start, browser: Browser) -> None:
    scene: Scene = await start()
    await browser.go(f"{scene.url}/")
    await browser.until("document.querySelector('nav.tabs') && document.querySelector('main')")
    await browser.press(TAB)
    assert await browser.ask("document.activeElement.textContent") == "Skip to content"
    seen = []
    for _ in range(6):
        await browser.press(TAB)
        seen.append(await browser.ask("document.activeElement.textContent"))
    assert seen == ["alert-reactor", "Now", "Map", "Actions", "Rules", "Members"]
    await browser.press(ENTER)
    assert await browser.until("document.querySelector('h1')?.textContent === 'Members'")
    assert await browser.ask("document.activeElement.id") == "main"
