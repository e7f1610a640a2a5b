"""Posts of one source that wait for the routers take turns: in order, a piece each, one at a time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest

from bus import subjects
from bus.envelope import decode
from bus.port import Outgoing
from reactor.webhook.webhook_server import IN_HANDS_MAX, LOOK_SECONDS
from tests.integration.webhook.reception import Reception
from tests.unit.webhook.builders import alert, body, counted

SUBJECT = subjects.webhook("am")


class Routers(Counter[str]):
    """Routers that have enough in flight; once they have not, they take each message that is stored."""

    def __init__(self, receiver: Reception) -> None:
        super().__init__({SUBJECT: IN_HANDS_MAX})
        self.most = 0
        self.stored: list[str] = []
        self._bus = receiver.bus
        receiver.server.bus = self
        receiver.server._in_hands = self

    async def publish_all(self, messages: Sequence[Outgoing]) -> None:
        await self._bus.publish_all(messages)
        for message in messages:
            self.stored.append(decode(message.body).data.alerts[0]["fingerprint"])
            # They have it a moment after it is stored, and are done with it a while later.
            asyncio.get_running_loop().call_later(LOOK_SECONDS / 2, self._taken)
            asyncio.get_running_loop().call_later(LOOK_SECONDS * 3, self.done)

    def _taken(self) -> None:
        self[SUBJECT] += 1
        self.most = max(self.most, self[SUBJECT])

    def done(self) -> None:
        """Have one message less in flight."""
        self[SUBJECT] -= 1


async def test_posts_that_wait_for_routers_go_in_the_order_in_which_they_came_and_one_at_a_time(
    receiver: Reception,
) -> None:
    """All at once they would fill the routers' hands, whatever the limit is."""
    routers = Routers(receiver)
    came = [f"{one:016x}" for one in range(8)]
    async with asyncio.TaskGroup() as group:
        for number, name in enumerate(came):
            group.create_task(receiver.post(body(alert(name))))
            while receiver.server._posts["am"] <= number:
                await asyncio.sleep(0.001)
            await asyncio.sleep(LOOK_SECONDS / 5)
        routers.done()
        routers.done()
    assert routers.stored == came
    assert routers.most <= IN_HANDS_MAX


async def test_a_small_post_goes_between_the_pieces_of_a_large_one(receiver: Reception) -> None:
    routers = Routers(receiver)
    large = [alert(f"{one:016x}", text="x" * 1000) for one in range(1000)]
    async with asyncio.TaskGroup() as group:
        first = group.create_task(receiver.post(body(*large)))
        while not receiver.server._posts["am"]:
            await asyncio.sleep(0.001)
        await asyncio.sleep(LOOK_SECONDS)
        small = group.create_task(receiver.post(body(alert("f" * 16))))
        while receiver.server._posts["am"] < 2:
            await asyncio.sleep(0.001)
        routers.done()
        routers.done()
    assert (first.result()[0], small.result()[0]) == (200, 200)
    assert len(routers.stored) > 5
    assert routers.stored.index("f" * 16) <= 2


async def test_all_posts_that_wait_are_told_to_come_again_after_the_same_time(
    receiver: Reception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reactor.webhook.webhook_server.OWED_SECONDS", 2.0)
    Routers(receiver)
    before = counted("reactor_webhook_limits_exceeded_total", limit="inHands")
    began = asyncio.get_running_loop().time()
    answers = await asyncio.gather(*(receiver.post(body(alert(f"{one:016x}"))) for one in range(8)))
    assert [code for code, _ in answers] == [503] * 8
    assert asyncio.get_running_loop().time() - began < 2.0 * 8, "they wait beside each other"
    assert counted("reactor_webhook_limits_exceeded_total", limit="inHands") == before + 8
