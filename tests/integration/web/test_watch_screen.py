"""`reactor watch` on a terminal, on a real bus: what it shows, what its keys do, and how it ends."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import signal
import struct
import sys
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.integration.web.conftest import Scene, Start

COMMAND = "from reactor.cli.main import main; main()"
ON_TERMINAL = f"import os; os.close(os.open(os.ttyname(0), os.O_RDWR)); {COMMAND}"
"""Opening it makes it the terminal of the session, whose Ctrl-C is a signal."""
WITHIN = 120.0
COLOUR = re.compile(r"\x1b\[[0-9;]*(3[0-7]|4[0-7])[;m]")


class Watching:
    """A running `reactor watch` with its terminal."""

    def __init__(self, process: asyncio.subprocess.Process, terminal: int) -> None:
        self.process, self.terminal = process, terminal
        self.said = self.all = ""
        self._more = asyncio.Event()
        asyncio.get_running_loop().add_reader(terminal, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self.terminal, 65_536)
        except OSError:  # the other side is closed
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self.terminal)
        text = data.decode(errors="replace").replace("\r\n", "\n")
        self.said += text
        self.all += text
        self._more.set()

    async def until(self, text: str) -> None:
        """Wait until this is shown, after all that was waited for before."""
        async with asyncio.timeout(WITHIN):
            while text not in self.said:
                self._more.clear()
                await self._more.wait()
        self.said = self.said[self.said.index(text) + len(text) :]

    def press(self, keys: str) -> None:
        os.write(self.terminal, keys.encode())

    async def ended(self) -> int:
        async with asyncio.timeout(WITHIN):
            return await self.process.wait()

    def echoes(self) -> bool:
        """True if the terminal echoes, as a shell needs it."""
        return bool(termios.tcgetattr(self.terminal)[3] & termios.ECHO)


@asynccontextmanager
async def watching(scene: Scene, rules: Path, *options: str, term: str = "dumb") -> AsyncIterator[Watching]:
    """Run it in 80 columns and 24 lines, while the block runs."""
    assert scene.app.server is not None
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    settings = rules / "watch.yaml"
    settings.write_text(f"ruleFiles: [{rules / 'rules.yaml'}]\n")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ON_TERMINAL, "watch", "--config", str(settings), "--by", "vera", *options,
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env={**os.environ, "TERM": term, "REACTOR_BUS__URL": scene.app.server.url},
    )  # fmt: skip
    running = Watching(process, ours)
    try:
        yield running
    finally:
        asyncio.get_running_loop().remove_reader(ours)
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(ours)
        os.close(theirs)


async def test_it_shows_windows_and_requests_and_its_keys_approve_and_pause(start: Start, tmp_path: Path) -> None:
    scene = await start()
    await scene.ask_for_approval()
    await scene.break_checkout()
    async with watching(scene, tmp_path) as screen:
        await screen.until("APPROVALS WAITING (1)\n> pay  Approve  east/shop/TrafficSplit/pay\n    AwaitingApproval")
        await screen.until("COUNTING DOWN (1)\n  checkout  east/shop/TrafficSplit/checkout")
        await screen.until("of 5m left, unhealthy\n      service/east/shop/checkout: HTTP 503")
        screen.press("a")
        await screen.until("approve pay on east/shop/TrafficSplit/pay: ")
        screen.press("looked at it\r")
        await screen.until("Do it? y: yes, any other key: no   (reason: looked at it)")
        screen.press("y")
        await screen.until("SetWeights pay: ")
        screen.press("Pmaintenance\ry")
        await screen.until('all rules are paused by reactor as "vera": maintenance')
        screen.press("q")
        assert await screen.ended() == 0
    row = await scene.group("checkout", lambda row: row["pause"])
    assert row["pause"]["reason"] == "maintenance"


async def test_a_bus_that_stops_answering_makes_it_stale_until_it_is_back(start: Start, tmp_path: Path) -> None:
    scene = await start()
    assert scene.app.server is not None
    async with watching(scene, tmp_path) as screen:
        await screen.until("reactor watch")
        os.kill(scene.app.server.pid, signal.SIGSTOP)
        try:
            await screen.until("STALE: the bus has not answered for ")
        finally:
            os.kill(scene.app.server.pid, signal.SIGCONT)
        await scene.break_checkout()
        await screen.until("COUNTING DOWN (1)")


@pytest.mark.parametrize(("leave", "options"), [("q", ()), ("\x03", ("--no-color",))])
async def test_it_leaves_the_terminal_as_it_was(start: Start, tmp_path: Path, leave: str, options: tuple[str]) -> None:
    scene = await start()
    await scene.break_checkout()
    async with watching(scene, tmp_path, *options, term="xterm") as screen:
        await screen.until("\x1b[?1049h")
        await screen.until("COUNTING DOWN")
        assert not screen.echoes()
        await screen.until("of 5m left")
        screen.press(leave)
        await screen.until("\x1b[?1049l")
        assert await screen.ended() == 0
        assert screen.echoes()
        assert (COLOUR.search(screen.all) is None) == bool(options)


async def test_without_a_terminal_it_says_what_to_use() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", COMMAND, "watch", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    _, said = await process.communicate()
    assert process.returncode == 1
    assert said.decode() == "reactor: stdout is no terminal: use reactor status --watch\n"
