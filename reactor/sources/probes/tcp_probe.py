"""TcpProbe: open a connection.

    - {name: db-port, kind: TcpProbe, target: service/east/shop/db, host: db.east.example, port: 5432}

A try succeeds when any address of the host accepts a connection within `timeoutSeconds`; nothing is sent.
"""

from __future__ import annotations

from reactor.sources.probes.addresses import first_open
from reactor.sources.probes.probing import TryFailed, probe
from reactor.sources.source_context import SourceContext
from rules.rulefile.sources import TcpProbe


async def run(source: TcpProbe, world: SourceContext) -> None:
    """Probe until cancelled."""

    async def attempt() -> str:
        return await _tried(source)

    await probe(source, world, attempt)


async def _tried(source: TcpProbe) -> str:
    try:
        address = await first_open(source.host, source.port)
    except OSError as error:
        raise TryFailed(f"{source.host}: {error}") from error
    return f"{address} port {source.port} is open"
