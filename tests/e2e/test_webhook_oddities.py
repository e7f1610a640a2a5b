"""Unusual posts of Alertmanager to a reactor at work: exactly the right writes result.

All tests share one reactor and one cluster; each has TrafficSplits of its own. Nothing is asked of the reactor about
what it did: the truth is the cluster's log of writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
import pytest_asyncio

from bus import topology
from bus.jetstream import JetStreamBus
from bus.topology import Queue
from tests.e2e.alerts import NEVER, body, firing, resolved
from tests.e2e.conftest import for_shop, opened
from tests.e2e.rulefiles import ALERTS, BELIEVED, document, failover
from tests.e2e.service import Service
from tests.e2e.shop import Shop
from tests.e2e.waiting import until, until_told

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("one reactor for all oddities")]

TOLERATION = 1.5
PATIENT = {"team": "patient"}
RULES = document(
    ALERTS, BELIEVED, rules=failover() + failover("patient", selector="team=patient", toleration=TOLERATION)
)
SERVICES = 60
"""More than these tests use up."""


class Scene:
    """The shop, the reactor that looks after it, and a way to know that it has nothing left to do."""

    def __init__(self, shop: Shop, service: Service, bus: JetStreamBus, names: Iterable[str]) -> None:
        self.shop = shop
        self.service = service
        self._bus = bus
        self._names = iter(names)

    def services(self, count: int) -> list[str]:
        """Give services that no test has touched, each the primary of a TrafficSplit."""
        return [next(self._names) for _ in range(count)]

    async def post(self, *alerts: object, to: str = "am", **keys: Any) -> int:
        """Post one body, and give the code of the answer."""
        return await self.service.post(body(*alerts, **keys), to=to)

    async def moved(self, name: str, *moves: str) -> None:
        """Wait until these moves were written."""
        await until(lambda: self.shop.moves(name) == list(moves), f"{name}: {moves}")

    async def idle(self) -> None:
        """Wait until all that was posted has had its effect.

        All of it is facts of the only partition, a later fact of which was decided, and no action is left.
        """
        await self._empty(topology.ROUTERS, topology.PARKED_POSTS, topology.DELAYED)
        (sentinel,) = self.services(1)
        assert await self.post(firing(sentinel)) == 200
        await self.moved(sentinel, "away")
        await self._empty(topology.EXECUTORS)

    async def _empty(self, *queues: Queue) -> None:
        async def are_empty() -> bool:
            infos = [await self._bus.connection.api(f"CONSUMER.INFO.{one.stream}.{one.name}", {}) for one in queues]
            return not any(info["num_pending"] or info["num_ack_pending"] for info in infos)

        await until_told(are_empty, f"{[one.name for one in queues]} have nothing left")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def scene(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:
    async with opened() as shop:
        names = [f"service-{number:02d}" for number in range(SERVICES)]
        shop.splits(names, "fallback")
        shop.split("patient", "fallback", labels=PATIENT)
        folder = tmp_path_factory.mktemp("oddities")
        service = for_shop(shop, folder)(RULES, bus={"store": str(folder / "nats"), "partitions": 1})
        async with service, JetStreamBus.connect(service.bus_url, name="test") as bus:
            await service.settled(len(names) + 1)
            yield Scene(shop, service, bus, names)


async def test_the_same_body_many_times_at_once_moves_traffic_once(scene: Scene) -> None:
    (name,) = scene.services(1)
    raw = body(firing(name))
    codes = await asyncio.gather(*(scene.service.post(raw) for _ in range(8)))
    assert set(codes) == {200}
    await scene.moved(name, "away")
    assert await scene.service.post(raw) == 200  # and once more, when it has been acted on
    await scene.idle()
    assert scene.shop.moves(name) == ["away"]


async def test_a_group_that_is_resent_with_each_change_moves_each_service_once(scene: Scene) -> None:
    one, two, three = names = scene.services(3)
    assert await scene.post(firing(one)) == 200
    assert await scene.post(firing(one), firing(two)) == 200
    await scene.moved(two, "away")  # resolved before that: its health is not known, and it stays
    assert await scene.post(firing(one), resolved(two), firing(three)) == 200
    await scene.idle()
    assert [scene.shop.moves(name) for name in names] == [["away"]] * 3


async def test_a_resolved_without_its_firing_moves_nothing_nor_does_the_firing_that_it_overtook(scene: Scene) -> None:
    (name,) = scene.services(1)
    assert await scene.post(resolved(name, since=60, ended=30), status="resolved") == 200
    assert await scene.post(firing(name, since=60)) == 200
    await scene.idle()
    assert scene.shop.moves(name) == []


async def test_resolved_alone_moves_nothing_back(scene: Scene) -> None:
    (name,) = scene.services(1)
    assert await scene.post(firing(name)) == 200
    await scene.moved(name, "away")
    assert await scene.post(resolved(name), status="resolved") == 200
    await scene.idle()
    assert scene.shop.moves(name) == ["away"]


async def test_an_alert_that_was_cut_off_a_body_is_not_taken_for_resolved(scene: Scene) -> None:
    kept, cut = names = scene.services(2)
    assert await scene.post(firing(kept), firing(cut), to="believed") == 200
    await scene.moved(cut, "away")
    assert await scene.post(firing(kept), truncatedAlerts=1, to="believed") == 200
    await scene.idle()
    assert [scene.shop.moves(name) for name in names] == [["away"]] * 2


@pytest.mark.parametrize("alerts", [[], None], ids=["empty", "null"])
async def test_a_group_without_alerts_is_taken_and_moves_nothing(scene: Scene, alerts: list[object] | None) -> None:
    before = len(scene.shop.writes())
    assert await scene.service.post(body(alerts=alerts)) == 200
    await scene.idle()
    assert len(scene.shop.writes()) == before + 1  # idle's own


async def test_the_zero_time_is_no_end(scene: Scene) -> None:
    (name,) = scene.services(1)
    assert await scene.post(firing(name, endsAt=NEVER), to="believed") == 200
    await scene.idle()
    assert scene.shop.moves(name) == ["away"]


async def test_a_start_that_moves_back_is_the_same_outage(scene: Scene) -> None:
    (name,) = scene.services(1)
    assert await scene.post(firing(name, since=5)) == 200
    await scene.moved(name, "away")
    assert await scene.post(firing(name, since=40)) == 200
    await scene.idle()
    assert scene.shop.moves(name) == ["away"]


async def test_an_old_start_does_not_shorten_the_toleration(scene: Scene) -> None:
    posted = asyncio.get_running_loop().time()
    assert await scene.post(firing("patient", since=3600)) == 200
    await scene.moved("patient", "away")
    assert scene.shop.writes("patient")[0].at - posted >= TOLERATION


async def test_one_alert_by_two_routes_moves_traffic_once(scene: Scene) -> None:
    (name,) = scene.services(1)
    alert, keys = firing(name), ("{}/{}:{}", '{}/{severity="critical"}:{}')
    codes = await asyncio.gather(*(scene.post(alert, groupKey=key) for key in keys))
    assert set(codes) == {200}
    await scene.idle()
    assert scene.shop.moves(name) == ["away"]


async def test_a_pair_whose_bodies_differ_in_nothing_but_the_sender_moves_traffic_once(scene: Scene) -> None:
    (name,) = scene.services(1)
    alert, senders = firing(name), ("http://am-0.invalid:9093", "http://am-1.invalid:9093")
    codes = await asyncio.gather(*(scene.post(alert, externalURL=sender) for sender in senders))
    assert set(codes) == {200}
    await scene.idle()
    assert scene.shop.moves(name) == ["away"]


@pytest.mark.parametrize(
    "bad",
    [
        {"status": "firing"},
        {"status": "firing", "labels": {"alertname": "ShopDown", "service": "bad"}, "startsAt": "yesterday"},
        {"status": "perhaps", "labels": {"alertname": "ShopDown", "service": "bad"}},
        {"status": "firing", "labels": {"alertname": "ShopDown"}},
        "not an alert",
        None,
    ],
    ids=["no-labels", "no-time", "no-status", "no-service-label", "text", "null"],
)
async def test_a_bad_alert_does_not_cost_its_group(scene: Scene, bad: object) -> None:
    before, after = scene.services(2)
    counted = await scene.service.metric("reactor_webhook_alerts_total", fate="quarantined")
    assert await scene.post(firing(before), bad, firing(after)) == 200
    await scene.idle()
    assert [scene.shop.moves(before), scene.shop.moves(after)] == [["away"]] * 2
    assert await scene.service.metric("reactor_webhook_alerts_total", fate="quarantined") == counted + 1


async def test_each_alert_has_a_status_of_its_own_whatever_its_group_says(scene: Scene) -> None:
    ends, goes_on, begins = scene.services(3)
    assert await scene.post(firing(ends), firing(goes_on), to="believed") == 200
    await scene.moved(ends, "away")
    assert await scene.post(resolved(ends), firing(goes_on), to="believed", status="firing") == 200
    assert await scene.post(firing(begins), to="believed", status="resolved") == 200
    await scene.idle()
    assert scene.shop.moves(ends) == ["away", "home"]
    assert scene.shop.moves(goes_on) == ["away"]
    assert scene.shop.moves(begins) == ["away"]


async def test_what_is_no_webhook_is_refused_and_moves_nothing(scene: Scene) -> None:
    (name,) = scene.services(1)
    alert = body(firing(name))
    assert await scene.service.post(alert[:-1]) == 400
    assert await scene.service.post(b"[]") == 422
    assert await scene.service.post(body(firing(name), version="5")) == 422
    assert await scene.service.post(alert, kind="text/plain") == 415
    assert await scene.service.post(alert, to="stranger") == 404
    await scene.idle()
    assert scene.shop.moves(name) == []


async def test_both_spellings_of_the_path_take_a_post_and_neither_redirects(scene: Scene) -> None:
    (name,) = scene.services(1)
    assert await scene.post(firing(name), to="am/") == 200
    await scene.moved(name, "away")
