"""Sentences of the demo about the reactor's state and the route, as they change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from bus.messages import Health
from reactor.demo import scene, story
from reactor.demo.demo_world import DemoWorld
from reactor.demo.display import Display
from reactor.demo.errors import NotAsTold
from reactor.demo.kube import Emulator
from reactor.demo.story import Story
from reactor.demo.tally import RequestCount, TrafficSecond
from reactor.demo.watcher import Watcher
from reactor.runtime.clock import Clock
from rules.core.group import Group, Holding, with_state
from rules.core.member import Member, Window
from rules.kinds.traffic.state import RouteState, TrafficState

TARGET = scene.target(scene.PRIMARY)
NOW = Clock().now()


class Heard:
    """A display that remembers."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.now: tuple[str, ...] = ()

    def title(self, text: str) -> None:
        self.lines.append(text)

    def say(self, kind: str, text: str) -> None:
        self.lines.append(f"{kind}: {text}")

    def live(self, *lines: str) -> None:
        self.now = lines

    def take(self) -> list[str]:
        """Give what was said since the last time."""
        taken, self.lines = self.lines, []
        return taken


class Stage:
    """A watcher, and what it looks at."""

    def __init__(self) -> None:
        emulator = Emulator(clock=Clock().now)
        scene.furnish(emulator)
        self.east = emulator.clusters["east"]
        # Neither the gateway nor the services are looked at.
        self.world = DemoWorld(Path(), emulator, {}, gateway=cast("Any", None), http=cast("Any", None))
        self.heard = Heard()
        shown: Display = self.heard
        self.group = Group(scene.RULE, "east/shop/TrafficSplit/checkout", TrafficState())
        self.watcher = Watcher(self.world, lambda: [self.group], Clock(), shown)

    def look(self, **members: Member) -> list[str]:
        """Let the group have these members, look once, and give what was said."""
        self.group = replace(self.group, members=dict(members))
        self.watcher.look()
        return self.heard.take()

    def primary(self, status: Health, *, settled: bool, window: Window | None = None) -> list[str]:
        return self.look(**{TARGET: Member(status, NOW, settled=settled, window=window)})

    def write(self, manager: str, *weights: int) -> None:
        patch = [{"op": "replace", "path": f"/spec/backends/{i}/weight", "value": w} for i, w in enumerate(weights)]
        self.east.patch("trafficsplits", "checkout", patch, "shop", manager=manager)


@pytest.fixture
async def stage() -> Stage:
    return Stage()


BAD = Window(healthy=False, since=NOW)
GOOD = Window(healthy=True, since=NOW)


async def test_a_change_is_said_once(stage: Stage) -> None:
    assert stage.primary(Health.HEALTHY, settled=True) == [f"probe: {TARGET} is Healthy"]
    assert stage.primary(Health.HEALTHY, settled=True) == []


async def test_a_window_is_said_when_it_opens_and_shown_while_it_runs(stage: Stage) -> None:
    stage.primary(Health.HEALTHY, settled=True)
    assert stage.primary(Health.UNHEALTHY, settled=True, window=BAD) == [
        f"probe: {TARGET} is Unhealthy",
        f"window: {TARGET} is tolerated for 5 s before its traffic moves away",
    ]
    assert stage.primary(Health.UNHEALTHY, settled=True, window=BAD) == []
    assert stage.heard.now[0].startswith(f"{TARGET} bad: ")


async def test_a_flap_is_said_to_change_nothing(stage: Stage) -> None:
    stage.primary(Health.UNHEALTHY, settled=True, window=BAD)
    assert stage.primary(Health.HEALTHY, settled=True) == [
        f"probe: {TARGET} is Healthy",
        f"window: {TARGET} changed its mind in time: nothing is done",
    ]


async def test_a_window_that_runs_out_is_no_flap(stage: Stage) -> None:
    stage.primary(Health.UNHEALTHY, settled=True, window=BAD)
    assert stage.primary(Health.UNHEALTHY, settled=False) == []
    assert stage.primary(Health.HEALTHY, settled=False, window=GOOD)[1] == (
        f"window: {TARGET} must stay good for 8 s before it gets its traffic back"
    )


async def test_what_is_held_back_is_said_with_its_reason(stage: Stage) -> None:
    stage.group = replace(stage.group, held=Holding("NoHealthySecondary", "all are bad", NOW))
    assert stage.look() == ["held: NoHealthySecondary: all are bad"]
    stage.group = replace(stage.group, held=None)
    assert stage.look() == ["held: no longer: the reason is gone"]


async def test_a_write_is_said_with_the_time_since_the_reading_that_began_it(stage: Stage) -> None:
    stage.primary(Health.UNHEALTHY, settled=True, window=BAD)
    stage.write("alert-reactor", 0, 1, 1)
    said = stage.look()
    assert len(said) == 1
    assert said[0].startswith("action: east/shop/checkout: checkout 1 → 0, checkout-west 0 → 1, checkout-central 0 → 1")
    assert said[0].endswith(" s after the first reading that said so")
    stage.write("alert-reactor", 1, 0, 0)
    assert stage.look() == [
        "action: east/shop/checkout: checkout 0 → 1, checkout-west 1 → 0, checkout-central 1 → 0",
    ]  # no reading began this one


async def test_another_writers_write_is_not_taken_for_the_reactors(stage: Stage) -> None:
    stage.write("kubectl-edit", 0, 1, 0)
    assert stage.look() == [
        "edit: by kubectl-edit: east/shop/checkout: checkout 1 → 0, checkout-west 0 → 1, checkout-central 0"
    ]


async def test_a_route_that_is_deleted_is_no_trouble(stage: Stage) -> None:
    stage.east.delete("trafficsplits", "checkout", "shop")
    stage.look()
    stage.look()


async def test_the_world_is_settled_when_all_are_healthy_and_traffic_flows(stage: Stage) -> None:
    healthy = Member(Health.HEALTHY, NOW, settled=True)
    stage.look(**{scene.target(backend): healthy for backend in scene.BACKENDS})
    assert not stage.watcher.settled  # neither the route nor traffic has been seen
    stage.group = with_state(stage.group, route=RouteState((("checkout", 1),), NOW))
    stage.world.traffic.add(TrafficSecond(1, {}, {"checkout": RequestCount(49, 1)}, (0.5, 0.5)))
    assert not stage.watcher.settled  # a request has failed
    stage.world.traffic.add(TrafficSecond(2, {}, {"checkout": RequestCount(50, 0)}))
    assert stage.watcher.settled


async def test_a_story_that_does_not_begin_says_what_it_waited_for(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(story, "READY_SECONDS", 0.0)
    told = Story(stage.world, stage.watcher, Clock(), stage.heard)
    with pytest.raises(NotAsTold, match="waited 0 s in vain for: all services healthy and traffic flowing"):
        await told.tell(0.0)
