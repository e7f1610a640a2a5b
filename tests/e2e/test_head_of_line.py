"""A slow action delays no other."""

from __future__ import annotations

from asyncio import get_running_loop

from reactor.demo.kube import Delay, Fault
from tests.e2e.alerts import body, firing
from tests.e2e.conftest import MakeReactor
from tests.e2e.rulefiles import ALERTS, document, failover
from tests.e2e.shop import Shop
from tests.e2e.waiting import until

SLOW = [f"slow-{number}" for number in range(8)]
SLOW_SECONDS = 4.0


async def test_an_alert_behind_eight_slow_actions_is_acted_on_before_any_of_them_is_done(
    shop: Shop, reactor: MakeReactor
) -> None:
    shop.splits([*SLOW, "urgent"], "fallback")
    faults = [
        shop.east.faults.add(Fault(Delay(SLOW_SECONDS), verb="patch", resource="trafficsplits", name=name))
        for name in SLOW
    ]
    async with reactor(document(ALERTS, rules=failover())) as service:
        await service.settled(len(SLOW) + 1)
        assert await service.post(body(*map(firing, SLOW))) == 200
        await until(lambda: all(fault.hits for fault in faults), "all eight slow actions are under way")
        assert shop.writes() == []
        posted = get_running_loop().time()
        assert await service.post(body(firing("urgent"))) == 200
        await until(lambda: shop.moves("urgent"), "the ninth alert is acted on")
        print(f"POST → write behind eight slow actions: {(shop.writes('urgent')[0].at - posted) * 1000:.0f} ms")
        await until(lambda: len(shop.writes()) == len(SLOW) + 1, "the slow actions are done as well")
    first, *others = shop.writes()
    assert first.name == "urgent"
    assert sorted(write.name for write in others) == SLOW
