"""The whole reactor as its users run it: a process of its own, driven by its settings file, heard through HTTP."""

from __future__ import annotations

import io
import json
import os
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from bus.errors import BusError
from bus.jetstream import JetStreamBus
from bus.topology import GROUPS
from reactor.cli.main import main
from reactor.runtime.failpoints import ENVIRONMENT
from rules.core.group import Group
from rules.engine.group_codec import load_group
from rules.summary import route_of
from tests.e2e import wrong_clock
from tests.e2e.forked import Forked, fork
from tests.e2e.processes import Child
from tests.e2e.waiting import WAITING, KeptOpen, until, until_told

ROOT = Path(__file__).parents[2]
LISTENS = re.compile(r"(?:webhooks on (http://[\d.:]+)/v1/alerts/<source>, )?health on (http://[\d.:]+)")
PAGE = re.compile(r"; page on (http://[\d.:]+)")
METRIC = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')
STATUS_SECONDS = 30.0


def environment() -> dict[str, str]:
    """Give the environment: ours, without settings that would change what is tested."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("REACTOR_")}
    return clean | {"PYTHONPATH": str(ROOT)}


class Reactor(Child):
    """One `reactor …`, whose start does not wait for its imports."""

    def __init__(
        self, name: str, words: Sequence[str], folder: Path, *, failpoint: str = "", program: Callable[[], None] = main
    ) -> None:
        super().__init__(name, words, folder)
        self.failpoint = failpoint
        """From its next start on; empty: none."""
        self._program = program

    async def _begun(self) -> Forked:
        failing = {ENVIRONMENT: self.failpoint} if self.failpoint else {}
        return await fork(self._program, self._argv, self.folder, environment() | failing, self.log)


class Service(Reactor):
    """One `reactor run`."""

    def __init__(
        self, folder: Path, *, rules: str, settings: Mapping[str, Any], name: str = "reactor",
        failpoint: str = "", clock_wrong_by: float = 0,
    ) -> None:  # fmt: skip
        """`settings`: what the settings file says beside the rules, an embedded bus and a free port.

        `clock_wrong_by`: how many seconds its wall clock is ahead.
        """
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "rules.yaml").write_text(rules, encoding="utf-8")
        self.config = folder / "reactor.yaml"
        own: dict[str, Any] = {
            "ruleFiles": [str(folder / "rules.yaml")], "receiver": {"listen": "127.0.0.1:0"},
            "bus": {"store": str(folder / "nats")},
        }  # fmt: skip
        self.config.write_text(yaml.safe_dump(own | dict(settings)), encoding="utf-8")
        self.url = ""
        """Base URL of its receiver, or of health alone without one; another port after each start."""
        self.health_url = ""
        self._bus_url = own["bus"] | settings.get("bus", {})
        words = ["run", "--config", str(self.config), *(["--roles", "all,web"] if "web" in settings else [])]
        if clock_wrong_by:
            super().__init__(name, [str(clock_wrong_by), *words], folder, program=wrong_clock.main)
        else:
            super().__init__(name, words, folder, failpoint=failpoint)

    async def start(self) -> None:
        self.url = ""
        self._read = self.log.stat().st_size if self.log.exists() else 0
        await super().start()

    async def ready(self) -> None:
        self.url = await until(self._listens, f"{self.name} says where it listens")
        await until_told(self.is_ready, f"{self.name} is ready")

    def _listens(self) -> str:
        said = self.log.read_bytes()[self._read :].decode(errors="replace")
        assert self.running, f"{self.name} ended at its start:\n{said[-3000:]}"
        found = LISTENS.search(said)
        self.health_url = found[2] if found else ""
        return found[1] or found[2] if found else ""

    async def page(self) -> str:
        """URL of its page: `settings` have `web`."""
        found = await until(lambda: PAGE.search(self.log.read_text(errors="replace")), f"{self.name} has a page")
        return found[1]

    async def is_ready(self) -> bool:
        """True if /readyz answers 200."""
        async with aiohttp.ClientSession() as session, session.get(f"{self.url}/readyz") as answer:
            return answer.status == 200

    async def post(self, raw: bytes, *, to: str = "am", kind: str = "application/json") -> int:
        """Post as Alertmanager does, and give the code. Raises aiohttp.ClientError where no server answers."""
        headers = {"Content-Type": kind, "User-Agent": "Alertmanager/0.25.0"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                f"{self.url}/v1/alerts/{to}", data=io.BytesIO(raw), headers=headers, allow_redirects=False
            ) as answer,
        ):
            await answer.read()
            return answer.status

    async def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric over all its series with these labels."""
        async with aiohttp.ClientSession() as session, session.get(f"{self.url}/metrics") as answer:
            text = await answer.text()
        return sum(
            float(found[3])
            for found in METRIC.finditer(text)
            if found[1] == name and labels.items() <= dict(LABEL.findall(found[2] or "")).items()
        )

    @property
    def bus_url(self) -> str | list[str]:
        """URL of its bus."""
        url: str | list[str] | None = self._bus_url.get("url")
        if url:
            return url
        return (Path(self._bus_url["store"]) / "url").read_text("utf-8")

    async def groups(self) -> list[Group]:
        """Groups that its deciders have stored, as `reactor status` reads them, without a process for each look.

        While a test waits, looks share a connection: to connect takes four times as long as to look.
        """
        kept = WAITING.get() or KeptOpen()
        try:
            url = self.bus_url
            bus = await kept.of(str(url), lambda: JetStreamBus.connect(url, name="test", patience=timedelta(seconds=3)))
            groups = [load_group(entry.value) for entry in await bus.store(GROUPS).entries("*.group.>")]
        except (BusError, OSError):
            await kept.close()
            return []
        if WAITING.get() is None:
            await kept.close()
        return groups

    async def settled(self, count: int) -> list[Group]:
        """Wait until it knows so many groups, with the health of all their members: its first picture of the world."""

        async def all_known() -> list[Group]:
            known = [one for one in await self.groups() if route_of(one) and one.members and _all_settled(one)]
            return known if len(known) >= count else []

        return await until_told(all_known, f"{self.name} knows {count} routes and how their backends are")

    async def printed(self, *words: str) -> str:
        """Output of a command about its bus, on both channels."""
        return (await self.answered(*words))[1]

    async def answered(self, *words: str, config: Path | None = None) -> tuple[int, str]:
        """A command's exit code, and what it prints. `config`: another settings file than the service's own."""
        child = Reactor(words[0], [*words, "--config", str(config or self.config)], self.folder)
        child.log.unlink(missing_ok=True)
        async with child:
            await until(lambda: not child.running, f"reactor {words[0]} ends", within=STATUS_SECONDS)
            return child.process.returncode or 0, child.log.read_text()

    async def status(self) -> list[dict[str, Any]]:
        """Rows of `reactor status -o json`."""
        rows: list[dict[str, Any]] = json.loads(await self.printed("status", "-o", "json"))
        return rows

    def freeze(self) -> None:
        """Stop it in its tracks (SIGSTOP)."""
        self.process.send_signal(signal.SIGSTOP)


def _all_settled(group: Group) -> bool:
    return all(member.settled is not None for member in group.members.values())
