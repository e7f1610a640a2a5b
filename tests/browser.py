"""Debian's Chromium without a window, driven by Playwright: what a reader's browser shows of a page."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import axe_core_python
import pytest
from playwright.async_api import ConsoleMessage, Error, Page, Route, async_playwright

TAB, ENTER, ESCAPE = "Tab", "Enter", "Escape"
AXE = Path(axe_core_python.__file__).with_name("axe.min.js").read_text()
Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
SIZES = ((1280, 900), (390, 844))
PICTURES = os.environ.get("REACTOR_SCREENSHOTS")
"""A folder for the pictures of all pages, for people to look at."""
MISSING = "no chromium on PATH: apt-get install chromium"
PATIENCE = 60.0
"""Seconds: a browser starts slowly on a busy machine."""
ASK_SECONDS = 0.1
"""Each question wakes the driver, the browser and the page, while the reactor beside them works."""
_UNSURE = re.compile(r"""(querySelector|getElementById)\(('[^']*'|"[^"]*"|`[^`]*`)\)\.""")
"""Pattern of a call that fails on a page that is not drawn yet, such as `document.querySelector('h1').textContent`."""
# --no-sandbox: root has none. The rest: no test may depend on what a browser asks for by itself.
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync")  # fmt: skip


class Browser:
    """One page. `complaints` are the warnings and errors that the browser has logged so far."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.set_default_timeout(PATIENCE * 1000)
        page.on("console", self._logged)
        page.on("pageerror", lambda error: self.complaints.append(f"not caught: {error}"))

    async def go(self, url: str) -> None:
        """Open a page and wait until it is loaded."""
        await self.page.goto(url)

    async def press(self, *keys: str) -> None:
        """Press and release these keys, one after the other."""
        for key in keys:
            await self.page.keyboard.press(key)

    async def ask(self, expression: str) -> Any:
        """Give what an expression is, in the page; a promise is awaited."""
        return await self.page.evaluate(expression)

    async def until(self, expression: str, within: float = PATIENCE) -> Any:
        """Wait until an expression of the page holds, for so many seconds at most; give what it is then.

        What is waited for may not be there yet: `querySelector('h1')?.textContent`. Without `?` it is a
        ValueError, also where the page happens to be quick.
        """
        if unsure := _UNSURE.search(expression):
            raise ValueError(f"{unsure[0]} fails while the page is not drawn yet: write {unsure[0][:-1]}?.")
        # Playwright's own way to wait evaluates in the page by itself, which the page's policy forbids.
        async with asyncio.timeout(within):
            while not (value := await self._asked(expression)):
                await asyncio.sleep(ASK_SECONDS)
        return value

    async def _asked(self, expression: str) -> Any:
        try:
            return await self.ask(expression)
        except Error as error:
            if "Execution context was destroyed" not in error.message:
                raise
            return None  # a link was followed: the page that was asked is gone, the next one is not there yet

    async def resize(self, width: int, height: int) -> None:
        """Make the window as large."""
        await self.page.set_viewport_size({"width": width, "height": height})

    async def prefer(self, scheme: Scheme) -> None:
        """Set what the reader's system says."""
        await self.page.emulate_media(color_scheme=scheme)

    async def travel(self, zone: str) -> None:
        """Set the time zone of the reader, as `Asia/Kolkata`."""
        session = await self.page.context.new_cdp_session(self.page)
        await session.send("Emulation.setTimezoneOverride", {"timezoneId": zone})

    async def picture(self, file: Path, *, whole: bool = True) -> None:
        """Write the page to a PNG file: the whole of it, or what is in the window."""
        await self.page.screenshot(path=file, full_page=whole)

    async def faults(self) -> list[str]:
        """Give what axe finds wrong with the page for people who see, hear or move otherwise."""
        if not await self.ask("typeof axe === 'object'"):
            await self.ask(f"{AXE}\n;true")
        found, passed = await self.ask("axe.run().then((all) => [all.violations, all.passes.length])")
        assert passed > 10  # it has looked
        return [f"{one['id']}: {node['target']} {node['failureSummary']}" for one in found for node in one["nodes"]]

    async def looks(self, name: str) -> None:
        """Look at the page on a desk and on a telephone, light and dark: it fits, and axe finds nothing."""
        for width, height in SIZES:
            await self.resize(width, height)
            for scheme in SCHEMES:
                await self.prefer(scheme)
                assert await self.ask("document.documentElement.scrollWidth") <= width, (name, width)
                found = await self.faults()
                assert found == [], (name, width, scheme, found)
                if PICTURES:
                    whole = await self.ask("document.querySelector('dialog[open]') === null")
                    await self.picture(Path(PICTURES, f"{name}-{width}-{scheme}.png"), whole=whole)

    def violations(self) -> list[str]:
        """Give what the page's policy for content forbade, and what its scripts did not catch."""
        signs = ("Content Security Policy", "Trusted", "not caught")
        return [line for line in self.complaints if any(sign in line for sign in signs)]

    def _logged(self, message: ConsoleMessage) -> None:
        if message.type in ("warning", "error"):
            self.complaints.append(message.text)


async def lost(route: Route) -> None:
    """Let a request find no answer: for `page.route`."""
    await route.abort()


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    """Start Chromium while the block runs.

    Where it is not installed the test is skipped. It fails if REACTOR_REQUIRE_BROWSER is set: CI needs the pictures.
    """
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        if os.environ.get("REACTOR_REQUIRE_BROWSER"):
            pytest.fail(f"{MISSING} (REACTOR_REQUIRE_BROWSER is set)", pytrace=False)
        pytest.skip(MISSING)
    async with async_playwright() as driver:
        running = await driver.chromium.launch(executable_path=chromium, args=FLAGS, timeout=PATIENCE * 1000)
        try:
            yield Browser(await running.new_page())
        finally:
            await running.close()
