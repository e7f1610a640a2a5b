"""Two rules, three zones each, several operators, executors that fail or fall silent, and a reactor that restarts.

Whatever happens: never two zones of a cluster, never the last one, never a service's only zone, the network is opened
before anything else comes back, undone in reverse, nothing opened that is not healthy; and whatever has failed can be
cleared.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bus.messages import (
    Fact,
    FailbackZone,
    Health,
    IsolateZone,
    Observation,
    Outcome,
    Pause,
    Resume,
    RetryZone,
    ZoneInventory,
    Zones,
    ZoneStep,
)
from rules.engine.decide import Decision
from rules.engine.group_codec import dump_group, load_group
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.rehearsal.simulation import at
from tests.examples import examples
from tests.unit.rules.zone.builders import ZONES, zone_rule

pytestmark = pytest.mark.many

CLUSTERS = ("prod", "test")
SIGNALS = ("nodes", "prom")
LASTING = ("Fence", "ShiftTraffic", "Evacuate", "CutNetwork")
"""Steps whose effect lasts; Evacuate with the force rung leaves a taint."""
RULES = [
    zone_rule(name=cluster, cluster=cluster, force="AfterTimeout", recoverySeconds=60, cooldownSeconds=100)
    for cluster in CLUSTERS
]
zones, clusters, signals = st.sampled_from(ZONES), st.sampled_from(CLUSTERS), st.sampled_from(SIGNALS)
people = st.sampled_from(("ann", "bob", "eve"))


class Operators(RuleBasedStateMachine):
    """A book of both rules, and the world that its actions change."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.group_store = GroupStore(Routing(RULES))
        self.stored: dict[tuple[str, str], bytes] = {}
        self.flying: dict[str, ZoneStep] = {}
        self.known: set[str] = set()
        self.newest: dict[str, int] = defaultdict(int)
        self.standing: dict[tuple[str, str], list[str]] = defaultdict(list)
        self.says: dict[tuple[str, str, str], str] = {}
        self.listed: dict[str, Zones] = {}
        self.paused = False
        self.allowed: set[str] = set()
        self.forced: dict[str, set[str]] = defaultdict(set)

    def take(self, *facts: Fact) -> None:
        self.follow(self.group_store.apply(facts, at(self.now)))

    def follow(self, decisions: list[Decision]) -> None:
        for decision in decisions:
            self.stored[decision.group.rule, decision.group.object] = dump_group(decision.group)
        for key in self.group_store.dropped:
            self.stored.pop(key, None)
        for decision in decisions:
            for action in decision.actions:
                assert isinstance(action, ZoneStep)
                self.flying[action.id] = action
                if action.id not in self.known:
                    self.known.add(action.id)
                    self.check(action)

    def check(self, action: ZoneStep) -> None:
        """Check the conditions of a step when it is requested."""
        cluster, zone = action.cluster, action.zone
        asked_back = action.undo and action.because in ("Aborted", "Commanded")
        assert asked_back or not self.paused, "only a person's way back"
        others = [steps for (where, name), steps in self.standing.items() if where == cluster and name != zone]
        here = self.standing[cluster, zone]
        if action.undo:
            assert "CutNetwork" not in here or action.step == "CutNetwork", "network before compute"
            if action.step in LASTING and action.step != "CutNetwork":
                later = LASTING[LASTING.index(action.step) + 1 : 3]
                assert not set(later) & set(here), "last first"
            waived = action.because == "Aborted" or zone in self.forced[cluster]
            if action.phase == "Failback" and not waived:
                said = {self.says.get((cluster, zone, name)) for name in SIGNALS}
                enough = {"Healthy"}, {"Healthy", None} if action.because == "Commanded" else {"Healthy"}
                assert said in enough, "only a healthy zone is opened"
            return
        assert not any(others), "one zone at a time"
        if action.status != "Done":  # a finished isolation is checked again, whatever has become of the others
            seen = self.listed[cluster]
            assert any(one.nodes for name, one in seen.zones.items() if name != zone), "never the last one"
            assert not set(seen.single_zone_services) - self.allowed, "never a service's only zone"
            assert seen.api_reachable

    @initialize(known=st.sampled_from((True, True, True, False)))
    def begin(self, known: bool) -> None:
        """Mostly all is known and well: what goes wrong from there is what matters."""
        for cluster in CLUSTERS if known else ():
            self.all_is_well(cluster)

    def all_is_well(self, cluster: str) -> None:
        self.list_zones(cluster, dict.fromkeys(ZONES, 5), 5, "a", (), True)
        for zone in ZONES:
            self.both_say(cluster, zone, Health.HEALTHY)

    @rule(cluster=clusters, zone=zones)
    def go_dark(self, cluster: str, zone: str) -> None:
        """The control plane loses a zone, for longer than pods are asked."""
        self.list_zones(cluster, dict.fromkeys(ZONES, 5), 0, zone, (), True)
        self.wait(301)

    @rule(cluster=clusters, zone=zones)
    def lose_all_others(self, cluster: str, zone: str) -> None:
        """An autoscaler takes all nodes away but those of one zone."""
        self.list_zones(cluster, {name: 5 * (name == zone) for name in ZONES}, 5, zone, (), True)

    @rule(cluster=clusters)
    def recover(self, cluster: str) -> None:
        self.all_is_well(cluster)
        self.wait(61)

    @rule(cluster=clusters, zone=zones, signal=signals, status=st.sampled_from(list(Health)))
    def observe(self, cluster: str, zone: str, signal: str, status: Health) -> None:
        self.wait(0.5)  # what a source says of one moment, it says once
        self.says[cluster, zone, signal] = status.value
        target = f"zone/{cluster}/{zone}"
        self.take(Observation(target=target, status=status, signal=signal, observed_at=at(self.now)))

    @rule(cluster=clusters, zone=zones, status=st.sampled_from((Health.HEALTHY, Health.UNHEALTHY)))
    def both_say(self, cluster: str, zone: str, status: Health) -> None:
        for signal in SIGNALS:
            self.observe(cluster, zone, signal, status)

    @rule(
        cluster=clusters, nodes=st.fixed_dictionaries({zone: st.sampled_from((0, 5, 5, 5)) for zone in ZONES}),
        well=st.sampled_from((0, 5, 5, 5)), sick=zones, services=st.sampled_from(((), (), ("shop/db",))),
        reachable=st.sampled_from((True, True, True, False)),
    )  # fmt: skip
    def list_zones(
        self, cluster: str, nodes: dict[str, int], well: int, sick: str, services: tuple[str, ...], reachable: bool
    ) -> None:
        found = {
            zone: ZoneInventory(nodes=count, healthy_nodes=min(count, well if zone == sick else 5))
            for zone, count in nodes.items()
        }
        fact = Zones(
            cluster=cluster, zones=found, demand_nodes=5, quorum_members=dict.fromkeys(ZONES, 1),
            single_zone_services=services, api_reachable=reachable, observed_at=at(self.now),
        )  # fmt: skip
        if reachable or cluster not in self.listed:
            self.listed[cluster] = fact
        else:  # who could not ask has seen nothing
            self.listed[cluster] = self.listed[cluster].model_copy(update={"api_reachable": False})
        self.take(fact)

    @rule(cluster=clusters, zone=zones, by=people, force=st.booleans(), allow=st.booleans())
    def isolate(self, cluster: str, zone: str, by: str, force: bool, allow: bool) -> None:
        allowed = ("shop/db",) if allow else ()
        self.allowed |= set(allowed)
        self.take(
            IsolateZone(
                rule=cluster, zone=zone, by=by, reason="INC", force=force, allow_single_zone=allowed,
                observed_at=at(self.now),
            )
        )  # fmt: skip

    @rule(cluster=clusters, zone=zones, steps=st.integers(1, 4))
    def get_on(self, cluster: str, zone: str, steps: int) -> None:
        """A person isolates, and the executors do so many steps."""
        self.isolate(cluster, zone, "ann", False, False)
        for _ in range(steps):
            if self.flying:
                self.execute(max(self.flying, key=lambda name: self.flying[name].generation))

    @rule(cluster=clusters, zone=zones, by=people, force=st.sampled_from((False, False, False, True)))
    def fail_back(self, cluster: str, zone: str, by: str, force: bool) -> None:
        if force:
            self.forced[cluster].add(zone)
        self.take(
            FailbackZone(rule=cluster, zone=zone, by=by, reason="INC over", force=force, observed_at=at(self.now))
        )

    @rule(cluster=clusters, zone=zones, by=people)
    def retry(self, cluster: str, zone: str, by: str) -> None:
        self.take(RetryZone(rule=cluster, zone=zone, by=by, reason="again", observed_at=at(self.now)))

    @rule(stop=st.booleans())
    def pause(self, stop: bool) -> None:
        self.wait(0.5)  # of a pause and a resume in one moment the resume counts
        self.paused = stop
        word: Any = Pause if stop else Resume
        self.take(word(rule="*", by="ann", reason="upgrade", observed_at=at(self.now)))

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), done=st.sampled_from((True, True, True, False)), silent=st.sampled_from((False, False, True)))
    def carry_out(self, data: st.DataObject, done: bool, silent: bool) -> None:
        """An executor takes one of the actions, does it or not, and answers or not."""
        self.execute(data.draw(st.sampled_from(sorted(self.flying))), done=done, silent=silent)

    def execute(self, name: str, *, done: bool = True, silent: bool = False) -> None:
        action = self.flying.pop(name)
        if action.generation < self.newest[action.object]:
            status = "Refused"
        elif done:
            status = "Done"
            self.newest[action.object] = action.generation
            here = self.standing[action.cluster, action.zone]
            if action.undo and action.step in here:
                here.remove(action.step)
            elif not action.undo and action.step in LASTING and action.step not in here:
                here.append(action.step)
        else:
            status = "Failed"
        if not silent:
            self.take(
                Outcome(action=name, rule=action.rule, object=action.object, status=status, observed_at=at(self.now))  # type: ignore[arg-type]
            )

    @precondition(lambda self: self.flying)
    @rule()
    def all_done(self) -> None:
        """The executors have a good minute."""
        while self.flying:
            self.execute(max(self.flying, key=lambda name: self.flying[name].generation))

    @rule(seconds=st.sampled_from((1.0, 10.0, 30.0, 60.0, 130.0, 1000.0)))
    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        while (alarm := self.group_store.next_alarm()) is not None and alarm <= at(end):
            self.now = max(self.now, (alarm - at(0)).total_seconds())
            self.follow(self.group_store.fire_due(max(alarm, at(self.now))))
        self.now = end

    @rule()
    def restart(self) -> None:
        self.group_store = GroupStore(Routing(RULES), [load_group(stored) for stored in self.stored.values()])

    @invariant()
    def never_two_zones_of_a_cluster(self) -> None:
        for cluster in CLUSTERS:
            assert sum(1 for (where, _), steps in self.standing.items() if where == cluster and steps) <= 1

    def teardown(self) -> None:
        """Check that all can be cleared: with everything well, and a person who says so."""
        self.pause(stop=False)
        for cluster in CLUSTERS:
            self.all_is_well(cluster)
        for _ in range(30):
            self.now += 1
            for name, group in [(key[0], group) for key, group in self.group_store.groups.items()]:
                if group.state.isolation is not None:
                    self.retry(name, group.state.isolation.zone, "ann")
                    self.fail_back(name, group.state.isolation.zone, "ann", False)
            if self.flying:
                self.all_done()
            self.wait(130.0)
        for group in self.group_store.groups.values():
            assert group.state.isolation is None
        assert not any(self.standing.values()), "nothing is left standing"


Operators.TestCase.settings = settings(max_examples=examples(80), stateful_step_count=40)
TestOperators = Operators.TestCase


class Forced(Operators):
    """The same, and in the end no zone is well again: what is isolated is brought back by force alone."""

    def teardown(self) -> None:
        self.pause(stop=False)
        for _ in range(40):
            self.now += 1
            for name, group in [(key[0], group) for key, group in self.group_store.groups.items()]:
                if group.state.isolation is not None:
                    self.retry(name, group.state.isolation.zone, "ann")
                    self.fail_back(name, group.state.isolation.zone, "ann", True)
            if self.flying:
                self.all_done()
            self.wait(130.0)
        for group in self.group_store.groups.values():
            assert group.state.isolation is None
        assert not any(self.standing.values()), "nothing is left standing"


Forced.TestCase.settings = settings(max_examples=examples(40), stateful_step_count=40)
TestForced = Forced.TestCase
