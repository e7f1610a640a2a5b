"""A rule and its carrier together: a crash anywhere between deciding and hearing the outcome changes neither end.

The four moments are those at which tests/e2e/test_zones.py kills a real process; here they are hit at every step, and
every write of both ways is hit too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from bus.messages import Fact, Health, Observation, Outcome, ZoneInventory, Zones, ZoneStep
from reactor.clients.kubernetes_port import KubeApi
from reactor.demo.kube import EmulatedCluster
from rules.engine.decide import Decision
from rules.engine.group_codec import dump_group, load_group
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.kinds.zone.model import ZoneIsolation
from rules.kinds.zone.state import Isolation, ZoneState
from tests.integration.actions.zone.aws import Crash
from tests.integration.actions.zone.scene import ZONES, CrashingApi, Hurried, Reactor, furnish, picture, third
from tests.integration.actions.zone.test_whole import (
    WRITES_BACK,
    WRITES_THERE,
    after_evacuation,
    check_isolated,
    isolated_by,
)
from tests.unit.actions.zone.builders import ZONE
from tests.unit.rules.zone.builders import zone_rule


@pytest.fixture
def isolated() -> dict[str, Any]:
    """State at the end of every failover."""
    return isolated_by("zones")


RULE: ZoneIsolation = zone_rule(
    zones=[{"name": name, "id": id_} for name, id_ in ZONES.items()], drainSeconds=5,
    network={"provider": "LabelledNetworkPolicy"}, failback={"batches": {"bakeSeconds": 60}},
)  # fmt: skip
ANSWERS = 12
"""Number of requests and answers until the first node is back; from there on it is the same again and again."""
LOOKS_MAX = 2000


@dataclass
class Life:
    """A decider and an executor in one process, and the store that outlives it."""

    api: KubeApi
    clock: Hurried = field(default_factory=Hurried)
    stored: dict[Any, bytes] = field(default_factory=dict)
    dies: Callable[[str], bool] = lambda _: False
    deaths: int = 0
    flying: dict[str, ZoneStep] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.group_store = GroupStore(Routing([RULE]))

    def reach(self, moment: str) -> None:
        if self.dies(moment):
            raise Crash(moment)

    def be_born_again(self, api: KubeApi) -> None:
        """Only what was stored is known to the next process."""
        self.deaths += 1
        self.api, self.dies, self.flying = api, lambda _: False, {}
        self.group_store = GroupStore(Routing([RULE]), [load_group(stored) for stored in self.stored.values()])

    def follow(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            self.stored[decision.group.rule, decision.group.object] = dump_group(decision.group)
        if any(decision.actions for decision in decisions):
            self.reach("decided")
        for decision in decisions:
            for action in decision.actions:
                assert isinstance(action, ZoneStep)
                self.flying[action.id] = action
                self.asked.append(("-" if action.undo else "+") + action.step)

    def hear(self, *facts: Fact) -> None:
        self.follow(self.group_store.apply(facts, self.clock.now()))

    def say(self, status: Health) -> None:
        target, now = RULE.target(ZONE), self.clock.now()
        self.hear(
            *(Observation(target=target, status=status, signal=name, observed_at=now) for name in ("prom", "nodes"))
        )

    @property
    def isolation(self) -> Isolation | None:
        (group,) = self.group_store.groups.values()
        assert isinstance(group.state, ZoneState)
        return group.state.isolation

    async def until(self, holds: Callable[[Isolation | None], bool]) -> None:
        for _ in range(LOOKS_MAX):
            if holds(self.isolation):
                return
            await self._live()
        raise AssertionError(self.isolation)

    async def _live(self) -> None:
        if self.flying:
            await self._carry_out(self.flying.pop(max(self.flying)))
            return
        alarm = self.group_store.next_alarm()
        assert alarm is not None, "nothing is on its way, and nobody will look again"
        self.clock.forward(max((alarm - self.clock.now()).total_seconds(), 0))
        self.follow(self.group_store.fire_due(self.clock.now()))

    async def _carry_out(self, action: ZoneStep) -> None:
        self.reach("taken")
        outcome: Outcome = await Reactor({"prod": self.api}, self.clock).once(action)
        self.reach("carried out")
        self.hear(outcome.model_copy(update={"rule": action.rule, "object": action.object}))
        self.reach("answered")


async def lived(east: EmulatedCluster, life: Life, sound: KubeApi, isolated: dict[str, Any]) -> None:
    """A whole life of a zone: sick, isolated, well, and back as it was. A process that dies is started again."""
    before = picture(east)
    now = life.clock.now()
    zones = {name: ZoneInventory(nodes=4, healthy_nodes=4) for name in ZONES}
    facts: list[Fact] = [Zones(cluster="prod", zones=zones, demand_nodes=4, observed_at=now)]
    life.hear(*facts)

    async def until(holds: Callable[[Isolation | None], bool]) -> None:
        try:
            await life.until(holds)
        except Crash:
            life.be_born_again(sound)
            await life.until(holds)

    life.say(Health.UNHEALTHY)
    await until(lambda isolation: isolation is not None and (isolation.phase, isolation.status) == ("Failover", "Done"))
    check_isolated(east, isolated)
    life.say(Health.HEALTHY)
    await until(lambda isolation: isolation is None)
    assert picture(east) == after_evacuation(before)


def at(moment: str, number: int) -> Callable[[str], bool]:
    """Die when this moment comes for the n-th time (from 0)."""
    left = [number]

    def dies(reached: str) -> bool:
        if reached == moment:
            left[0] -= 1
        return left[0] < 0 and reached == moment

    return dies


async def test_a_whole_life_asks_for_each_step_once(
    east: EmulatedCluster, api: KubeApi, isolated: dict[str, Any]
) -> None:
    furnish(east)
    counting = CrashingApi(api)
    life = Life(counting)
    await lived(east, life, api, isolated)
    print(life.asked)
    assert (len(counting.writes), life.deaths) == (WRITES_THERE + WRITES_BACK, 0)


@pytest.mark.long
@pytest.mark.parametrize("number", range(ANSWERS))
@pytest.mark.parametrize("moment", ["decided", "taken", "carried out", "answered"])
async def test_a_death_at_every_step_changes_neither_end(
    east: EmulatedCluster, api: KubeApi, isolated: dict[str, Any], moment: str, number: int
) -> None:
    furnish(east)
    life = Life(api, dies=at(moment, number))
    await lived(east, life, api, isolated)
    assert life.deaths == 1


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", third(WRITES_THERE + WRITES_BACK))
async def test_a_death_at_every_write_changes_neither_end(
    east: EmulatedCluster, api: KubeApi, isolated: dict[str, Any], number: int, after: bool
) -> None:
    furnish(east)
    life = Life(CrashingApi(api, number, after))
    await lived(east, life, api, isolated)
    assert life.deaths == 1
