"""Surprising behaviour of Alertmanager (each case was measured), from the post to the observation of the target."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from bus.envelope import decode
from bus.messages import Health
from bus.topology import ALERTS, ROUTERS
from reactor.alerts.lifecycle import AlertLifecycle
from reactor.settings.receiver_settings import Receiver
from reactor.webhook.receiver import listening
from reactor.webhook.webhook_server import WebhookServer
from rules.rulefile.sources import AlertmanagerWebhook
from tests.integration.webhook.reception import AT_ONCE, JSON, SlowBus
from tests.unit.webhook.builders import Api, World, alert, body, counted, moment, resolved, source


class Journey(World):
    """A receiver and a keeper with a bus between them."""

    url: str
    server: WebhookServer
    session: aiohttp.ClientSession
    keeper_: AlertLifecycle

    async def hand_in(self, raw: bytes, *, at: float, to: str = "am") -> int:
        """Post, and let the keeper take what lies in the journal."""
        self.clock.seconds = at
        code = await self.only_post(raw, to=to)
        await self.route()
        return code

    async def only_post(self, raw: bytes, *, to: str = "am") -> int:
        url = f"{self.url}/v1/alerts/{to}"
        # Go's client follows 301 and 302 as GET, and counts what that answers.
        async with self.session.post(url, data=io.BytesIO(raw), headers=JSON, allow_redirects=True) as answer:
            return answer.status

    async def route(self) -> int:
        async with self.bus.work(ROUTERS, batch=100) as work:
            deliveries = await work.next(AT_ONCE)
            for delivery in deliveries:
                await self.keeper_.take_post(decode(delivery.body).data)
            await work.ack(deliveries)
        return len(deliveries)

    def seen(self) -> set[tuple[str, str]]:
        """Targets (their last part) and what was said of them."""
        return {(said.target.rpartition("/")[2], said.status.value) for said in self.told}


@asynccontextmanager
async def journey(*sources: AlertmanagerWebhook, apis: dict[str, Api] | None = None) -> AsyncIterator[Journey]:
    world = Journey()
    world.apis = apis or {}

    async def ready() -> list[str]:
        return []

    names = {one.name for one in sources} or {"am"}
    settings = Receiver(listen="127.0.0.1:0")
    world.server = WebhookServer(settings, sources=names, bus=world.bus, ready=ready, clock=world.clock)
    async with (
        listening(world.server) as world.url,
        aiohttp.ClientSession() as world.session,
        world.lifecycle(*sources) as world.keeper_,
    ):
        yield world


async def test_1_a_dead_bus_is_answered_so_that_alertmanager_tries_again() -> None:
    async with journey() as world:
        world.bus.down = True
        codes = [await world.only_post(body(alert())) for _ in range(3)]
        assert codes == [503, 503, 503]
        world.bus.down = False
        assert await world.hand_in(body(alert()), at=7) == 200
        assert world.statuses() == ["Unhealthy"]


async def test_2_a_bad_alert_does_not_cost_its_group() -> None:
    async with journey() as world:
        bad = alert("bad") | {"startsAt": "never"}
        assert await world.hand_in(body(alert("a"), bad, alert("b", service="cart")), at=0) == 200
        assert world.seen() == {("checkout", "Unhealthy"), ("cart", "Unhealthy")}


@pytest.mark.parametrize("to", ["am", "am/"])
async def test_3_a_body_is_never_lost_in_a_redirect(to: str) -> None:
    async with journey() as world:
        assert await world.hand_in(body(alert()), at=0, to=to) == 200
        assert world.statuses() == ["Unhealthy"]


async def test_4_nothing_is_acted_on_inside_the_request() -> None:
    async with journey() as world:
        assert await world.only_post(body(alert())) == 200
        assert world.told == []
        assert await world.route() == 1
        assert world.statuses() == ["Unhealthy"]


async def test_4_a_post_that_was_stored_but_not_answered_in_time_is_stored_once() -> None:
    async with journey() as world:
        slow = SlowBus(world.bus)
        world.server.bus = slow
        async with asyncio.TaskGroup() as group:
            first = group.create_task(world.only_post(body(alert())))
            await slow.asked.wait()
            world.server.bus = world.bus  # the retry is faster than its predecessor
            assert await world.only_post(body(alert())) == 200
            slow.go.set()
        assert first.result() == 200
        assert await world.route() == 1


async def test_5_alerts_that_come_again_with_their_group_change_nothing() -> None:
    async with journey() as world:
        await world.hand_in(body(alert("f0"), alert("f1", service="cart")), at=0)
        await world.hand_in(body(resolved("f0", ends=20), alert("f1", service="cart")), at=25)
        cart = [said for said in world.told if said.target.endswith("cart")]
        assert {said.status for said in cart} == {Health.UNHEALTHY}
        assert len(cart) <= 2  # the second only where it was time to say it again


async def test_6_a_repeat_is_a_heartbeat_and_no_new_incident() -> None:
    async with journey() as world:
        before = counted("reactor_webhook_alerts_total", source="am", fate="repeated")
        for at in (0, 300, 600):  # byte for byte the same, within the time that the bus remembers ids
            assert await world.hand_in(body(alert()), at=at) == 200
        assert world.statuses() == ["Unhealthy"]
        assert counted("reactor_webhook_alerts_total", source="am", fate="repeated") == before + 2
        (entry,) = await world.bus.store(ALERTS).entries(">")
        assert moment(600).isoformat().replace("+00:00", "Z").encode() in entry.value


async def test_7_the_status_of_the_alert_counts_and_not_that_of_the_group() -> None:
    async with journey(source(onResolved="Healthy")) as world:
        await world.hand_in(body(alert("a"), alert("b", service="cart")), at=0)
        mixed = body(resolved("a", ends=20), alert("b", service="cart"), status="firing")
        await world.hand_in(mixed, at=25)
        assert ("checkout", "Healthy") in world.seen()
        assert ("cart", "Healthy") not in world.seen()


async def test_8_an_alert_first_seen_resolved_says_nothing() -> None:
    async with journey() as world:
        assert await world.hand_in(body(resolved()), at=231) == 200
        await world.pass_time(world.keeper_, 400)
        assert world.told == []


async def test_9_a_resolved_that_never_comes_is_found_in_the_api() -> None:
    async with journey(apis={"main": Api()}) as world:
        world.apis["main"].lists(alert())
        await world.hand_in(body(alert()), at=0)
        world.apis["main"].listed.clear()
        world.apis["main"].lists(alert(), state="suppressed")  # a person silences it
        await world.pass_time(world.keeper_, 100)
        assert world.statuses() == ["Unhealthy"]
        world.apis["main"].listed.clear()  # and then it is over
        await world.pass_time(world.keeper_, 390)
        assert world.statuses() == ["Unhealthy"]  # an Alertmanager that was started again would list as little
        await world.pass_time(world.keeper_, 450)
        assert world.statuses() == ["Unhealthy", "Unknown resolved"]


async def test_10_resolved_alone_is_no_recovery() -> None:
    async with journey() as world:
        await world.hand_in(body(alert()), at=0)
        await world.hand_in(body(resolved(ends=228)), at=230)
        await world.pass_time(world.keeper_, 7200, step=9)
        assert world.statuses() == ["Unhealthy", "Unknown resolved"]


async def test_11_both_of_a_pair_deliver_and_it_counts_once() -> None:
    async with journey() as world:
        for number, at in ((0, 0.0), (1, 0.33)):
            await world.hand_in(body(alert(), externalURL=f"http://am-{number}:9093"), at=at)
        await world.hand_in(body(alert(), externalURL="http://am-0:9093", receiver="other"), at=14)
        assert len(world.told) == 1


@pytest.mark.parametrize("order", ["f0 f1 f2 r0 r1 r2", "f0 r0 f1 r1 f2 r2", "f2 f0 r2 r0 f1 r1", "f0 f0 r1 r1 f2 r2"])
async def test_11_three_that_deliver_in_any_order_are_one_episode(order: str) -> None:
    """One that is slow delivers the firing after another has delivered the end."""
    async with journey() as world:
        for number, word in enumerate(order.split()):
            raw = alert() if word[0] == "f" else resolved()
            at = (1.0 if not any("r" in one for one in order.split()[: number + 1]) else 110.0) + number * 0.3
            assert await world.hand_in(body(raw, externalURL=f"http://am-{word[1]}:9093"), at=at) == 200
        await world.pass_time(world.keeper_, 150)
        assert world.statuses() == ["Unhealthy", "Unknown resolved"]


async def test_12_a_start_that_moves_back_is_the_same_episode() -> None:
    async with journey() as world:
        await world.hand_in(body(alert(starts=40)), at=41)
        await world.hand_in(body(alert(starts=5)), at=60)
        assert [said.observed_at for said in world.told if said.observed_at < moment(45)] == [moment(41)]
        (entry,) = await world.bus.store(ALERTS).entries(">")
        assert b'"changed_at":"2026-01-01T00:00:41Z"' in entry.value


async def test_13_a_group_that_comes_again_after_a_restart_is_a_repeat() -> None:
    async with journey() as world:
        await world.hand_in(body(alert(), groupKey="{}:{}"), at=0)
        await world.hand_in(body(alert(), groupKey="{}:{}"), at=900)
        assert world.statuses() == ["Unhealthy"]


async def test_14_one_alert_by_two_routes_is_one_alert() -> None:
    async with journey() as world:
        await world.hand_in(body(alert(), groupKey="{}/{}:{}"), at=0)
        await world.hand_in(body(alert(), alert("f2", service="cart"), groupKey='{}/{severity="page"}:{}'), at=0.1)
        assert len(await world.bus.store(ALERTS).entries(">")) == 2


async def test_15_alerts_that_were_left_out_are_counted_and_conclude_nothing(caplog: pytest.LogCaptureFixture) -> None:
    before = counted("reactor_webhook_truncated_alerts_total", source="am")
    async with journey() as world:
        await world.hand_in(body(alert("a"), alert("b", service="cart")), at=0)
        await world.hand_in(body(alert("a"), truncatedAlerts=1), at=10)
        await world.pass_time(world.keeper_, 120)
        assert world.seen() == {("checkout", "Unhealthy"), ("cart", "Unhealthy")}
    assert counted("reactor_webhook_truncated_alerts_total", source="am") == before + 1
    assert "Alertmanager leaves alerts out" in caplog.text


async def test_16_a_group_of_five_thousand_makes_every_target_unhealthy() -> None:
    async with journey() as world:
        raw = body(*(alert(f"{n:016x}", service=f"s{n}", text="x" * 300) for n in range(5_000)))
        assert await world.hand_in(raw, at=0) == 200
        assert len({said.target for said in world.told}) == 5_000


async def test_17_the_same_alert_of_two_clusters_is_two_by_its_path() -> None:
    targets: dict[str, Any] = {name: f"service/{name}/shop/{{service}}" for name in ("east", "west")}
    async with journey(*(source(name, target=target) for name, target in targets.items())) as world:
        await world.hand_in(body(alert()), at=0, to="east")
        await world.hand_in(body(alert()), at=1, to="west")
        await world.hand_in(body(resolved(ends=20)), at=30, to="east")
        last = {said.target: said.status.value for said in world.told}
        assert last == {"service/east/shop/checkout": "Unknown", "service/west/shop/checkout": "Unhealthy"}


async def test_a_bus_that_dies_between_journal_and_state_loses_nothing() -> None:
    async with journey() as world:
        assert await world.only_post(body(alert())) == 200
        world.bus.down = True
        assert await world.only_post(body(alert("b", service="cart"))) == 503
        world.bus.down = False
        assert await world.only_post(body(alert("b", service="cart"))) == 200
        assert await world.route() == 2
        assert world.seen() == {("checkout", "Unhealthy"), ("cart", "Unhealthy")}
