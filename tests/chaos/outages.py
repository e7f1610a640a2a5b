"""Outages that end: of the bus, the API server, the reactors, a whole machine; with targets that recover inside them.

The times of the protocol are production's here, and the limits are those of docs/promises.md: what is still bad is
acted on within 5 s of the end where a source looked all the time, else within the toleration and 10 s.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from random import Random
from typing import Any

from bus.embedded_health import EmbeddedHealth
from reactor.audit.spans import Span
from reactor.demo.kube import Fault as Mishap
from reactor.demo.kube import Hang
from tests.chaos import alerting, faults_disk, patterns
from tests.chaos.alerting import Alerting
from tests.chaos.faults import Outage
from tests.chaos.script import Source
from tests.chaos.world import World

During = Callable[[World], AbstractAsyncContextManager[None]]
EVERYTHING: frozenset[Source] = frozenset(("slices", "probe", "quorum", "bus", "copies", "zone"))
LOOKED_AT: frozenset[Source] = EVERYTHING - {"bus"}
"""Sources for which reactors themselves look."""
NOTHING: frozenset[Source] = frozenset()
FROZEN_LIMIT = 12.0
"""Seconds after which another one has acted in the place of a frozen owner or executor."""
STANDING_LIMIT = 375.0
"""Seconds after which an alert that no Alertmanager lists any more has run out, and its recovery was confirmed."""
STORES_AGAIN_SECONDS = 15.0
"""Seconds after which an embedded server stores again that has room again."""
SEEN_BY_PROMETHEUS: frozenset[Source] = frozenset(("alerts", "query"))
GRACE = 5.0
TWICE_SECONDS = 1.5
"""Seconds for which a bus that is killed twice is first away, and then there again."""


async def inflict(during: During, blind: frozenset[Source], recovery: float, world: World, random: Random) -> None:
    """Let it be there for the act's strike."""
    strike = world.act.strike
    assert strike is not None
    await asyncio.sleep(max(strike.begin - world.now, 0))
    async with world.trouble(recovery=recovery, blind=blind), during(world):
        await asyncio.sleep(max(strike.end - world.now, 0))


@asynccontextmanager
async def nothing(world: World) -> AsyncIterator[None]:
    """No fault: what the others are compared with."""
    yield


@asynccontextmanager
async def bus_killed(world: World) -> AsyncIterator[None]:
    """No server."""
    await world.server.kill()
    yield
    await world.server.start()


@asynccontextmanager
async def bus_killed_twice(world: World) -> AsyncIterator[None]:
    """No server, and one again for a moment, in which partitions change hands."""
    async with bus_killed(world):
        await asyncio.sleep(TWICE_SECONDS)
    await asyncio.sleep(TWICE_SECONDS)
    async with bus_killed(world):
        yield


@asynccontextmanager
async def posts_refused(world: World) -> AsyncIterator[None]:
    """No bus, and so no Alertmanager can say what begins. A window counts from the first word that is taken."""
    begin = asyncio.get_running_loop().time()
    async with bus_killed(world):
        yield
    world.unheard.append((Span(begin, asyncio.get_running_loop().time()), frozenset(("alerts",))))


@asynccontextmanager
async def bus_frozen(world: World) -> AsyncIterator[None]:
    """The server does not answer, and connections stay as they are."""
    os.kill(world.server.pid, signal.SIGSTOP)
    yield
    os.kill(world.server.pid, signal.SIGCONT)


@asynccontextmanager
async def bus_wiped(world: World) -> AsyncIterator[None]:
    """The server comes back with an empty store."""
    await world.server.kill()
    shutil.rmtree(world.server.folder / "store")
    world.wipes.append(asyncio.get_running_loop().time())
    yield
    await world.server.start()


async def disk_full(world: World, random: Random) -> None:
    """The bus's disk is full, and has space again; the embedded server is looked after as `reactor run` does it."""
    await faults_disk.move(world)
    health = EmbeddedHealth(world.server)
    keeping = asyncio.create_task(health.run())
    try:
        await inflict(partial(_disk_filled, health), NOTHING, 0.0, world, random)
    finally:
        keeping.cancel()


@asynccontextmanager
async def _disk_filled(health: EmbeddedHealth, world: World) -> AsyncIterator[None]:
    filler = world.server.folder / "filler"
    faults_disk.fill(filler)
    yield
    filler.unlink()
    async with asyncio.timeout(STORES_AGAIN_SECONDS):
        # A server that is just being restarted does not answer: that is no word that it stores.
        while health.trouble or await health.look():
            await asyncio.sleep(0.1)


@asynccontextmanager
async def reactors_killed(world: World) -> AsyncIterator[None]:
    """All are killed, and started again."""
    await asyncio.gather(*(member.kill() for member in world.members))
    yield
    await asyncio.gather(*(member.start() for member in world.members))


@asynccontextmanager
async def reactors_stopped(world: World) -> AsyncIterator[None]:
    """All are stopped in an orderly way, and started again."""
    await asyncio.gather(*(member.stop() for member in world.members))
    yield
    await asyncio.gather(*(member.start() for member in world.members))


@asynccontextmanager
async def suspended(world: World) -> AsyncIterator[None]:
    """The machine of all reactors and the bus is suspended."""

    def tell(number: signal.Signals) -> None:
        os.kill(world.server.pid, number)
        for member in world.members:
            member.signal(number)

    tell(signal.SIGSTOP)
    yield
    tell(signal.SIGCONT)


async def frozen(world: World, random: Random) -> None:
    """One process is suspended with actions in flight: the API server has not answered them yet."""
    strike = world.act.strike
    assert strike is not None
    await asyncio.sleep(max(strike.begin - 1.2 - world.now, 0))
    hang = world.cluster.faults.add(Mishap(Hang(), resource="trafficsplits"))
    async with world.trouble(recovery=FROZEN_LIMIT - GRACE):
        await asyncio.sleep(max(strike.begin - world.now, 0))
        member = random.choice(world.members)
        member.signal(signal.SIGSTOP)
        stopped = asyncio.get_running_loop().time()
        hang.remove()
    # Of a zone's two witnesses it may have run one: who runs that now has not seen what was before.
    world.blind.append((Span(stopped, stopped + FROZEN_LIMIT - GRACE), frozenset(("zone",))))
    world.dark = False  # the other process may have run both
    await asyncio.sleep(max(strike.end - world.now, 0))
    async with world.trouble(recovery=0.0):
        member.signal(signal.SIGCONT)


@asynccontextmanager
async def prometheus_killed(wiped: bool, world: World) -> AsyncIterator[None]:
    """No Prometheus; it comes back with its data, or without."""
    alerts = _alerting(world)
    await alerts.prometheus.kill()
    if wiped:
        alerting.wipe(alerts.prometheus)
    yield
    await alerts.prometheus.start()


@asynccontextmanager
async def alertmanagers_killed(wiped: bool, world: World) -> AsyncIterator[None]:
    """Neither Alertmanager; they come back with their data, or without."""
    alerts = _alerting(world)
    world.blind_grace = STANDING_LIMIT  # a killed one forgets which alerts it posted, and posts no end of them
    for one in alerts.pair:
        await one.kill()
        if wiped:
            alerting.wipe(one)
    yield
    for one in alerts.pair:
        await one.start()


def _alerting(world: World) -> Alerting:
    assert world.truth.alerting is not None
    return world.truth.alerting


def outage(
    name: str,
    during: During,
    blind: frozenset[Source] = NOTHING,
    *,
    recovery: float = 0.0,
    seconds: float = 50.0,
    **more: Any,
) -> Outage:
    """Give an outage of this name. `blind`: the sources that see nothing meanwhile; `recovery`: seconds that it takes
    until all is as before."""
    return Outage(name, partial(inflict, during, blind, recovery), seconds=seconds, scale=1.0, **more)


def _alerts(name: str, during: During, blind: frozenset[Source] = NOTHING, **more: Any) -> Outage:
    sources: Sequence[Source] = ("alerts", "query")
    return outage(name, during, blind, sources=sources, lacks=alerting.lacks, **more)


FAULTS = (
    outage("outage:none", nothing),
    outage("outage:bus-killed", bus_killed),
    outage("outage:bus-frozen", bus_frozen, in_ci=False),
    outage("outage:bus-away-short", bus_killed, length=(4.0, 9.0), in_ci=False),
    outage("outage:bus-killed-twice", bus_killed_twice, length=(5.0, 8.0), in_ci=False),
    outage("outage:bus-wiped", bus_wiped, EVERYTHING, length=(1.0, 8.0), in_ci=False),
    Outage(
        "outage:disk-full", disk_full, seconds=50.0, scale=1.0, lacks=faults_disk.lacks,
        sources=("slices", "probe", "quorum"),
    ),
    outage("outage:reactors-killed", reactors_killed, LOOKED_AT, length=(8.0, 20.0)),
    outage(
        "outage:reactors-stopped", reactors_stopped, LOOKED_AT, length=(8.0, 20.0),
        in_ci=False,
    ),
    outage("outage:suspended", suspended, LOOKED_AT),
    Outage(
        "outage:frozen", frozen, seconds=50.0, scale=1.0, length=(14.0, 20.0), routes=patterns.in_flight, in_ci=False
    ),
    _alerts("outage:prometheus-killed", partial(prometheus_killed, False), SEEN_BY_PROMETHEUS),
    _alerts("outage:prometheus-wiped", partial(prometheus_killed, True), SEEN_BY_PROMETHEUS, in_ci=False),
    _alerts(
        "outage:alertmanagers-killed", partial(alertmanagers_killed, False), frozenset(("alerts",)), in_ci=False,
        seconds=150.0,
    ),
    _alerts(
        "outage:alertmanagers-wiped", partial(alertmanagers_killed, True), frozenset(("alerts",)), in_ci=False,
        seconds=150.0,
    ),
    _alerts("outage:alerts-bus-killed", posts_refused, in_ci=False),
    _alerts(
        "outage:alerts-reactors-killed", reactors_killed, SEEN_BY_PROMETHEUS | LOOKED_AT, length=(8.0, 20.0),
        in_ci=False,
    ),
    outage("outage:all-down", nothing, length=(8.0, 10.0), routes=patterns.all_down),
)  # fmt: skip
