"""Output for a history with zones: the lines of `reactor simulate`, rule tests, and the plan that a drill shows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rules.core.errors import InvalidFiles
from rules.core.group import Group
from rules.engine.decide import decide
from rules.engine.group_codec import dump_group, load_group
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.kinds.zone.plan import mode_of, plan
from rules.kinds.zone.record import zone_seen
from rules.kinds.zone.request import request_for
from rules.kinds.zone.state import ZoneState
from rules.rehearsal import history
from rules.rehearsal.rule_tests import tester
from rules.rehearsal.rule_tests.suite_loader import RuleTestSuite
from rules.rehearsal.simulation import Simulator
from rules.rehearsal.simulation import at as at_
from rules.rehearsal.simulator import simulate
from tests.unit.rules.builders import rule_file, rule_set
from tests.unit.rules.zone.builders import STEPS, ZONES, failback, healthy, isolate, listed, retry, unhealthy, zone_rule

RULE = {
    "name": "prod-zones", "kind": "ZoneIsolation", "mode": "Enforce", "carrier": "Kubernetes", "cluster": "prod",
    "zones": [
        {"name": f"eu-central-1{letter}", "id": f"euc1-az{number}"} for number, letter in enumerate("abc", start=1)
    ],
    "tolerationSeconds": 300, "recoverySeconds": 1800,
}  # fmt: skip
ZONE = "eu-central-1a"
NAMES = [f"eu-central-1{letter}" for letter in "abc"]
STANDING: dict[str, Any] = {
    "cluster": "prod", "zones": {name: {"nodes": 5, "healthyNodes": 5} for name in NAMES}, "demandNodes": 8,
    "quorumMembers": dict.fromkeys(NAMES, 1), "singleZoneServices": [],
}  # fmt: skip


def lines(*events: dict[str, Any], until: float = 1000) -> list[dict[str, Any]]:
    given = history.load_history([json.dumps(event) for event in events], "zones.jsonl").events
    return [json.loads(line) for line in simulate(rule_set(RULE).rules, given, until=until)]


def burning(zone: str = ZONE) -> list[dict[str, Any]]:
    return [
        {"at": 0, "observe": {"target": f"zone/prod/{zone}", "status": "Unhealthy", "signal": name}}
        for name in ("nodes", "slo")
    ]


def test_a_step_is_a_line_with_the_keys_of_the_contract() -> None:
    found = lines({"at": 0, "inventory": {"zones": STANDING}}, *burning())
    assert found[0] == {
        "at": 300.0, "rule": "prod-zones", "action": "ZoneStep", "object": "prod/eu-central-1a", "phase": "Failover",
        "status": "InProgress", "step": "Fence", "because": "ZoneUnhealthy", "id": "prod-zones/prod/eu-central-1a/1",
    }  # fmt: skip
    assert [line["step"] for line in found] == list(STEPS)


def test_a_hold_is_a_line_about_the_zone() -> None:
    leases = dict.fromkeys(NAMES, 0.6)
    found = lines({"at": 0, "inventory": {"zones": STANDING | {"leasesExpired": leases}}}, *burning())
    assert found == [
        {
            "at": 300.0, "rule": "prod-zones", "held": "WidespreadFailure", "object": "prod/eu-central-1a",
            "detail": "60% of leases elsewhere have expired",
        }
    ]  # fmt: skip


def test_a_history_without_an_inventory_of_zones_isolates_nothing() -> None:
    assert [line.get("held") for line in lines(*burning())] == ["ZonesUnknown"]


def test_people_speak_in_a_history() -> None:
    words = {"rule": "prod-zones", "zone": ZONE, "by": "ann", "reason": "INC-7"}
    found = lines(
        {"at": 0, "inventory": {"zones": STANDING}}, {"at": 9, "command": {"isolateZone": words}},
        {"at": 20, "command": {"failbackZone": words}},
    )  # fmt: skip
    assert [(line["at"], line["step"]) for line in found if "step" in line] == [(9.0, step) for step in STEPS]
    assert found[-1]["held"] == "ZoneNotRecovered"


def suite(**test: Any) -> RuleTestSuite:
    files = {"rules.yaml": rule_file(RULE)}
    given = {"name": "zones", "intervalSeconds": 60, "expect": [], "inputs": []} | test
    text = json.dumps({"apiVersion": "reactor/v1", "ruleFiles": ["rules.yaml"], "tests": [given]})
    return tester.load_suite(text, "rules_test.yaml", files.__getitem__)


def test_a_rule_test_knows_zones_and_commands() -> None:
    command = {"at": 60, "isolateZone": {"rule": "prod-zones", "zone": ZONE}}
    expect = [{"at": 60, "action": "ZoneStep", "step": step, "undo": False, "phase": "Failover"} for step in STEPS]
    found = suite(inventory=[{"zones": STANDING}], commands=[command], expect=expect)
    assert [result.passed for result in tester.run(found)] == [True]
    wrong = suite(inventory=[{"zones": STANDING}], commands=[command], expect=expect[1:])
    assert [result.passed for result in tester.run(wrong)] == [False]


@pytest.mark.parametrize(
    ("test", "says"),
    [
        ({"inventory": [{"at": 5}]}, "exactly one kind of inventory"),
        ({"inventory": [{"zones": {"cluster": "prod", "zones": {ZONE: {"nodes": -1, "healthyNodes": 0}}}}]}, "nodes"),
        ({"commands": [{"at": 5}]}, "exactly one command"),
        ({"commands": [{"at": 5, "isolateZone": {"rule": "prod-zones"}}]}, "zone: required"),
    ],
)
def test_a_mistake_in_a_rule_test_is_told(test: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidFiles) as caught:
        suite(**test)
    assert says in str(caught.value)


def group_at(second: float, *events: list[Any]) -> Group:
    group = Group("zones", "prod", ZoneState())
    for when, fact in sorted((event for some in events for event in some), key=lambda event: event[0]):
        group = decide(zone_rule(), group, [fact], at_(when)).group
    return decide(zone_rule(), load_group(dump_group(group)), [], at_(second)).group


def test_a_drill_shows_every_step_both_ways_and_what_each_guard_says() -> None:
    group = group_at(3, listed(demand_nodes=11), healthy(*ZONES, at=0), unhealthy("a", at=1))
    found = plan(zone_rule(), request_for(zone_rule(), group, "a", at_(3), by_hand=True), "degraded")
    assert [step.step for step in found.failover] == list(STEPS)
    assert [step.step for step in found.failback] == ["CutNetwork", "ShiftTraffic", "Fence"]
    assert [check.reason for check in found.guards if not check.passed] == ["InsufficientCapacity"]
    assert not found.admitted
    passed_over = [check.detail for check in found.guards if "started by hand" in check.detail]
    assert passed_over == ["skipped, started by hand: bad for 2 s; tolerationSeconds is 10"]


def test_a_plan_knows_a_dead_zone() -> None:
    group = group_at(400, listed(nodes={"a": (5, 0), "b": (5, 5)}))
    assert [mode_of(zone_seen(group.state, "a"), at_(second)) for second in (299, 300, 301)] == [
        "degraded", "degraded", "dead",
    ]  # fmt: skip


@pytest.mark.parametrize("outcomes", [True, False])
def test_a_restart_after_every_decision_changes_nothing(outcomes: bool) -> None:
    events = [
        *listed(), *healthy(*ZONES, at=0), *unhealthy("a", at=100), *isolate("b", at=130), *healthy("a", at=500),
        *unhealthy("a", at=3000), *failback("a", at=3100), *retry("a", at=4000),
    ]  # fmt: skip
    assert played(events, outcomes=outcomes, restarts=True) == played(events, outcomes=outcomes, restarts=False) != []


def played(events: list[Any], *, outcomes: bool, restarts: bool) -> list[Any]:
    routing = Routing([zone_rule()])
    player = Simulator(GroupStore(routing), outcomes=outcomes)
    found = []
    for when, fact in [*sorted(events, key=lambda event: event[0]), (9000.0, None)]:
        while (alarm := player._group_store.next_alarm()) is not None and alarm < at_(when):
            found += list(player.ring(alarm))
            if restarts:
                player._group_store = GroupStore(
                    routing, [load_group(dump_group(group)) for group in player._group_store.groups.values()]
                )
        if fact is not None:
            found += list(player.take([fact], at_(when)))
    return found
