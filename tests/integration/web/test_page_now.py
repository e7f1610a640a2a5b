"""Text and buttons of the page in Chromium: a paused window, how to stop and undo, nothing to press while old."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.browser import Browser
from tests.integration.web.busy import BUSY, busy
from tests.integration.web.conftest import Start, bearer, running, settings
from tests.integration.web.test_page_orders import open_failover, press, sign_in

pytestmark = pytest.mark.long

PLAN = "document.querySelector('dialog[open] pre.plan')"


async def test_a_paused_rules_window_stays_in_sight_and_its_own_card_pauses_it(start: Start, browser: Browser) -> None:
    scene = await start(users=True)
    await scene.break_checkout()
    await sign_in(browser, scene, "otto")
    await browser.until("document.querySelector('#counting .v-pause') !== null")
    assert await browser.ask("document.querySelector('#counting .v-pause').textContent") == "Pause checkout"
    await press(browser, "#counting .v-pause")
    await browser.until("document.querySelector('#paused .window .fill') !== null")
    assert (await scene.get("/api/v1/status", **bearer("vera")))[1]["pauses"][0]["pattern"] == "checkout"
    assert "it takes no action" in await browser.ask("document.querySelector('#paused').textContent")
    await browser.looks("paused")
    assert browser.violations() == []


async def test_what_is_failed_over_says_how_to_undo_it_to_who_may_look_only(tmp_path: Path, browser: Browser) -> None:
    async with running(settings(tmp_path, rules=BUSY)) as scene:
        await busy(scene)
        await browser.go(f"{scene.url}/")
        await browser.until("document.querySelector('#away') && document.querySelector('#held')")
        text = " ".join((await browser.ask("document.querySelector('#away').innerText")).split())
        assert "To undo: reactor traffic failback search" in text
        assert "To undo: reactor zone failback prod-zones" in text
        held = await browser.ask("document.querySelector('#held').innerText")
        assert re.search(r"Held for (less than )?[\d.]+ s\n", held)
        assert "ago" not in held
        await browser.ask("location.hash = '#/map'")
        shares = "[...document.querySelectorAll('.flow')].find((one) => one.textContent.includes('search-west'))"
        await browser.until(f"{shares} !== undefined")
        widths = await browser.ask(
            f"[...{shares}.querySelectorAll('path')].map((one) => one.getAttribute('stroke-width'))"
        )
        assert widths == ["1.5", "25"], "the band of all of the traffic is wide, that of none is a dashed line"
        await browser.looks("flows")


async def test_a_plan_that_would_be_refused_says_so_first_and_its_button_warns(start: Start, browser: Browser) -> None:
    scene = await start(users=True)
    await scene.break_checkout()
    await sign_in(browser, scene, "otto")
    await press(browser, "#counting .v-pause")
    await browser.until("document.querySelector('#paused') !== null")
    await open_failover(browser)
    said = await browser.until("document.querySelector('dialog[open] .refused')?.innerText")
    assert "This would be refused" in said
    buttons = (
        "[...document.querySelectorAll('dialog[open] .buttons button')].map((one) => [one.className, one.innerText])"
    )
    assert (await browser.ask(buttons))[0] == ["warn", "Fail over all the same"]
    await browser.looks("refused")
    assert browser.violations() == []


async def test_nothing_can_be_pressed_while_what_is_shown_is_old(start: Start, browser: Browser) -> None:
    scene = await start(users=True)
    await scene.break_checkout()
    await sign_in(browser, scene, "otto")
    await browser.until("document.querySelector('#counting .v-pause:not([disabled])') !== null")
    await browser.ask("document.querySelector('#counting .v-pause').click()")
    await browser.until(f"{PLAN}?.textContent.length > 1")
    server = scene.app.server
    assert server is not None
    os.kill(server.pid, signal.SIGSTOP)
    try:
        await browser.until("document.querySelector('.stalebar') !== null")
        await browser.until("document.querySelector('dialog[open] .error') !== null")
        orders = "[...document.querySelectorAll('main button[class*=v-], dialog[open] button:not([type])')]"
        assert await browser.ask(f"{orders}.length > 2 && {orders}.every((one) => one.disabled)")
    finally:
        os.kill(server.pid, signal.SIGCONT)
    await browser.until("document.querySelector('dialog[open] button.primary:not([disabled])') !== null")
