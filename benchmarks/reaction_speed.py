"""From an observation on the bus to the action on the bus, 200 a second, where nothing is tolerated.

Beside it, on the same server and as often, what no reactor can save: publish, deliver, publish. Both are taken when
the last message passes through the server, before it is stored.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta

from benchmarks.measure import Result, spread
from benchmarks.world import World, until, world
from bus import subjects
from bus.envelope import encode
from bus.messages import Health, Observation
from bus.port import Bus, Outgoing
from bus.topology import FACTS, PARTITIONS
from reactor.runtime.clock import Clock

ROUTES = 500
WAVES = 4
A_SECOND = 200
NOBODYS = PARTITIONS
"""A partition that no decider reads."""
SETTLE_SECONDS = 0.5
RULE = """
- name: app{n}
  kind: TrafficFailover
  mode: Enforce
  route: {{cluster: east, kind: TrafficSplit, namespace: shop, name: app{n}}}
  backends:
  - {{service: app{n}, target: custom/app{n}}}
  - {{service: app{n}-west, target: custom/app{n}-west}}
  tolerationSeconds: 0
  recoverySeconds: 0
"""


async def observation_to_action() -> Result:
    """Each route's primary turns bad, then good, and so on."""
    rules = "apiVersion: reactor/v1\nrules:" + "".join(RULE.format(n=n) for n in range(ROUTES))
    async with world(ROUTES, rules) as w:
        for end in ("", "-west"):
            await w.bus.publish_all([_observed(f"app{n}{end}", Health.HEALTHY) for n in range(ROUTES)])
        await w.known(ROUTES, 2)
        bare = spread(await _bare(w.bus))
        ours = spread(await _acted(w))
    figures = {
        "observations": ROUTES * WAVES, "a_second": A_SECOND, **ours, "bare": bare,
        "ratio_p50": round(ours["p50_ms"] / bare["p50_ms"], 1), "ratio_p99": round(ours["p99_ms"] / bare["p99_ms"], 1),
    }  # fmt: skip
    what = "observation → action published, nothing tolerated"
    return Result("observation-to-action", what, figures, {"ratio_p99": "≤ 3"})


async def _acted(w: World) -> list[float]:
    """Give the seconds from each observation to its action."""
    began: dict[str, float] = {}
    seconds: list[float] = []

    async def acted(body: bytes) -> None:
        if (at := began.pop(json.loads(body)["data"]["object"], None)) is not None:
            seconds.append(time.perf_counter() - at)

    stop = await w.bus.listen(f"{subjects.ROOT}.actions.>", acted)
    for wave in range(WAVES):
        status = Health.HEALTHY if wave % 2 else Health.UNHEALTHY

        async def say(number: int, status: Health = status) -> None:
            began[f"east/shop/TrafficSplit/app{number}"] = time.perf_counter()
            await w.bus.publish(_observed(f"app{number}", status))

        await _paced(say, ROUTES)
        await w.moves.reach((wave + 1) * ROUTES)
        await asyncio.sleep(SETTLE_SECONDS)
    await stop()
    return seconds


async def _bare(bus: Bus) -> list[float]:
    """Give the seconds from a message to another that is published when it is delivered."""
    count = ROUTES * WAVES
    began: dict[bytes, float] = {}
    seconds: list[float] = []
    into, out = subjects.fact(NOBODYS, "bench", "bare"), f"{subjects.ROOT}.decisions.bench.bare"

    async def passed(body: bytes) -> None:
        if (at := began.pop(body, None)) is not None:
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

    stop = await bus.listen(out, passed)
    delivering = asyncio.create_task(deliver())
    await asyncio.sleep(SETTLE_SECONDS)
    await _paced(say, count)
    await until(lambda: len(seconds) == count)
    delivering.cancel()
    await asyncio.gather(delivering, return_exceptions=True)
    await stop()
    return seconds


async def _paced(say: Callable[[int], Awaitable[None]], count: int) -> None:
    """Do it A_SECOND times a second, whether the one before has ended or not."""
    now = asyncio.get_running_loop().time
    began, saying = now(), set[asyncio.Future[None]]()
    for number in range(count):
        saying.add(asyncio.ensure_future(say(number)))
        await asyncio.sleep(max(0.0, began + (number + 1) / A_SECOND - now()))
    await asyncio.gather(*saying)


def _observed(service: str, status: Health) -> Outgoing:
    at, target = Clock().now(), f"custom/{service}"
    said = Observation(target=target, status=status, signal="bench", observed_at=at, stale_seconds=3600)
    id_ = f"{service}/{at.isoformat()}"
    return Outgoing(subjects.observation("bench", target), encode(said, id=id_, source="/bench", time=at), id_)
