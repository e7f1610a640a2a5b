"""`make bench-quick`: whether the hot path has become slower, within three minutes.

Three ratios of processor time, each to the bare library or server in the same process, measured three times. Where two
of the three medians are worse than those in `kept.json` by more than 30 %, it fails; one that is not there yet is only
shown. `--keep` writes them again.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from benchmarks import rules_speed
from benchmarks.observations_speed import bare_hops, say
from bus.embedded import EmbeddedServer
from bus.jetstream import JetStreamBus, provision
from bus.messages import Health, WebhookPost
from reactor.decide.decider import Decider
from reactor.decide.partition_context import PartitionContext
from reactor.route.publisher import FactPublisher
from reactor.route.router import Router
from reactor.runtime import telemetry
from reactor.runtime.clock import Clock
from rules import loader
from rules.engine.routing import Routing

KEPT = Path(__file__).with_name("kept.json")
TIMES, WORSE = 3, 1.3
ROUTES, BACKENDS, ROUNDS, PARTITIONS = 50, 10, 2, 64
RULE = """- name: app{n}
  kind: TrafficFailover
  mode: Enforce
  route: {{cluster: east, kind: TrafficSplit, namespace: shop, name: app{n}}}
  tolerationSeconds: 3600
  recoverySeconds: 3600
  backends:
"""


class _NoAlerts:
    async def take_post(self, post: WebhookPost) -> None:
        raise AssertionError(post)

    async def sweep(self) -> None:
        """Do nothing: nothing is due."""

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def observation() -> float:
    """CPU of an observation from the inbox to its decision, beside that of the same three hops with nats-py alone."""
    return asyncio.run(_observation())


async def _observation() -> float:
    names = [f"app{n}-{k}" for k in range(BACKENDS) for n in range(ROUTES)]
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        server = await stack.enter_async_context(EmbeddedServer(Path(folder) / "nats"))
        began = time.process_time()
        await bare_hops(server, ROUNDS * len(names))
        bare = time.process_time() - began
        bus = await stack.enter_async_context(JetStreamBus.connect(server.url, name="bench"))
        await provision(bus)
        routing, clock = Routing.of(loader.load_rules([("bench.yaml", _rules())])), Clock()
        router = Router(bus, FactPublisher(bus, routing, PARTITIONS, clock, source="/bench"), _NoAlerts(), clock)
        decider = Decider(PartitionContext(bus, clock, routing, PARTITIONS, "one"))
        tasks = [asyncio.create_task(role.run()) for role in (router, decider)]
        before = _taken()
        await say(bus, names, Health.HEALTHY, 0)
        await _until(tasks, before + len(names))
        began = time.process_time()
        for number in range(1, ROUNDS + 1):
            await say(bus, names, Health.UNHEALTHY if number % 2 else Health.HEALTHY, number)
        await _until(tasks, before + (ROUNDS + 1) * len(names))
        ours = time.process_time() - began
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return ours / bare


def _rules() -> str:
    rules = (
        RULE.format(n=n) + "".join(f"  - {{service: app{n}-{k}, target: custom/app{n}-{k}}}\n" for k in range(BACKENDS))
        for n in range(ROUTES)
    )
    return "apiVersion: reactor/v1\nrules:\n" + "".join(rules)


async def _until(tasks: list[asyncio.Task[None]], count: float) -> None:
    while _taken() < count:
        for task in tasks:
            if task.done():
                task.result()
        await asyncio.sleep(0.05)


def _taken() -> float:
    return sum(
        one.value for metric in telemetry.facts.collect() for one in metric.samples if one.name.endswith("_total")
    )


RATIOS: dict[str, Callable[[], float]] = {
    "load": lambda: float(rules_speed.load_rules().figures["ratio"]),
    "simulate": lambda: float(rules_speed.simulate().figures["ratio"]),
    "observation": observation,
}


def _median(name: str, measure: Callable[[], float]) -> float:
    ratios = [measure() for _ in range(TIMES)]
    print(f"{name}: {', '.join(f'{ratio:.2f}' for ratio in ratios)}", file=sys.stderr, flush=True)
    return statistics.median(ratios)


def main() -> int:
    """Measure, compare, and give the exit code."""
    medians = {name: round(_median(name, measure), 2) for name, measure in RATIOS.items()}
    if "--keep" in sys.argv[1:]:
        KEPT.write_text(json.dumps(medians, indent=2) + "\n", "utf-8")
    kept = json.loads(KEPT.read_text("utf-8"))
    worse = [name for name, median in medians.items() if name in kept and median > WORSE * kept[name]]
    print(json.dumps({"medians": medians, "kept": kept, "worse": worse, "load": os.getloadavg()}))
    return int(len(worse) >= 2)


if __name__ == "__main__":
    sys.exit(main())
