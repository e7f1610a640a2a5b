"""A zone on the page, over the whole service: it is isolated, looked at and brought back by a person in Chromium."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser import ENTER, Browser, browsing
from tests.e2e.zone_log import check_only_the_sick_zone
from tests.e2e.zone_service import RULE, STEPS, zoned
from tests.e2e.zone_world import SICK

TOKEN = "token-of-otto-0123456789"
MAIN = "document.querySelector('main').textContent"
PILLS = "[...document.querySelectorAll('main .pill')].map((one) => one.textContent)"
ACTS = "[...document.querySelectorAll('.act a')].map((one) => one.textContent)"


@pytest.mark.timeout(240)
async def test_a_person_isolates_a_zone_sees_each_step_and_that_it_is_away_and_brings_it_back(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    users = [{"name": "otto", "role": "operate", "tokenFile": str(tmp_path / "token")}]
    async with zoned(tmp_path, web={"listen": "127.0.0.1:0", "users": users}) as prod, browsing() as browser:
        before = prod.world.picture()
        await browser.go(f"{await prod.service.page()}/#/rules/{RULE}")
        await browser.until("document.querySelector('input[name=token]') !== null")
        await browser.ask("document.querySelector('input[name=token]').focus()")
        await browser.press(*TOKEN, ENTER)
        await browser.until("document.querySelector('button.v-isolate-zone') !== null")
        assert "Watching" in await browser.ask(PILLS)
        await browser.ask("document.querySelector('button.v-isolate-zone').click()")
        await browser.page.select_option("dialog[open] select[name=zone]", SICK)
        await browser.until("document.querySelector('dialog[open] pre.plan')?.textContent.includes('Evacuate')")
        plan = "document.querySelector('dialog[open] pre.plan')"
        assert await browser.ask(f"{plan}.scrollHeight <= {plan}.clientHeight"), "guards and steps: nothing is cut"
        await browser.looks("isolate-zone")
        await _say(browser, "INC-7")
        await prod.isolated()

        await browser.until(f"{PILLS}.includes('isolated')")
        shown = await browser.ask(PILLS)
        assert "Watching" not in shown, "an isolated zone is not as it should be"
        assert "out of service" in shown, "nor is its health shown as if it served"
        await browser.until(f"{ACTS}.length >= {len(STEPS)}")
        shown = await browser.ask(ACTS)
        assert shown == [f"ZoneStep: {step} of {SICK}" for step in reversed(STEPS)], (
            "each once, however often it is tried"
        )
        assert await browser.ask(f"{PILLS}.filter((one) => one === 'Failed')") == [], "what goes on has not failed"
        await browser.looks("zone-isolated")
        await browser.ask("document.querySelector('.act a').click()")
        title = await browser.until("document.querySelector('.chain') && document.querySelector('h1')?.textContent")
        assert title.startswith("ZoneStep: ")
        for page, part in {"now": "#away .card", "map": ".zones .isolated"}.items():
            await browser.ask(f"location.hash = '#/{page}'")
            await browser.until(f"document.querySelector('{part}') !== null")
            assert SICK in await browser.ask(f"document.querySelector('{part}').textContent")
            assert "Watching" not in await browser.ask(PILLS)
            assert page == "map" or "is out of service: Failover Done" in await browser.ask(MAIN)
            await browser.looks(f"zone-{page}")

        await browser.ask("location.hash = '#/now'")
        await browser.until("document.querySelector('button.v-failback-zone') !== null")
        await browser.ask("document.querySelector('button.v-failback-zone').click()")
        await browser.until("document.querySelector('dialog[open] button.primary:not([disabled])') !== null")
        await browser.looks("failback-zone")
        await _say(browser, "well again")
        await prod.over()
        await browser.until("document.querySelector('#away') === null")
        assert browser.violations() == []
        assert prod.world.picture() == before
        check_only_the_sick_zone(prod.world)


async def _say(browser: Browser, reason: str) -> None:
    """Give a reason in the form that is open, and send it; once more where the plan has changed meanwhile."""
    await browser.ask("document.querySelector('dialog[open] input[name=comment]').focus()")
    await browser.press(*reason)
    closed = "document.querySelector('dialog[open]') === null"
    while not await browser.ask(closed):
        await browser.until("document.querySelector('dialog[open] button.primary:not([disabled])') !== null")
        await browser.press(ENTER)
        refused = "document.querySelector('dialog[open] .error')?.textContent"
        said = await browser.until(f"{closed} || {refused}")
        assert said is True or "plan" in said, said
