"""Bad input in one place is reported there, and has no effect anywhere else."""

from __future__ import annotations

from typing import Any

from reactor.demo.kube import Fault, Forbid
from tests.e2e.alerts import body, firing
from tests.e2e.conftest import MakeReactor
from tests.e2e.rulefiles import ALERTS, document, failover
from tests.e2e.service import Service
from tests.e2e.shop import Shop
from tests.e2e.waiting import until, until_told

GHOST = """
- name: ghost
  kind: TrafficFailover
  mode: Enforce
  route: {cluster: east, kind: TrafficSplit, namespace: shop, name: ghost}
  backends: [{service: ghost}, {service: fallback}]
"""


async def held(service: Service, rule: str) -> dict[str, Any]:
    """Hold of a rule in `reactor status -o json`; empty: none."""
    for row in await service.status():
        if row["rule"] == rule and row["hold"]:
            return dict(row["hold"])
    return {}


async def test_a_route_that_does_not_exist_is_reported_and_nothing_else_suffers(
    shop: Shop, reactor: MakeReactor
) -> None:
    shop.split("checkout", "fallback")
    async with reactor(document(ALERTS, rules=GHOST + failover())) as service:
        assert await service.post(body(firing("ghost"), firing("checkout"))) == 200
        await until(lambda: shop.moves("checkout") == ["away"], "the other rule acts")
        why = await until_told(lambda: held(service, "ghost"), "reactor status says why the rule holds")
        assert why["reason"] == "RouteNotFound"
        assert not await held(service, "shop")

        shop.split("ghost", "fallback", labels={})
        await until(lambda: shop.moves("ghost") == ["away"], "the route exists now, and is failed over")


async def test_a_missing_permission_is_named_and_the_action_is_carried_out_once_it_is_granted(
    shop: Shop, reactor: MakeReactor
) -> None:
    shop.splits(["checkout", "search"], "fallback")
    forbidden = shop.east.faults.add(Fault(Forbid(), verb="patch", resource="trafficsplits", name="checkout"))
    async with reactor(document(ALERTS, rules=failover())) as service:
        await service.settled(2)
        assert await service.post(body(firing("checkout"), firing("search"))) == 200
        await until(lambda: shop.moves("search") == ["away"], "the other route is failed over")
        why = await until_told(lambda: held(service, "shop"), "reactor status says why the rule holds")
        assert why["reason"] == "ActionFailed"
        assert {"patch", "trafficsplits.split.smi-spec.io", "shop"} <= set(why["detail"].replace('"', " ").split()), why
        assert await service.metric("reactor_actions_total", rule="shop", status="Failed") >= 1
        assert shop.writes("checkout") == []

        forbidden.remove()
        await until(lambda: shop.moves("checkout") == ["away"], "it may now, and does")
        await until_told(lambda: _holds_nothing(service), "nothing is held back any more")


async def _holds_nothing(service: Service) -> bool:
    return not any(group.held for group in await service.groups())
