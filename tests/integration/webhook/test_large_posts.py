"""A large post is answered once all is stored; what routers have no room for is stored where no window waits for it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

import pytest

from bus import subjects
from bus.envelope import decode
from bus.errors import NotPermitted
from bus.port import Outgoing
from bus.testing.memory import MemoryBus
from bus.topology import PARKED_POSTS
from reactor.webhook import webhook_server
from reactor.webhook.webhook_server import IN_HANDS_MAX
from tests.integration.webhook.reception import Reception
from tests.unit.webhook.builders import alert, body

AT_ONCE = timedelta(milliseconds=50)
ALERTS = 1000
LARGE = body(*(alert(f"{one:016x}", text="x" * 1000) for one in range(ALERTS)))


class Hands(Counter[str]):
    """Messages in flight at routers. Counts how often the receiver has looked whether there is room for more."""

    looks = 0

    def __getitem__(self, subject: str) -> int:
        self.looks += 1
        return super().__getitem__(subject)

    async def looked(self) -> None:
        """Wait until the receiver has looked again and again."""
        wanted = self.looks + 5
        async with asyncio.timeout(60):
            while self.looks < wanted:
                await asyncio.sleep(0.01)


def with_routers(receiver: Reception, **in_hands: int) -> Hands:
    hands = Hands({
        subjects.webhook("am"): in_hands.get("webhooks", 0), subjects.parked("am"): in_hands.get("parked", 0)
    })  # fmt: skip
    receiver.server._in_hands = hands
    return hands


async def waiting(receiver: Reception) -> list[str]:
    """The alerts that wait in the stream beside the inbox."""
    async with receiver.bus.work(PARKED_POSTS, batch=1000) as work:
        deliveries = await work.next(AT_ONCE)
        await work.ack(deliveries)
    return [one["fingerprint"] for delivery in deliveries for one in decode(delivery.body).data.alerts]


async def journaled(receiver: Reception) -> list[str]:
    return [one["fingerprint"] for post in await receiver.journal() for one in post.alerts]


async def test_a_large_post_is_stored_whole_and_answered_although_routers_have_enough(receiver: Reception) -> None:
    with_routers(receiver, webhooks=IN_HANDS_MAX)
    code, answer = await receiver.post(LARGE)
    assert (code, answer["taken"]) == (200, ALERTS)
    assert await journaled(receiver) == []
    assert len(await waiting(receiver)) == ALERTS


async def test_no_window_waits_for_more_of_a_large_post_than_the_routers_have_room_for(receiver: Reception) -> None:
    with_routers(receiver)
    assert (await receiver.post(LARGE))[0] == 200
    posts, beside = await receiver.journal(), await waiting(receiver)
    assert len(posts) == IN_HANDS_MAX
    found = [one["fingerprint"] for post in posts for one in post.alerts] + beside
    assert sorted(found) == [f"{one:016x}" for one in range(ALERTS)]


async def test_while_one_large_post_of_a_source_waits_stored_its_next_one_waits_unanswered(receiver: Reception) -> None:
    hands = with_routers(receiver, webhooks=IN_HANDS_MAX, parked=1)
    post = asyncio.create_task(receiver.post(LARGE))
    await hands.looked()
    assert not post.done()
    assert await waiting(receiver) == []
    hands.clear()
    assert (await post)[0] == 200


async def test_two_large_posts_at_once_are_not_both_stored_before_routers_have_taken_up_one(
    receiver: Reception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a machine is so busy that it takes the second one in half a second later."""
    monkeypatch.setattr(webhook_server, "LARGE_POST_PAUSE_SECONDS", 60.0)
    hands = with_routers(receiver, webhooks=IN_HANDS_MAX)
    assert (await receiver.post(LARGE))[0] == 200
    post = asyncio.create_task(receiver.post(body(*(alert(f"f{one:015x}", text="x" * 1000) for one in range(ALERTS)))))
    await hands.looked()
    assert not post.done()
    hands.clear()
    assert (await post)[0] == 200


async def test_a_small_post_waits_for_the_routers_as_before(receiver: Reception) -> None:
    """All that a window of its targets must know is in the inbox when it is answered."""
    hands = with_routers(receiver, webhooks=IN_HANDS_MAX)
    post = asyncio.create_task(receiver.post(body(alert())))
    await hands.looked()
    assert not post.done()
    hands.clear()
    assert (await post)[0] == 200
    assert await waiting(receiver) == []


class Denying:
    """A bus whose user may not publish on some subjects."""

    def __init__(self, bus: MemoryBus, *denied: str) -> None:
        self._bus = bus
        self._denied = denied
        self.asked = 0

    async def publish_all(self, messages: Sequence[Outgoing]) -> None:
        if any(one.subject in self._denied for one in messages):
            self.asked += 1
            raise NotPermitted("this user of the bus may not publish there")
        await self._bus.publish_all(messages)


async def test_where_the_user_has_no_right_beside_the_inbox_all_is_stored_in_it(receiver: Reception) -> None:
    """Users of NATS that were made for version 0.1.0 have none."""
    with_routers(receiver)
    receiver.server.bus = older = Denying(receiver.bus, subjects.parked("am"))
    for _ in range(2):
        assert (await receiver.post(LARGE))[0] == 200
    assert older.asked == 1
    assert await waiting(receiver) == []
    receiver.server._may_park_at = 0.0  # a minute later
    receiver.server._large_again_at = 0.0
    assert (await receiver.post(LARGE))[0] == 200
    assert older.asked == 2
    assert {*await journaled(receiver)} == {f"{one:016x}" for one in range(ALERTS)}


async def test_a_user_without_any_right_is_told_so(receiver: Reception) -> None:
    with_routers(receiver)
    receiver.server.bus = Denying(receiver.bus, subjects.parked("am"), subjects.webhook("am"))
    code, answer = await receiver.post(LARGE)
    assert (code, "may not publish" in answer["error"]) == (503, True)
