"""TcpProbe: open a connection.

    - {name: db-port, kind: TcpProbe, target: service/east/shop/db, host: db.east.example, port: 5432}

A try succeeds when any address of the host accepts a connection within `timeoutSeconds`; nothing is sent.
"""

from __future__ import annotations

import asyncio

from reactor.sources.addresses import resolve
from reactor.sources.probing import TryFailed, probe
from reactor.sources.world import World
from rules.language.sources import TcpProbe


async def run(source: TcpProbe, world: World) -> None:
    """Probe until cancelled."""

    async def attempt() -> str:
        return await _tried(source)

    await probe(source, world, attempt)


async def _tried(source: TcpProbe) -> str:
    try:
        addresses = [str(info[4][0]) for info in await resolve(source.host, source.port)]
    except OSError as error:
        raise TryFailed(f"{source.host}: {error}") from error
    problem = ""
    for address in dict.fromkeys(addresses):
        try:
            _, writer = await asyncio.open_connection(address, source.port)
        except OSError as error:
            problem = str(error)
            continue
        # Aborted rather than closed: waiting for the other side's goodbye would be part of the try.
        writer.transport.abort()
        return f"{address} port {source.port} is open"
    raise TryFailed(problem)
