"""Time from an observation on the bus to the action on the bus, 200 a second, where nothing is tolerated.

Beside it, on the same server and as often, what no reactor can save: publish, deliver, publish. Both are taken when the
last message passes through the server, before it is stored.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta

from nats.aio.msg import Msg

from benchmarks.measure import Result, spread
from benchmarks.world import World, until, world
from bus import subjects
from bus.envelope import encode
from bus.jetstream import JetStreamBus
from bus.messages import Health, Observation
from bus.port import Outgoing
from bus.topology import FACTS, PARTITIONS
from reactor.runtime.clock import Clock

TARGETS = 500
WAVES = 4
A_SECOND = 200
NOBODYS = PARTITIONS
"""A partition that no decider reads."""
SETTLE_SECONDS = 1.0
RULES = """
apiVersion: reactor/v1
rules:
- {name: told, kind: Notification, mode: Enforce, match: "custom/**", tolerationSeconds: 0, recoverySeconds: 0}
"""
"""Its action is not published, so that what executors do besides is not measured."""


async def observation_to_action() -> Result:
    """Each target turns bad, then good, and so on."""
    async with world(1, RULES) as w:
        await w.bus.publish_all([_observed(number, Health.HEALTHY) for number in range(TARGETS)])
        await asyncio.sleep(SETTLE_SECONDS)
        bare = spread(await _bare(w.bus))
        ours = spread(await _acted(w))
    figures = {
        "observations": TARGETS * WAVES, "a_second": A_SECOND, **ours, "bare": bare,
        "ratio_p50": round(ours["p50_ms"] / bare["p50_ms"], 1), "ratio_p99": round(ours["p99_ms"] / bare["p99_ms"], 1),
    }  # fmt: skip
    what = "observation → action published, nothing tolerated"
    return Result("observation-to-action", what, figures, {"ratio_p99": "≤ 3"})


async def _acted(w: World) -> list[float]:
    """Give the seconds from each observation to its action."""
    began: dict[str, float] = {}
    seconds: list[float] = []

    async def acted(message: Msg) -> None:
        if (at := began.pop(json.loads(message.data)["data"]["object"], None)) is not None:
            seconds.append(time.perf_counter() - at)

    # Not `bus.listen`: it answers what it hears, and the publisher would take that for the server's word.
    listening = await w.bus.connection.client.subscribe(f"{subjects.ROOT}.actions.>", cb=acted)
    for wave in range(WAVES):
        status = Health.HEALTHY if wave % 2 else Health.UNHEALTHY

        async def say(number: int, status: Health = status) -> None:
            began[f"custom/t{number}"] = time.perf_counter()
            await w.bus.publish(_observed(number, status))

        await _paced(say, TARGETS)
        await until(lambda wanted=(wave + 1) * TARGETS: len(seconds) >= wanted)  # type: ignore[misc]
        await asyncio.sleep(SETTLE_SECONDS)
    await listening.unsubscribe()
    return seconds


async def _bare(bus: JetStreamBus) -> list[float]:
    """Give the seconds from a message to another that is published when it is delivered."""
    count = TARGETS * WAVES
    began: dict[bytes, float] = {}
    seconds: list[float] = []
    into, out = subjects.fact(NOBODYS, "bench", "bare"), f"{subjects.ROOT}.decisions.bench.bare"

    async def passed(message: Msg) -> None:
        if (at := began.pop(message.data, None)) is not None:
            seconds.append(time.perf_counter() - at)

    async def deliver() -> None:
        async with bus.read(FACTS, into, after=0) as reading, asyncio.TaskGroup() as group:
            while True:
                for one in await reading.next(timedelta(seconds=60)):
                    group.create_task(bus.publish(Outgoing(out, one.body, f"out-{one.sequence}")))

    async def say(number: int) -> None:
        body = b"%d" % number
        began[body] = time.perf_counter()
        await bus.publish(Outgoing(into, body, f"in-{number}"))

    listening = await bus.connection.client.subscribe(out, cb=passed)
    delivering = asyncio.create_task(deliver())
    await asyncio.sleep(SETTLE_SECONDS)
    await _paced(say, count)
    await until(lambda: len(seconds) == count)
    delivering.cancel()
    await asyncio.gather(delivering, return_exceptions=True)
    await listening.unsubscribe()
    return seconds


async def _paced(say: Callable[[int], Awaitable[None]], count: int) -> None:
    """Do it A_SECOND times a second, whether the one before has ended or not."""
    now = asyncio.get_running_loop().time
    began, saying = now(), set[asyncio.Future[None]]()
    for number in range(count):
        saying.add(asyncio.ensure_future(say(number)))
        await asyncio.sleep(max(0.0, began + (number + 1) / A_SECOND - now()))
    await asyncio.gather(*saying)


def _observed(number: int, status: Health) -> Outgoing:
    at, target = Clock().now(), f"custom/t{number}"
    said = Observation(target=target, status=status, signal="bench", observed_at=at, stale_seconds=3600)
    id_ = f"{target}/{at.isoformat()}"
    return Outgoing(subjects.observation("bench", target), encode(said, id=id_, source="/bench", time=at), id_)
