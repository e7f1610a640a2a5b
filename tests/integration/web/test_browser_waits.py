"""A wait for a page may ask only what a page that is not drawn yet can answer: on a slow machine it is not drawn."""

from __future__ import annotations

import pytest
from playwright.async_api import Route

from tests.browser import Browser

UNSURE = {
    "document.querySelector('h1').textContent === 'Members'": r"querySelector\('h1'\)\.",
    "document.querySelector('a') && document.querySelector(\"button:not([disabled])\").innerText": "button:not",
    "document.querySelector('dialog')?.querySelector('.error').textContent": r"querySelector\('.error'\)\.",
    "document.getElementById('broken').textContent.includes('x')": "getElementById",
}


async def test_a_wait_for_what_may_not_be_there_yet_is_refused(browser: Browser) -> None:
    """Also where the page would have been quick enough to answer."""
    await browser.page.set_content("<h1>Members</h1><a></a><button>b</button><dialog><p class=error>e</p></dialog>")
    for asked, named in UNSURE.items():
        with pytest.raises(ValueError, match=named):
            await browser.until(asked, within=1)


async def test_a_wait_takes_what_is_drawn_later_and_goes_on_over_a_link(browser: Browser) -> None:
    later = "setTimeout(() => { document.body.innerHTML = '<h1>late</h1>' }, 300)"
    await browser.page.set_content(f"<script>{later}</script>")
    assert await browser.until("document.querySelector('h1')?.textContent") == "late"

    async def next_page(route: Route) -> None:
        await route.fulfill(content_type="text/html", body="<h2>next</h2>")

    await browser.page.route("http://next.test/", next_page)
    await browser.ask("setTimeout(() => { location = 'http://next.test/' }, 300) && null")
    assert await browser.until("document.querySelector('h2')?.textContent") == "next"
