"""Three NATS servers as one cluster, each in a network namespace of its own, so that the ways between them can be cut.

A way is cut by a wrong hardware address: what each of the two sends reaches no machine, and neither is told. Their
clients still reach them.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from bus.embedded import EmbeddedServer
from bus.embedded_health import EmbeddedHealth
from tests.chaos import namespaces

COUNT = 3
CLIENTS, ROUTES = 4222, 6222
NOBODY = "02:00:00:00:00:01"
PLUGGED_SECONDS = 10.0
AGREED_SECONDS = 30.0
_PLUGGED = 'until ip -4 address show dev eth0 2>/dev/null | grep -q inet; do sleep 0.02; done; exec "$@"'
"""A server cannot listen on an address that is not there yet."""


class Node(EmbeddedServer):
    """One of them."""

    user = ""

    def __init__(self, folder: Path, number: int) -> None:
        super().__init__(folder, port=CLIENTS)
        self._number = number
        self.address = _address(number)

    def command(self) -> Sequence[str]:
        return "unshare", "--net", "sh", "-c", _PLUGGED, "sh", *super().command()

    def configuration(self) -> str:
        others = (number for number in range(COUNT) if number != self._number)
        routes = ", ".join(f'"nats-route://{_address(number)}:{ROUTES}"' for number in others)
        alone = super().configuration().replace("reactor-embedded", f"n{self._number}")
        alone = alone.replace("127.0.0.1:", f"{self.address}:")
        return f'{alone}cluster {{ name: chaos, listen: "{self.address}:{ROUTES}", routes: [{routes}] }}\n'

    async def _ready(self, process: Process) -> None:
        async with asyncio.timeout(PLUGGED_SECONDS):
            while not namespaces.is_apart(process.pid):
                await asyncio.sleep(0.01)
        namespaces.connect(process.pid, self.address, link=f"n{self._number}")
        await super()._ready(process)


def cut(one: Node, other: Node) -> None:
    """Cut the network between the two."""
    for here, there in ((one, other), (other, one)):
        namespaces.mislead(here.pid, there.address, NOBODY)


def mend(one: Node, other: Node) -> None:
    """Restore the network between the two."""
    for here, there in ((one, other), (other, one)):
        namespaces.lead(here.pid, there.address)


async def agreed(members: Sequence[EmbeddedServer]) -> None:
    """Come back when each of them says that its streams and consumers have a leader and are up to date.

    After a cut TCP sends again only after a time that grows with it, and an election takes up to 9 s in nats-server.
    Raises TimeoutError.
    """
    async with asyncio.timeout(AGREED_SECONDS):
        while any([await EmbeddedHealth(member).look() for member in members]):
            await asyncio.sleep(0.1)


@asynccontextmanager
async def nodes(folder: Path) -> AsyncIterator[list[Node]]:
    """Three servers that found each other."""
    members = [Node(folder / f"n{number}", number) for number in range(COUNT)]
    async with AsyncExitStack() as stack:
        await asyncio.gather(*(stack.enter_async_context(member) for member in members))
        yield members


def _address(number: int) -> str:
    return f"10.77.0.{11 + number}"
