"""Two hundred actions on a cluster that does not answer, and one on a cluster that does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import yaml

from bus.messages import Action, Outcome, RouteRef, SetWeights
from reactor.actions.execution import ExecutionContext
from reactor.execute.executor import Executor
from tests.integration.roles.conftest import World, eventually, running
from tests.integration.roles.test_executing import action, ask
from tests.unit.webhook.builders import counted

Make = Callable[..., AbstractAsyncContextManager[World]]
DEAD = 200
TIME_OUT = 60.0


def rules() -> str:
    routes = [("dead", number) for number in range(DEAD)] + [("well", 0)]
    made = [
        {
            "name": f"{cluster}-{number}", "kind": "TrafficFailover", "mode": "Enforce", "tolerationSeconds": 0,
            "route": {"cluster": cluster, "kind": "TrafficSplit", "namespace": "shop", "name": f"web-{number}"},
            "backends": [{"service": "checkout"}, {"service": "checkout-west"}],
        }
        for cluster, number in routes
    ]  # fmt: skip
    return yaml.safe_dump({"apiVersion": "reactor/v1", "rules": made}, default_flow_style=False)


def on(world: World, cluster: str, number: int) -> SetWeights:
    object_ = f"{cluster}/shop/TrafficSplit/web-{number}"
    route = RouteRef(cluster=cluster, kind="TrafficSplit", namespace="shop", name=f"web-{number}")
    rule = f"{cluster}-{number}"
    return action(world).model_copy(
        update={"id": f"{rule}/{object_}/1", "rule": rule, "object": object_, "route": route}
    )


def busy(cluster: str) -> float:
    return counted("reactor_action_slots_refused_total", peer=cluster, reason="busy")


async def test_actions_on_a_dead_cluster_hold_up_no_other_cluster(make_world: Make) -> None:
    async with make_world(rule=rules()) as world, world.answers():
        done: list[str] = []
        before = {cluster: busy(cluster) for cluster in ("dead", "well")}

        async def carry_out(one: Action, _: ExecutionContext) -> Outcome:
            assert isinstance(one, SetWeights)
            if one.route.cluster == "dead":
                await asyncio.sleep(TIME_OUT)
                now = world.clock.now()
                return Outcome(action=one.id, status="Failed", reason="ApiUnavailable", observed_at=now)
            done.append(one.id)
            return Outcome(action=one.id, status="Done", observed_at=world.clock.now())

        executor = Executor(world.bus, world.clock, world.publisher, carry_out, concurrency=64)
        async with running(executor.run):
            for number in range(DEAD):
                await ask(world, on(world, "dead", number), f"dead{number}")
            began = world.clock.monotonic()
            well = on(world, "well", 0)
            await ask(world, well, "well")
            await eventually(lambda: done == [well.id], within=TIME_OUT)
            took = world.clock.monotonic() - began
        print(f"behind {DEAD} actions on a dead cluster: done after {took:.2f} s")
        assert took < TIME_OUT / 2
        assert busy("dead") > before["dead"]
        assert busy("well") == before["well"]
