"""Real servers for the contract tests: three of them as one cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from bus.embedded import EmbeddedServer
from tests.ports import free_port


class Member(EmbeddedServer):
    """One server of a cluster."""

    user = ""

    def __init__(self, folder: Path, *, name: str, route: int, routes: Sequence[int]) -> None:
        super().__init__(folder)
        self._name, self._route, self._routes = name, route, routes

    def configuration(self) -> str:
        routes = ", ".join(f'"nats-route://127.0.0.1:{port}"' for port in self._routes)
        alone = super().configuration().replace("reactor-embedded", self._name)
        return f'{alone}cluster {{ name: test, listen: "127.0.0.1:{self._route}", routes: [{routes}] }}\n'


class Configured(EmbeddedServer):
    """A server with another configuration, which may not answer us as the embedded one does."""

    user = ""

    def __init__(self, folder: Path, configuration: str) -> None:
        super().__init__(folder)
        self._text = configuration

    def configuration(self) -> str:
        return f'listen: "127.0.0.1:-1"\nports_file_dir: "{self.folder}"\n{self._text}\n'

    async def _answers(self) -> None:
        return


def three(folder: Path) -> list[Member]:
    """Three servers of one cluster that are not started."""
    routes = [free_port() for _ in range(3)]
    return [
        Member(
            folder / f"n{number}", name=f"n{number}", route=route, routes=[other for other in routes if other != route]
        )
        for number, route in enumerate(routes)
    ]


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[list[Member]]:
    """Three servers that found each other."""
    members = three(folder)
    async with AsyncExitStack() as stack:
        await asyncio.gather(*(stack.enter_async_context(member) for member in members))
        yield members
