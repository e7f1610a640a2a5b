"""The whole reactor with a VirtualService, and with a kind of route that its settings describe."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.kube.test_route_kinds import pools
from tests.e2e.conftest import MakeReactor
from tests.e2e.rulefiles import document
from tests.e2e.shop import MANAGER, Shop
from tests.e2e.waiting import until
from tests.unit.actions.route_samples import NAMES, SAMPLES, Sample

ROUTE_KINDS = {
    "Pool": {
        "group": "example.com", "plural": "pools", "versions": ["v1"], "backends": "spec.rules[*].pool.members",
        "name": "target.ref", "weight": "share", "ruleName": "id", "sumTo": 1000,
    },
}  # fmt: skip


def rules(sample: Sample) -> str:
    custom = f", customKind: {sample.custom_kind}" if sample.custom_kind else ""
    return document(
        rules=f"""
- name: shop
  kind: TrafficFailover
  mode: Enforce
  route: {{cluster: east, kind: {sample.kind}{custom}, namespace: shop, name: checkout, rule: {sample.rule}}}
  primary: p
  backends: [{{service: p}}, {{service: s}}]
"""
    )


@pytest.mark.parametrize("name", ["VirtualService-http", "Pool"])
async def test_it_moves_comes_back_and_is_put_right(shop: Shop, reactor: MakeReactor, name: str) -> None:
    sample = SAMPLES[NAMES.index(name)]
    kind = sample.described
    shop.east.install(pools())
    for backend in ("p", "s"):
        shop.endpoints(backend, ready=2)
    shop.east.create(sample.object([sample.whole, 0]))

    def weights() -> list[Any]:
        found: Any = shop.east.get(kind.plural, "checkout", "shop")["spec"]
        listed = found["rules"][1]["pool"]["members"] if sample.custom_kind else found["http"][1]["route"]
        return [one.get(kind.weight) for one in listed]

    home, away = [sample.whole, 0], [0, sample.whole]
    async with reactor(rules(sample), routeKinds=ROUTE_KINDS) as service:
        await service.settled(1)
        shop.endpoints("p", ready=0)
        await until(lambda: weights() == away, "traffic has left")
        shop.endpoints("p", ready=2)
        await until(lambda: weights() == home, "traffic is back")
        shop.east.patch(kind.plural, "checkout", drifted(sample), "shop")
        await until(lambda: weights() == home, "somebody else's weights are put right")
    written = shop.emulator.writes.effective(kind.plural, manager=MANAGER)
    assert len(written) == 3


def drifted(sample: Sample) -> list[Any]:
    """Somebody gives a tenth to the secondary."""
    at = "/spec/rules/1/pool/members" if sample.custom_kind else "/spec/http/1/route"
    tenth = sample.whole // 10
    return [
        {"op": "add", "path": f"{at}/{place}/{sample.described.weight}", "value": value}
        for place, value in enumerate((sample.whole - tenth, tenth))
    ]
