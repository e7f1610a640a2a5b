"""A reactor that starts with a clock that is an hour off uses the bus's, and acts neither early nor late."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bus.embedded import EmbeddedServer
from tests.e2e.alerts import body, firing
from tests.e2e.conftest import MakeReactor
from tests.e2e.rulefiles import ALERTS, document, failover
from tests.e2e.shop import Shop
from tests.e2e.waiting import until, until_told

HOUR = 3600
TOLERATION = 12.0
RULES = document(ALERTS, rules=failover(toleration=TOLERATION))


@pytest.fixture
async def nats(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    """A bus that outlives the reactors."""
    async with EmbeddedServer(tmp_path / "nats") as server:
        yield server


@pytest.mark.alone
@pytest.mark.parametrize("off", [HOUR, -HOUR], ids=["an hour ahead", "an hour behind"])
async def test_a_window_that_another_opened_runs_out_when_it_should(
    shop: Shop, reactor: MakeReactor, nats: EmbeddedServer, off: int
) -> None:
    shop.split("checkout", "fallback")
    bus = {"url": nats.url}
    async with reactor(RULES, name="right", bus=bus) as right:
        await right.settled(1)
        assert await right.post(body(firing("checkout"))) == 200
        opened = shop.east.monotonic()

        async def window_is_open() -> bool:
            return any(member.window for group in await right.groups() for member in group.members.values())

        await until_told(window_is_open, "the window is open")
    async with reactor(RULES, name="wrong", bus=bus, clock_wrong_by=off) as wrong:
        assert shop.east.monotonic() - opened < TOLERATION, "the machine is too slow for this test"
        assert "clock is wrong" in wrong.log.read_text()
        assert abs(await wrong.metric("reactor_clock_difference_seconds") + off) < 1
        assert 0 < await wrong.metric("reactor_clock_skew_bound_seconds") < 1
        await until(lambda: shop.moves("checkout") == ["away"], "it is acted on")
        waited = shop.writes("checkout")[0].at - opened
    print(f"{off:+d} s: a window of {TOLERATION:g} s was over after {waited:.2f} s")
    assert TOLERATION - 0.2 <= waited < TOLERATION + 3
