"""`reactor demo`, as a person starts it: the story, and that nothing is left of it, however it ends."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import termios
import uuid
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.browser import browsing
from tests.e2e.waiting import until_told

ROOT = Path(__file__).parents[2]
STORY_SECONDS = 180.0
"""It takes 30 s on a quiet machine."""
PROMPT_SECONDS = 30.0
COMMAND = "from reactor.cli.main import main; main()"  # what the installed script does
MARK = "REACTOR_TEST_MARK"


class Demo:
    """A running demo, and all processes that descend from it."""

    def __init__(self, process: Process, mark: str, folder: Path) -> None:
        self.process = process
        self.folder = folder
        """Folder for its temporary folder."""
        self.said = ""
        self._mark = f"{MARK}={mark}".encode()

    async def until(self, text: str) -> None:
        """Read what it prints until this comes."""
        assert self.process.stdout is not None
        async with asyncio.timeout(STORY_SECONDS):
            while text not in self.said:
                line = await self.process.stdout.readline()
                assert line, f"the demo ended before it said {text!r}:\n{self.said}"
                self.said += line.decode()

    async def end(self, within: float) -> int:
        """Read the rest, and give the exit code."""
        assert self.process.stdout is not None
        async with asyncio.timeout(within):
            self.said += (await self.process.stdout.read()).decode()
            return await self.process.wait()

    def processes(self) -> list[str]:
        """The demo's processes that still run: they inherit its environment."""
        return sorted(_marked(self._mark))

    async def gone(self, within: float) -> None:
        """Wait until no process is left."""
        try:
            async with asyncio.timeout(within):
                while self.processes():
                    await asyncio.sleep(0.05)
        except TimeoutError:
            pytest.fail(f"still there after {within:g} s: {self.processes()}")

    def files(self) -> list[Path]:
        """Files that it has left in the folder for temporary files."""
        return list(self.folder.iterdir())


def _marked(mark: bytes) -> Iterator[str]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                yield f"{process.name} {command}"
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it has just ended, or belongs to another user


@asynccontextmanager
async def demo(folder: Path, *arguments: str) -> AsyncIterator[Demo]:
    """Run `reactor demo` while the block runs."""
    mark = uuid.uuid4().hex
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", COMMAND, "demo", *arguments,
        cwd=ROOT, stdout=PIPE, stderr=STDOUT, env={**os.environ, MARK: mark, "TMPDIR": str(folder)},
    )  # fmt: skip
    running = Demo(process, mark, folder)
    try:
        yield running
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        await running.gone(PROMPT_SECONDS)


@pytest.mark.alone
async def test_a_first_run_shows_failover_and_failback_and_leaves_nothing(tmp_path: Path) -> None:
    """On a machine that does nothing else, it acts within a second of each window's end."""
    async with demo(tmp_path, "--once") as running:
        assert await running.end(STORY_SECONDS) == 0, running.said
        assert running.processes() == []
    assert running.files() == []
    first = _check_the_story(running.said, away=r"5\.\d", home=r"8\.\d")
    assert first < 20


def _check_the_story(said: str, *, away: str, home: str) -> float:
    """Look for each of its steps, in order, and after how many seconds each way ends; give when the first action was,
    in seconds after the services were up."""
    assert "\x1b" not in said  # no escape codes in a pipe
    steps = [
        r"service  checkout in east on http://127\.0\.0\.1:\d+",
        r"fault    the demo breaks checkout",
        r"probe    service/east/shop/checkout is Unhealthy \(HTTP 503",
        r"window   service/east/shop/checkout is tolerated for 5 s",
        r"service/east/shop/checkout bad: \d\.\d s of 5 s left",
        rf"action   east/shop/checkout: checkout 1 → 0, checkout-west 0 → 1, checkout-central 0 → 1, {away} s after",
        r"event    Failover: .*PrimaryUnhealthy",
        r"checkout 0/s, checkout-west \d+/s 100% ok, checkout-central \d+/s 100% ok",
        r"healed   the demo heals checkout",
        r"window   service/east/shop/checkout must stay good for 8 s",
        rf"action   east/shop/checkout: checkout 0 → 1, checkout-west 1 → 0, checkout-central 1 → 0, {home} s after",
        r"writes to the route: 2; 0 doubled, 0 early",
    ]
    assert re.search(".*".join(steps), said, re.DOTALL), said
    figures = re.search(r"first action (\S+) s after the services were up, (\S+) s after the fault\n(.*)", said)
    assert figures is not None
    assert float(figures[2]) >= 5  # never early
    assert "only between the fault and the shift" in figures[3]
    return float(figures[1])


@pytest.mark.parametrize(
    ("sent", "when"),
    [
        (signal.SIGINT, "nothing is left behind"),  # while its services start
        (signal.SIGTERM, "gateway"),  # while the reactor starts
        (signal.SIGINT, "fault"),
        (signal.SIGTERM, "window   "),
    ],
)
async def test_a_signal_ends_it_promptly_wherever_it_is(tmp_path: Path, sent: signal.Signals, when: str) -> None:
    async with demo(tmp_path, "--once") as running:
        await running.until(when)
        running.process.send_signal(sent)
        assert await running.end(PROMPT_SECONDS) == 128 + sent, running.said
        assert running.processes() == []
    assert running.files() == []
    assert "Traceback" not in running.said


async def test_a_kill_takes_all_its_processes_along_and_the_next_run_takes_its_files(tmp_path: Path) -> None:
    async with demo(tmp_path) as running:
        await running.until("window   ")
        assert len(running.processes()) == 6  # itself, three services, the gateway, nats-server
        running.process.kill()
        await running.process.wait()
        await running.gone(PROMPT_SECONDS)
    async with demo(tmp_path) as running:
        await running.until("reactor  ")
        assert len(running.files()) == 1
        running.process.send_signal(signal.SIGINT)
        await running.end(PROMPT_SECONDS)
    assert running.files() == []


@pytest.mark.long
async def test_after_the_story_it_goes_on_with_commands_that_run_as_printed_until_ctrl_c(tmp_path: Path) -> None:
    async with demo(tmp_path) as running:
        await running.until("Ctrl-C ends it.")
        _check_the_story(running.said, away=r"\d+\.\d", home=r"\d+\.\d")
        offers, running.said = _offers(running.said), ""
        await _shell(offers.pop("break the service"))
        await running.until("HTTP 503")
        await _shell(offers.pop("heal it"))
        await running.until("changed its mind in time")
        await _shell(offers.pop("let Alertmanager say it is bad"))
        await running.until("cannot be scraped")
        await _shell(offers.pop("let Alertmanager say it is over"))
        assert "checkout-failover" in await _shell(offers.pop("ask what the rule waits for"))
        assert "kind: TrafficFailover" in await _shell(offers.pop("read the rules"))
        log = offers.pop("read the reactor's log")
        assert await _shell(f"timeout 1 {log}", ends=124)
        route = offers.pop("look at the route")
        if shutil.which("kubectl"):
            assert "kind: TrafficSplit" in await _shell(route)
        assert offers == {}
        if shutil.which("chromium"):
            await running.until("breaks things")
            await _press_all_buttons(running.said)
        running.process.send_signal(signal.SIGINT)
        assert await running.end(PROMPT_SECONDS) == 0
        assert running.processes() == []
    assert running.files() == []


HOME, WEST, BOTH_OTHERS = {"checkout": 1}, {"checkout-west": 1}, {"checkout-west": 1, "checkout-central": 1}


@pytest.mark.long
@pytest.mark.timeout(600)  # two minutes on a quiet machine: an alert takes 30 s to end
async def test_each_button_does_what_it_says(tmp_path: Path) -> None:
    async with demo(tmp_path) as running, aiohttp.ClientSession() as http:
        await running.until("breaks things")
        found = re.search(r"(http://\S+)/ breaks things.* the page (http://\S+)/", running.said)
        assert found is not None, running.said

        async def asked(path: str) -> Any:
            async with http.get(f"{found[2]}/api/v1/{path}") as answer:
                return await answer.json()

        async def press(button: str) -> None:
            ours = {"X-Demo": "button", "Origin": found[1]}
            async with http.post(f"{found[1]}/api/{button}", headers=ours) as answer:
                assert answer.status < 300, await answer.text()

        async def weights(wanted: dict[str, int]) -> bool:
            [group] = (await asked("status"))["groups"]
            return {name: weight for name, weight in group["weights"].items() if weight} == wanted

        async def west_is(status: str) -> bool:
            clusters = {one["name"]: one for one in (await asked("map"))["clusters"]}
            return bool(clusters["west"]["targets"][0]["status"] == status)

        async def owners(wanted: int) -> bool:
            return len({one["owner"] for one in (await asked("members"))["partitions"]}) == wanted

        for button, moved in (("service", BOTH_OTHERS), ("slow", BOTH_OTHERS), ("zone", WEST)):
            await press(button)
            await until_told(partial(weights, moved), f"after {button} traffic goes to {moved}")
            await press("heal")
            await until_told(partial(weights, HOME), f"healed of {button}")
        await press("cluster")
        await until_told(partial(west_is, "Unhealthy"), "west is bad on the map")
        await press("service")
        await until_told(partial(weights, {"checkout-central": 1}), "all goes to central")
        await press("heal")
        await until_told(partial(west_is, "Healthy"), "west is well")
        await until_told(partial(weights, HOME), "healed of both")
        await press("reactor")
        await until_told(partial(owners, 1), "one reactor has all partitions")
        await press("heal")
        await until_told(partial(owners, 2), "two share the partitions")
        running.process.send_signal(signal.SIGINT)
        assert await running.end(PROMPT_SECONDS) == 0


async def _press_all_buttons(said: str) -> None:
    """Break everything on the page of buttons, see on the reactor's page that it is old, and heal it."""
    found = re.search(r"(http://\S+) breaks things.* the page (http://\S+)", said)
    assert found is not None, said
    async with browsing() as browser:
        await browser.go(found[1])
        await browser.until("document.querySelectorAll('#buttons button').length === 7")
        await browser.looks("demo")
        for button in ("service", "slow", "cluster", "zone", "reactor", "bus"):
            title = await browser.ask(f"document.getElementById('{button}').textContent")
            await browser.ask(f"document.getElementById('{button}').click()")
            await browser.until(f"document.getElementById('broken')?.textContent.includes({title!r})")
        await browser.go(found[2])
        await browser.until("document.querySelector('.stalebar')?.textContent.includes('What you see is old')")
        await browser.go(found[1])
        await browser.until("document.getElementById('heal') !== null")
        await browser.ask("document.getElementById('heal').click()")
        whole = "document.getElementById('broken')?.textContent === 'Nothing is broken.'"
        healed: object = await browser.until(
            f"document.getElementById('problem')?.textContent || {whole}", within=STORY_SECONDS
        )
        assert healed is True, healed
        assert browser.violations() == []


@pytest.mark.long
def test_at_80_columns_no_word_is_cut_and_no_line_of_ours_is_longer(tmp_path: Path) -> None:
    """All but addresses, which stay whole to be copied."""
    shown = _on_a_terminal(tmp_path, columns=80)
    assert list(tmp_path.iterdir()) == []
    assert "PrimaryHealthy" in shown
    words = {word for line in shown.splitlines() for word in line.split()}
    assert {"checkout-central", "checkout-west"} <= {word.strip(",") for word in words}
    assert not [word for word in words if "…" in word]
    assert [
        line for line in shown.splitlines() if len(line) > 80 and "://" not in line and str(tmp_path) not in line
    ] == []


def _on_a_terminal(folder: Path, *, columns: int) -> str:
    """Output of `reactor demo --once` on a terminal that wide, without sequences that only move the cursor."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm", "TMPDIR": str(folder)}
    environment.pop("COLUMNS", None)
    child = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "demo", "--once"], cwd=ROOT, env=environment, stdout=its, stderr=its
    )
    os.close(its)
    said = b""
    with contextlib.suppress(OSError):  # EIO: the child has closed its side
        while part := os.read(ours, 65_536):
            said += part
    os.close(ours)
    assert child.wait() in (0, 1), said.decode()  # 1: not as told, which is for another test to judge
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode()).replace("\r", "\n")
    return shown.partition("\nreactor demo:")[0]  # then the reason why it was not as told


def _offers(said: str) -> dict[str, str]:
    """The commands as they were printed, by what they are for."""
    told = said.partition("Try, in another terminal:\n")[2].partition("Ctrl-C ends it.")[0]
    parts = [part.partition("\n") for part in told.split("  # ")[1:]]
    return {what: command.strip() for what, _, command in parts}


async def _shell(command: str, *, ends: int = 0) -> str:
    """Carry out a command as it was printed, and give what it says."""
    process = await asyncio.create_subprocess_shell(command, stdout=PIPE, stderr=STDOUT)
    said, _ = await process.communicate()
    assert process.returncode == ends, f"{command}: {said.decode()}"
    return said.decode()


async def test_help_says_what_it_is(tmp_path: Path) -> None:
    async with demo(tmp_path, "--help") as running:
        assert await running.end(PROMPT_SECONDS) == 0
    assert "It needs no cluster and leaves nothing behind" in " ".join(running.said.split())
    assert "--once" in running.said
