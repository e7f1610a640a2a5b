"""Approving, pausing and resuming in Chromium, as a person does it who has signed in."""

from __future__ import annotations

import asyncio

from bus.topology import GROUPS
from rules.engine.group_codec import load_group
from rules.engine.pauses import PAUSES
from tests.browser import ENTER, Browser
from tests.integration.web.conftest import Scene, Start, bearer, token


async def open_failover(browser: Browser) -> None:
    """Press *Fail over* on the page of the rule: its plan opens."""
    await browser.ask("location.hash = '#/rules/checkout'")
    await browser.until("document.querySelector('button.v-failover-traffic') !== null")
    await browser.ask("document.querySelector('button.v-failover-traffic').click()")


async def sign_in(browser: Browser, scene: Scene, name: str) -> None:
    await browser.go(f"{scene.url}/")
    await browser.until("document.querySelector('input[name=token]') !== null")
    await browser.ask("document.querySelector('input[name=token]').focus()")
    await browser.press(*token(name), ENTER)
    await browser.until("document.querySelector('.live') !== null")


async def press(browser: Browser, button: str) -> None:
    """Press a button of the page that asks for a reason, give one, and send it with Enter."""
    await browser.until(f"document.querySelector('{button}') !== null")
    await browser.ask(f"document.querySelector('{button}').click()")
    await browser.until("document.querySelector('dialog[open]') !== null")
    await browser.until("document.querySelector('dialog[open] button.primary:not([disabled])') !== null")
    await browser.ask("document.querySelector('dialog[open] input[name=comment]').focus()")
    await browser.press(*"checked", ENTER)


async def test_an_approval_that_is_given_on_the_page_lets_the_rule_act(start: Start, browser: Browser) -> None:
    scene = await start(users=True)
    await scene.ask_for_approval()
    await sign_in(browser, scene, "anna")
    await browser.until("document.querySelector('#held button') !== null")
    await browser.looks("held")
    assert await browser.ask("document.querySelector('button.v-pause') === null")  # that is for operators
    await press(browser, "#held button.v-approve")
    await browser.until("document.querySelector('.act')?.textContent.includes('anna') === true")
    assert browser.violations() == []


async def test_all_rules_are_paused_and_resumed_on_the_page(start: Start, browser: Browser) -> None:
    scene = await start(users=True)
    await scene.break_checkout()
    await sign_in(browser, scene, "otto")
    await press(browser, "button.v-pause")
    await browser.until("document.querySelector('.paused') !== null")
    assert 'as "otto"' in await browser.ask("document.querySelector('.paused').textContent")
    partitions = scene.app.settings.bus.partitions
    async with asyncio.timeout(60):  # each partition stores the pause
        while partitions > sum(
            load_group(entry.value).rule == PAUSES for entry in await scene.app.bus.store(GROUPS).entries("*.group.>")
        ):
            await asyncio.sleep(0.05)
    assert len((await scene.get("/api/v1/status", **bearer("vera")))[1]["pauses"]) == 1
    assert await browser.ask("document.querySelectorAll('.paused').length") == 1
    await press(browser, ".paused button.v-resume")
    async with asyncio.timeout(60):
        await browser.until("document.querySelector('.paused') === null")
    assert browser.violations() == []


async def test_traffic_is_moved_by_hand_after_its_plan_was_shown(start: Start, browser: Browser) -> None:
    scene = await start(users=True)
    await scene.break_checkout()
    await sign_in(browser, scene, "otto")
    await open_failover(browser)
    plan = "document.querySelector('dialog[open] pre.plan')?.textContent"
    assert await browser.until(f"{plan}?.includes('→') && {plan}") == (
        "east/shop/TrafficSplit/checkout: checkout=1 checkout-west=0 → checkout=0 checkout-west=1"
    )
    await browser.looks("failover")
    await browser.ask("document.querySelector('dialog[open] input[name=comment]').focus()")
    await browser.press(*"drill", ENTER)
    await browser.until("document.querySelector('.answer')?.textContent.includes('followed, until it is released')")
    said = await browser.until("document.querySelector('main')?.textContent.match(/Moved by hand by.*?drill/)?.[0]")
    assert 'as "otto"' in said
    await browser.looks("by-hand")
    assert browser.violations() == []


async def test_what_is_typed_stays_while_the_page_is_drawn_again(start: Start, browser: Browser) -> None:
    scene = await start(users=True)
    await scene.break_checkout()
    await sign_in(browser, scene, "otto")
    await browser.until("document.querySelector('button.v-pause') !== null")
    await browser.ask("document.querySelector('button.v-pause').click()")
    await browser.until("document.querySelector('dialog[open] input[name=rule]') !== null")
    await browser.ask("document.querySelector('dialog[open] input[name=rule]').focus()")
    await browser.press(*"checkout")
    drawn = "document.querySelector('#counting .fill')?.style.width"
    before = await browser.until(drawn)
    await browser.until(f"![undefined, '{before}'].includes({drawn})")
    assert await browser.ask("document.querySelector('dialog[open] input[name=rule]').value") == "checkout*"
