"""In the place of linkerd-failover: its TrafficSplits as they are, moved as it would move them, and through crashes."""

from __future__ import annotations

from functools import partial
from typing import Any

from reactor.runtime.clock import Clock
from tests.e2e.conftest import MakeReactor
from tests.e2e.rulefiles import document, failover
from tests.e2e.service import Service
from tests.e2e.shop import Shop
from tests.e2e.waiting import until, until_told

CONTROLLED = {"failover.linkerd.io/controlled-by": "linkerd-failover"}
SELECTOR = "failover.linkerd.io/controlled-by=linkerd-failover"
TOLERATION = 3.0
SECONDARIES = ("checkout-b", "checkout-c")


def installed(shop: Shop) -> None:
    """A TrafficSplit as linkerd-failover's README has it, all its services ready."""
    for service in ("checkout", *SECONDARIES):
        shop.endpoints(service, ready=2)
    shop.split("checkout", *SECONDARIES, labels=CONTROLLED, primary_annotation=True)


def rules(toleration: float = 0) -> str:
    return document(rules=failover("linkerd", selector=SELECTOR, toleration=toleration))


async def test_weights_move_as_linkerd_failover_moves_them(shop: Shop, reactor: MakeReactor) -> None:
    installed(shop)
    shop.split("bystander", "fallback")
    async with reactor(rules()) as service:
        await service.settled(1)

        async def becomes(*weights: int) -> None:
            wanted = dict(zip(("checkout", *SECONDARIES), weights, strict=True))
            await until(lambda: shop.history("checkout")[-1:] == [wanted], f"the weights are {wanted}")

        gone = shop.endpoints("checkout", ready=0)
        await becomes(0, 1, 1)
        print(f"endpoints gone → write {(shop.writes('checkout')[0].at - gone) * 1000:.0f} ms")
        shop.endpoints("checkout-b", ready=0)
        await becomes(0, 0, 1)
        shop.endpoints("checkout-b", ready=1)
        await becomes(0, 1, 1)
        shop.endpoints("checkout", ready=1)
        await becomes(1, 0, 0)
    assert len(shop.writes()) == 4


async def test_all_backends_down_moves_nothing(shop: Shop, reactor: MakeReactor) -> None:
    """Here linkerd-failover writes zero to every backend; its README says that it would not."""
    installed(shop)
    async with reactor(rules()) as service:
        await service.settled(1)
        for name in SECONDARIES:
            shop.endpoints(name, ready=0)
        shop.endpoints("checkout", ready=0)
        await until_told(lambda: _holds(service, "NoHealthySecondary"), "the rule holds")
        shop.endpoints("checkout-c", ready=1)
        await until(lambda: shop.history("checkout"), "traffic moves once there is somewhere to go")
    assert shop.history("checkout") == [{"checkout": 0, "checkout-b": 0, "checkout-c": 1}]


async def test_a_restart_in_good_health_writes_nothing(shop: Shop, reactor: MakeReactor) -> None:
    installed(shop)
    service = reactor(rules())
    for _ in range(2):
        async with service:
            await service.settled(1)
            # A secondary without traffic goes and comes, so that its last fact was decided on, and all before it.
            for ready, status in ((0, "Unhealthy"), (2, "Healthy")):
                shop.endpoints("checkout-c", ready=ready)
                await until_told(partial(_knows, service, "checkout-c", status), f"checkout-c is {status}")
    assert shop.all_writes() == []


async def test_a_reactor_killed_in_the_middle_of_a_window_acts_once_and_not_early(
    shop: Shop, reactor: MakeReactor
) -> None:
    installed(shop)
    service = reactor(rules(TOLERATION))
    async with service:
        await service.settled(1)
        gone = shop.endpoints("checkout", ready=0)
        await until_told(lambda: _window_is_open(service), "the window is open, and stored")
        await service.kill()
        killed = Clock().now()
        assert shop.writes() == []
        await service.start()
        await until(lambda: shop.writes("checkout"), "the action is carried out after the restart")
        await until_told(lambda: _owes_nothing(service), "its outcome is known")
        (group,) = await service.groups()
        assert group.members["service/east/shop/checkout"].since < killed, "the window began anew after the restart"
    (write,) = shop.writes()
    print(f"killed in a window of {TOLERATION:g} s: acted after {write.at - gone:.2f} s")
    assert write.at - gone >= TOLERATION
    assert shop.history("checkout") == [{"checkout": 0, "checkout-b": 1, "checkout-c": 1}]


async def _holds(service: Service, reason: str) -> bool:
    return any(group.held is not None and group.held.reason == reason for group in await service.groups())


async def _knows(service: Service, name: str, status: str) -> bool:
    members = [group.members.get(f"service/east/shop/{name}") for group in await service.groups()]
    return any(member is not None and member.status == status for member in members)


async def _window_is_open(service: Service) -> bool:
    members: list[Any] = [member for group in await service.groups() for member in group.members.values()]
    return any(member.window is not None for member in members)


async def _owes_nothing(service: Service) -> bool:
    groups = await service.groups()
    return bool(groups) and not any(group.outbox for group in groups)
