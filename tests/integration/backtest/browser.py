"""A real browser, headless: as much of the WebDriver protocol as looking at one page takes."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import re
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.ports import free_port

STARTED = re.compile(rb"started successfully on port (\d+)")
PATIENCE = 60.0
"""Seconds: a browser starts slowly on a busy machine."""


class Browser:
    """One session of chromedriver."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session, self._url = session, url

    async def show(self, file: Path) -> None:
        """Open a page and wait until it is loaded."""
        await self._post("url", {"url": file.as_uri()})

    async def go(self, url: str) -> None:
        """Open the page of a server and wait until it is loaded."""
        await self._post("url", {"url": url})

    async def press(self, *keys: str) -> None:
        """Press and release these keys, one after the other: "\ue004" is Tab, "\ue007" Enter."""
        strokes = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        await self._post("actions", {"actions": [{"type": "key", "id": "keyboard", "actions": strokes}]})

    async def picture(self, file: Path) -> None:
        """Write what is in the window to a PNG file."""
        await asyncio.to_thread(file.parent.mkdir, parents=True, exist_ok=True)
        async with self._session.get(f"{self._url}/screenshot") as answer:
            file.write_bytes(base64.b64decode((await answer.json())["value"]))

    async def ask(self, script: str) -> Any:
        """Give what an expression is, in the page. The page's own policy allows no script; this comes from outside."""
        return await self._post("execute/sync", {"script": f"return {script}", "args": []})

    async def later(self, script: str) -> Any:
        """Run a script whose last argument is to be called with what it gives."""
        return await self._post("execute/async", {"script": script, "args": []})

    async def resize(self, width: int, height: int) -> None:
        """Make the window as large."""
        await self._devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                             mobile=False)  # fmt: skip

    async def prefer(self, scheme: str) -> None:
        """`light` or `dark`: what the reader's system says."""
        await self._devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    async def complaints(self) -> list[str]:
        """Give what the browser has logged: what a policy forbade, what was not found."""
        return [entry["message"] for entry in await self._post("se/log", {"type": "browser"})]

    async def _devtools(self, command: str, **params: Any) -> Any:
        return await self._post("goog/cdp/execute", {"cmd": command, "params": params})

    async def _post(self, what: str, body: dict[str, Any]) -> Any:
        async with self._session.post(f"{self._url}/{what}", json=body) as answer:
            value = (await answer.json())["value"]
            assert answer.status == 200, value
            return value


@asynccontextmanager
async def browsing(folder: Path) -> AsyncIterator[Browser]:
    """Start Chromium with its profile in this folder. Skips the test where it is not installed."""
    driver, chromium = shutil.which("chromedriver"), shutil.which("chromium") or shutil.which("google-chrome")
    if driver is None or chromium is None:
        pytest.skip("no chromium with its chromedriver on PATH: apt-get install chromium chromium-driver")
    # In a group of its own: a browser that outlives its driver would hold the driver's output open, and a test that
    # fails would hang.
    process = await asyncio.create_subprocess_exec(
        driver, f"--port={free_port()}", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )  # fmt: skip
    try:
        async with aiohttp.ClientSession() as session:
            url = await _begun(process, session, chromium, folder)
            try:
                yield Browser(session, url)
            finally:
                await session.delete(url)  # which ends Chromium
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def _begun(
    process: asyncio.subprocess.Process, session: aiohttp.ClientSession, chromium: str, folder: Path
) -> str:
    """Give the URL of a new session."""
    args = ["--headless=new", "--disable-gpu", f"--user-data-dir={folder}"]
    args += ["--no-sandbox"] if os.geteuid() == 0 else []  # root has none
    options = {
        "goog:chromeOptions": {"binary": chromium, "args": args},
        "goog:loggingPrefs": {"browser": "ALL"},
    }
    async with asyncio.timeout(PATIENCE):
        base = f"http://127.0.0.1:{await _port(process)}/session"
        async with session.post(base, json={"capabilities": {"alwaysMatch": options}}) as answer:
            value = (await answer.json())["value"]
            assert answer.status == 200, value
            return f"{base}/{value['sessionId']}"


async def _port(process: asyncio.subprocess.Process) -> int:
    assert process.stdout is not None
    said = []
    async for line in process.stdout:
        if found := STARTED.search(line):
            return int(found[1])
        said.append(line.decode(errors="replace"))
    raise AssertionError(f"chromedriver ended at its start: {''.join(said)}")
