"""An API server that takes seconds for each read delays actions and prevents none."""

from __future__ import annotations

import pytest

from reactor.demo.kube import Fault
from reactor.demo.kube.faults import Delay
from tests.e2e.alerts import body, firing
from tests.e2e.conftest import MakeReactor
from tests.e2e.rulefiles import ALERTS, document, failover
from tests.e2e.shop import Shop
from tests.e2e.waiting import until


@pytest.mark.parametrize(("seconds", "within"), [(1.3, 30), pytest.param(4.0, 90, marks=pytest.mark.long)])
async def test_routes_are_moved_though_each_look_at_the_secondaries_takes_seconds(
    shop: Shop, reactor: MakeReactor, seconds: float, within: int
) -> None:
    names = [f"checkout{number}" for number in range(8)]
    shop.splits(names, "fallback")
    async with reactor(document(ALERTS, rules=failover())) as service:
        await service.settled(len(names))
        shop.east.faults.add(Fault(Delay(seconds), resource="endpointslices"))
        assert await service.post(body(*(firing(name) for name in names))) == 200
        await until(
            lambda: all(shop.moves(name) == ["away"] for name in names), "all routes are failed over", within=within
        )
