"""Foreign entries in the bucket of leases stop no fleet."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from bus.embedded import EmbeddedServer
from bus.jetstream import JetStreamBus, provision
from bus.topology import LEASES
from reactor.fleet.fleet import Fleet
from reactor.fleet.presence import present
from reactor.process.bus_cleanup import LeaseCollector
from reactor.runtime.clock import Clock
from tests.integration.roles.conftest import eventually

SHARES = 8
ODD = {
    "member.zz": b'{"id": "zz"}', "member.yy": b"\xff\xfe", "member.xx": b'{"name": 7}', "member.ww": b"[]",
    "owner.three": b"someone", "owner.3": b"\xff\xfe", "process.zz": b"{}", "member.deep": b"[" * 100_000,
    "process.deep": b'{"name":' * 20_000,
}  # fmt: skip


def shared(*fleets: Fleet) -> Callable[[], bool]:
    def whole() -> bool:
        wanted = [fleet.wanted() for fleet in fleets]
        return sorted(one for some in wanted for one in some) == list(range(SHARES)) and all(wanted)

    return whole


@pytest.mark.parametrize("before", [True, False], ids=["before the start", "while they run"])
async def test_entries_that_cannot_be_read_stop_no_fleet(server: EmbeddedServer, *, before: bool) -> None:
    async with (
        JetStreamBus.connect(server.url, name="a", timeout=timedelta(seconds=10)) as bus,
        JetStreamBus.connect(server.url, name="b", timeout=timedelta(seconds=10)) as other,
    ):
        await provision(bus)
        store = bus.store(LEASES)

        async def write() -> None:
            for key, value in ODD.items():
                await store.put(key, value, revision=None)

        if before:
            await write()
        fleets = Fleet(bus, "a", SHARES, Clock()), Fleet(other, "b", SHARES, Clock())
        async with fleets[0].joined(), fleets[1].joined():
            if not before:
                await eventually(shared(*fleets))
                await write()
                known = fleets[0]._known
                await eventually(lambda: fleets[0]._known is not known)  # it still hears itself
            await eventually(shared(*fleets))
            assert fleets[0].members() == fleets[1].members() == ["a", "b"]
            owner = next(fleet for fleet in fleets if 3 in fleet.wanted())
            assert await owner.claim(3)
            assert await present(bus) == []
            await LeaseCollector(bus).look()
