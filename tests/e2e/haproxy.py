"""A real HAProxy, Debian's, before two services; and a tap on its Runtime API that sees each write of the reactor."""

from __future__ import annotations

import asyncio
import re
import signal
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
from aiohttp import web

from reactor.clients.balancers.haproxy import HAProxy as Client
from reactor.settings.balancer_settings import HAProxySettings as Settings
from tests.e2e.processes import Child
from tests.e2e.servers import binary
from tests.e2e.waiting import until, until_told
from tests.ports import free_port

CONFIG = """
global
    stats socket {socket} mode 600 level admin expose-fd listeners
    stats socket ipv4@127.0.0.1:{tcp} level admin
    stats timeout 10s
defaults
    mode http
    timeout connect 2s
    timeout client 10s
    timeout server 10s
    option http-server-close
frontend in
    bind 127.0.0.1:{port}
    default_backend web
backend web
    balance {balance}
{servers}
"""
RELOAD_SECONDS = 3.0
"""Seconds that a reload may take before it is asked for again."""
SET = re.compile(r"set weight web/(\S+) (\d+)")


class HAProxy(Child):
    """One HAProxy with a backend `web`, in master-worker mode as Debian runs it."""

    def __init__(self, folder: Path, servers: Mapping[str, str], *, weights: Mapping[str, int] | None = None) -> None:
        """`servers`: name to host:port. `weights`: as configured; default: the first has all of it."""
        folder.mkdir(parents=True, exist_ok=True)
        self.socket = folder / "admin.sock"
        self.port = free_port()
        self.tcp = free_port()
        """Of its Runtime API."""
        self._config = folder / "haproxy.cfg"
        self._servers = servers
        self.configure(weights or {name: int(not number) for number, name in enumerate(servers)})
        super().__init__("haproxy", [binary("haproxy"), "-W", "-f", self._config], folder)

    def configure(self, weights: Mapping[str, int], *, balance: str = "roundrobin") -> None:
        """Write another configuration, for its next start or reload."""
        lines = (f"    server {name} {at} weight {weights[name]}" for name, at in self._servers.items())
        text = CONFIG.format(
            socket=self.socket, tcp=self.tcp, port=self.port, balance=balance, servers="\n".join(lines)
        )
        self._config.write_text(text, encoding="utf-8")

    @property
    def client(self) -> Client:
        """Client that the reactor uses."""
        return Client("edge", Settings(kind="HAProxy", socket=self.socket, backend="web"))

    async def ready(self) -> None:
        async def answers() -> bool:
            assert self.running, f"haproxy ended at its start:\n{self.log.read_text()[-2000:]}"
            with suppress(OSError):
                return "Pid" in await self.says("show info")
            return False

        await until_told(answers, "haproxy answers")

    async def says(self, line: str) -> str:
        """Answer of its Runtime API."""
        reader, writer = await asyncio.open_unix_connection(str(self.socket))
        writer.write(f"{line}\n".encode())
        answer = (await reader.read()).decode()
        writer.close()
        return answer

    async def weights(self) -> dict[str, int]:
        """Current weights."""
        return dict((await self.client.read()).by_name)

    async def put(self, **weights: int) -> None:
        """Set weights as another writer would."""
        assert not (await self.says("; ".join(f"set weight web/{n} {w}" for n, w in weights.items()))).strip()

    async def reload(self) -> None:
        """Let it read its configuration again, as `systemctl reload` does; comes back when the old worker is gone.

        Until then both answer: a request goes to the one or the other. A master that has just started its worker does
        not hear the signal yet, so it is said again.
        """
        old, said = self.children(), 0.0

        def reloaded() -> bool:
            nonlocal said
            if not self.children() & old:
                return bool(self.children())
            now = asyncio.get_running_loop().time()
            if self.children() <= old and now - said > RELOAD_SECONDS:
                said = now
                self.process.send_signal(signal.SIGUSR2)
            return False

        await until(reloaded, "haproxy has reloaded", within=60)
        await self.ready()


class Tap:
    """Proxy in front of HAProxy's socket: passes all on, and keeps each write with whether it changed anything."""

    def __init__(self, haproxy: HAProxy, socket: Path) -> None:
        self.socket = socket
        self._haproxy = haproxy
        self.writes: list[dict[str, int]] = []
        self.doubled: list[str] = []
        """Writes that changed nothing."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection: one line, one answer."""
        try:
            line = (await reader.readline()).decode().strip()
            wanted = {name: int(weight) for name, weight in SET.findall(line)}
            if wanted:
                stands = await self._haproxy.weights()
                if all(stands.get(name) == weight for name, weight in wanted.items()):
                    self.doubled.append(line)
                self.writes.append(wanted)
            writer.write((await self._haproxy.says(line)).encode())
            await writer.drain()
        finally:
            writer.close()


@asynccontextmanager
async def tapped(haproxy: HAProxy, folder: Path) -> AsyncIterator[Tap]:
    """Tap while the block runs."""
    tap = Tap(haproxy, folder / "tap.sock")
    server = await asyncio.start_unix_server(tap.serve, str(tap.socket))
    try:
        yield tap
    finally:
        server.close()


class Site:
    """Two services, `here` and `there`, whose health a probe sees, and who counts what they are asked."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.bad: set[str] = set()
        self.addresses: dict[str, str] = {}

    def answers(self, name: str) -> web.Server:
        """Server of one of the backends."""

        async def answer(request: web.BaseRequest) -> web.Response:
            if request.path != "/healthz":
                self.counts[name] += 1
            return web.Response(status=500 if name in self.bad else 200, text=name)

        return web.Server(answer, access_log=None)

    async def served(self, haproxy: HAProxy, requests: int) -> Counter[str]:
        """Send requests through HAProxy, and give who has answered how many."""
        found: Counter[str] = Counter()
        connector = aiohttp.TCPConnector(force_close=True)
        async with aiohttp.ClientSession(connector=connector) as session:
            for _ in range(requests):
                async with session.get(f"http://127.0.0.1:{haproxy.port}/") as answer:
                    found[await answer.text()] += 1
        return found


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    """Serve while the block runs."""
    made, runners = Site(), []
    for name in ("here", "there"):
        runner = web.ServerRunner(made.answers(name), shutdown_timeout=0.1)
        runners.append(runner)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        made.addresses[name] = "{}:{}".format(*runner.addresses[0][:2])
    try:
        yield made
    finally:
        for runner in runners:
            await runner.cleanup()


async def until_weights(haproxy: HAProxy, weights: Mapping[str, int], what: str) -> None:
    """Wait until these are the current weights."""

    async def so() -> bool:
        return await haproxy.weights() == weights

    await until_told(so, f"{what}: {dict(weights)} stands")
