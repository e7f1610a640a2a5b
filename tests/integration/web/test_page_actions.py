"""The filters of the page Actions in Chromium, and the addresses that they give."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser import Browser
from tests.integration.web.busy import BUSY, busy
from tests.integration.web.conftest import running, settings

pytestmark = pytest.mark.long

VALUES = "[...document.querySelectorAll('.filters input, .filters select')].map((one) => one.value)"
ROWS = "[...document.querySelectorAll('.list .act')].map((one) => one.innerText)"
NONE = "document.querySelector('main')?.innerText.includes('No action fits these filters.')"


def change(label: str, value: str) -> str:
    """Give the script of a person who sets a filter."""
    return (f"((field) => {{ field.value = '{value}'; field.dispatchEvent(new Event('change')); }})"
            f"([...document.querySelectorAll('.filters label')].find((one) => one.innerText.startsWith('{label}'))"
            ".querySelector('input, select'))")  # fmt: skip


async def test_filters_are_in_the_address_and_an_address_fills_the_filters(tmp_path: Path, browser: Browser) -> None:
    async with running(settings(tmp_path, rules=BUSY)) as scene:
        await busy(scene)
        await browser.go(f"{scene.url}/#/actions?rule=sea*&outcome=Done")
        rows = await browser.until(f"{ROWS}.length && {ROWS}")
        assert await browser.ask(VALUES) == ["sea*", "", "", "Done", "", ""]
        assert len(rows) == 1
        assert "search" in rows[0]
        await browser.looks("actions_filtered")
        await browser.ask(change("Outcome", "Failed"))
        await browser.until(NONE)
        assert await browser.ask("location.hash") == "#/actions?rule=sea*&outcome=Failed"
        await browser.ask(change("Outcome", ""))
        await browser.until(f"{ROWS}.length === 1")
        assert await browser.ask("location.hash") == "#/actions?rule=sea*"


async def test_a_time_is_given_in_the_browsers_zone_and_is_in_the_address_in_utc(
    tmp_path: Path, browser: Browser
) -> None:
    async with running(settings(tmp_path, rules=BUSY)) as scene:
        await busy(scene)
        await browser.travel("Asia/Kolkata")
        await browser.go(f"{scene.url}/#/actions?until=2020-01-31T12:00:00Z")
        await browser.until(NONE)
        assert (await browser.ask(VALUES))[5] == "2020-01-31T17:30"
        await browser.ask(change("Until", ""))
        await browser.until(f"{ROWS}.length > 0")
        await browser.ask(change("Since", "2020-01-31T05:30:00"))
        await browser.until("location.hash.includes('since')")
        assert await browser.ask("location.hash") == "#/actions?since=2020-01-31T00%3A00%3A00.000Z"
        await browser.until(f"{ROWS}.length > 0")
        assert "UTC+5:30" in await browser.ask("document.querySelector('footer').innerText")
        assert browser.violations() == []
