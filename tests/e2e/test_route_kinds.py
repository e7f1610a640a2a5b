"""The whole reactor with a VirtualService, and with a kind of route that its settings describe."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.kube.test_route_kinds import pools
from tests.e2e.conftest import MakeReactor
from tests.e2e.rulefiles import document
from tests.e2e.shop import MANAGER, Shop
from tests.e2e.waiting import until
from tests.integration.actions.test_route_kinds import weights_now
from tests.unit.actions.route_samples import NAMES, SAMPLES, Sample

ROUTE_KINDS = {
    "Pool": {
        "group": "example.com", "plural": "pools", "versions": ["v1"], "backends": "spec.rules[*].pool.members",
        "name": "target.ref", "weight": "share", "ruleName": "id", "sumTo": 1000,
    },
}  # fmt: skip


ONE_OF_EACH = list({(sample.kind, sample.custom_kind): sample for sample in SAMPLES}.values())


def rule(sample: Sample, name: str = "shop") -> str:
    more = f", customKind: {sample.custom_kind}" if sample.custom_kind else ""
    more += f", rule: {sample.rule}" if sample.rule is not None else ""
    return f"""
- name: {name}
  kind: TrafficFailover
  mode: Enforce
  route: {{cluster: east, kind: {sample.kind}{more}, namespace: shop, name: checkout}}
  primary: p
  backends: [{{service: p}}, {{service: s}}]
"""


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
    async with reactor(document(rules=rule(sample)), routeKinds=ROUTE_KINDS) as service:
        await service.settled(1)
        shop.endpoints("p", ready=0)
        await until(lambda: weights() == away, "traffic has left")
        shop.endpoints("p", ready=2)
        await until(lambda: weights() == home, "traffic is back")
        shop.east.patch(kind.plural, "checkout", drifted(sample), "shop")
        await until(lambda: weights() == home, "somebody else's weights are put right")
    written = shop.emulator.writes.effective(kind.plural, manager=MANAGER)
    assert len(written) == 3


@pytest.mark.parametrize(
    "deaths",
    [
        pytest.param(("executor.intent-stored:3", "executor.intent-stored:2"), marks=pytest.mark.long),
        pytest.param(("executor.before-write:3", "executor.before-write:2"), marks=pytest.mark.long),
        ("executor.after-write:3", "executor.after-write:2"),
        pytest.param(("executor.done-stored:3",), marks=pytest.mark.long),
    ],
    ids=lambda deaths: deaths[0].partition(":")[0],
)
async def test_a_reactor_that_dies_in_mid_move_again_and_again_moves_every_kind_once(
    shop: Shop, reactor: MakeReactor, deaths: tuple[str, ...]
) -> None:
    """It dies with the third of ten moves in its hands, and then with the second of those that are left."""
    shop.east.install(pools())
    for backend in ("p", "s"):
        shop.endpoints(backend, ready=2)
    for sample in ONE_OF_EACH:
        shop.east.create(sample.object([sample.whole, 0]))
    text = document(rules="".join(rule(sample, sample.name.lower()) for sample in ONE_OF_EACH))

    def current() -> list[dict[str, int]]:
        return [weights_now(sample, shop.east) for sample in ONE_OF_EACH]

    away = [{"p": 0, "s": sample.whole} | sample.others for sample in ONE_OF_EACH]
    home = [{"p": sample.whole, "s": 0} | sample.others for sample in ONE_OF_EACH]
    service = reactor(text, failpoint=deaths[0], routeKinds=ROUTE_KINDS)
    async with service:
        await service.settled(len(ONE_OF_EACH))
        shop.endpoints("p", ready=0)
        for failpoint in (*deaths[1:], ""):
            await until(lambda: not service.running, f"it has died at {service.failpoint}")
            service.failpoint = failpoint
            await service.start()
        await until(lambda: current() == away, "all traffic has left")
        shop.endpoints("p", ready=2)
        await until(lambda: current() == home, "all traffic is back")
    for sample in ONE_OF_EACH:
        assert len(shop.emulator.writes.effective(sample.described.plural, manager=MANAGER)) == 2, sample.name


def drifted(sample: Sample) -> list[Any]:
    """Another writer gives a tenth to the secondary."""
    at = "/spec/rules/1/pool/members" if sample.custom_kind else "/spec/http/1/route"
    tenth = sample.whole // 10
    return [
        {"op": "add", "path": f"{at}/{place}/{sample.described.weight}", "value": value}
        for place, value in enumerate((sample.whole - tenth, tenth))
    ]
