"""The forms of the page in Chromium: each is looked at when open, and keeps what was typed when a request fails."""

from __future__ import annotations

import pytest
from playwright.async_api import Route

from tests.browser import ENTER, ESCAPE, TAB, Browser, lost
from tests.integration.web.conftest import Scene, Start, token
from tests.integration.web.test_page_orders import press, sign_in

OPEN = "document.querySelector('dialog[open]')"
TYPED = f"{OPEN}.querySelector('input[name=comment]').value"


async def answered_by_a_proxy(route: Route) -> None:
    await route.fulfill(status=502, content_type="text/html", body="<h1>Bad Gateway</h1>")


@pytest.mark.long
async def test_each_form_when_open_fits_breaks_no_policy_and_can_be_used_by_all(start: Start, browser: Browser) -> None:
    scene: Scene = await start(users=True)
    await scene.ask_for_approval()
    await scene.break_checkout()
    await browser.go(f"{scene.url}/")
    await browser.until("document.querySelector('input[name=token]') !== null")
    await browser.ask("document.querySelector('input[name=token]').focus()")
    await browser.press(*"wrong", ENTER)
    await browser.until("document.querySelector('.error') !== null")
    await browser.looks("sign-in")
    await sign_in(browser, scene, "otto")
    for verb in ("approve", "reject", "pause"):
        await _look(browser, verb)
    await press(browser, "button.v-pause")
    await browser.until("document.querySelector('button.v-resume') !== null")
    await _look(browser, "resume")
    await browser.ask("location.hash = '#/rules/checkout'")
    for verb in ("failover-traffic", "failback-traffic", "release-traffic", "pause"):
        await _look(browser, verb)
    assert browser.violations() == []


async def _look(browser: Browser, verb: str) -> None:
    """Open a form, wait for its plan, look at it and close it."""
    await browser.until(f"document.querySelector('button.v-{verb}') !== null")
    await browser.ask(f"document.querySelector('button.v-{verb}').click()")
    await browser.until(f"{OPEN}?.querySelector('.buttons button:is(.primary, .warn):not([disabled])')")
    await browser.looks(f"form-{verb}")
    await browser.ask(f"{OPEN}.close()")


async def test_a_form_keeps_what_was_typed_when_its_request_fails_and_sends_it_then(
    start: Start, browser: Browser
) -> None:
    scene = await start(users=True)
    await scene.break_checkout()
    await sign_in(browser, scene, "otto")
    for failing, said in ((lost, "did not answer"), (answered_by_a_proxy, "502")):
        await browser.page.route("**/api/v1/commands/*", failing)
        await browser.until("document.querySelector('button.v-pause') !== null")
        await press(browser, "button.v-pause")
        await browser.until(f"{OPEN}?.querySelector('.error')?.textContent.includes('{said}')")
        assert await browser.ask(TYPED) == "checked"
        await browser.page.unroute("**/api/v1/commands/*")
        await browser.ask(f"{OPEN}.querySelector('form').reset() || {OPEN}.close()")
    await browser.page.route("**/api/v1/commands/*", lost)
    await press(browser, "button.v-pause")
    await browser.until("document.querySelector('dialog[open] .error') !== null")
    await browser.page.unroute("**/api/v1/commands/*")
    await browser.until(f"{OPEN}?.querySelector('button.primary:not([disabled])')")
    await browser.ask(f"{OPEN}.querySelector('button.primary').click()")
    text = await browser.until("document.querySelector('.paused')?.textContent")
    assert "checked" in text


async def test_a_person_signs_in_and_approves_by_keyboard_alone(start: Start, browser: Browser) -> None:
    scene = await start(users=True)
    await scene.ask_for_approval()
    await browser.go(f"{scene.url}/")
    await browser.until("document.activeElement?.name === 'token'")
    await browser.press(*token("anna"), ENTER)
    await browser.until("document.querySelector('#held button.v-approve') !== null")
    for _ in range(40):
        await browser.press(TAB)
        if await browser.ask("document.activeElement.matches('#held button.v-approve')"):
            break
    await browser.press(ENTER)
    await browser.until(f"{OPEN} !== null && document.activeElement.name === 'comment'")
    await browser.press(ESCAPE)
    await browser.until(f"{OPEN} === null && document.activeElement.matches('button.v-approve')")
    await browser.press(ENTER)
    await browser.until(f"{OPEN} !== null && document.activeElement.name === 'comment'")
    await browser.press(*"checked", ENTER)
    await browser.until("document.querySelector('.act')?.textContent.includes('anna')")
    assert browser.violations() == []
