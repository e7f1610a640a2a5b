"""A rule with overflow on the whole service: EndpointSlices that are partly ready, weights in percent."""

from __future__ import annotations

from tests.e2e.conftest import MakeReactor
from tests.e2e.rulefiles import document
from tests.e2e.shop import Shop
from tests.e2e.waiting import until

OVERFLOW = """
- name: shop
  kind: TrafficFailover
  mode: Enforce
  route: {cluster: east, kind: TrafficSplit, namespace: shop, name: checkout}
  backends: [{service: checkout}, {service: fallback}]
  overflow: {}
  tolerationSeconds: 1
"""


async def test_a_primary_of_which_half_is_ready_keeps_what_it_bears_until_all_is_ready_again(
    shop: Shop, reactor: MakeReactor
) -> None:
    shop.split("checkout", "fallback")
    shop.endpoints("checkout", ready=2)
    async with reactor(document(rules=OVERFLOW)) as service:
        await service.settled(1)
        shop.endpoints("checkout", ready=1)
        await until(
            lambda: shop.history("checkout") == [{"checkout": 70, "fallback": 30}], "what it does not bear moves"
        )
        shop.endpoints("checkout", ready=0)
        await until(lambda: shop.history("checkout")[1:] == [{"checkout": 0, "fallback": 100}], "all of it moves")
        shop.endpoints("checkout", ready=2)
        await until(lambda: shop.history("checkout")[2:] == [{"checkout": 100, "fallback": 0}], "it comes back")
        told = await service.printed("explain", "shop/east/shop/TrafficSplit/checkout/1")
        assert "checkout: 50 % healthy, fallback: 100 % healthy" in told, told
