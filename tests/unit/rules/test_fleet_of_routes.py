"""One rule for 200 routes of each kind whose backends are named after the route, as a rule test and as a simulation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rules.loader import load_rules
from rules.rehearsal import history
from rules.rehearsal.rule_tests import tester
from rules.rehearsal.simulator import simulate
from rules.rulefile.route_kinds import ROUTE_KINDS

ROUTES = 200
BAD = (0, 7, 199)
"""Those whose primary fails."""
LABELS = {"failover": "reactor"}


def rule_text(kind: str) -> str:
    fleet = {
        "name": "fleet", "kind": "TrafficFailover", "mode": "Enforce", "primary": "{name}", "tolerationSeconds": 10,
        "route": {"cluster": "east", "kind": kind, "selector": "failover=reactor"}, "recoverySeconds": 20,
        "backends": [
            {"service": "{name}", "target": "service/{cluster}/{namespace}/{name}"},
            {"service": "{name}-west", "target": "service/west/{namespace}/{name}"},
        ],
    }  # fmt: skip
    return json.dumps({"apiVersion": "reactor/v1", "sources": [], "rules": [fleet]})


def name_of(number: int) -> tuple[str, str]:
    """Namespace and name: twenty namespaces with ten routes each."""
    return f"team-{number // 10}", f"app{number}"


def listed(kind: str, number: int) -> dict[str, Any]:
    namespace, name = name_of(number)
    whole = ROUTE_KINDS[kind].sum_to or 1
    backends = [{"service": name, "weight": whole}, {"service": f"{name}-west", "weight": 0}]
    return {
        "cluster": "east", "kind": kind, "namespace": namespace, "name": name, "labels": LABELS, "backends": backends,
    }  # fmt: skip


def targets(number: int) -> list[str]:
    namespace, name = name_of(number)
    return [f"service/{cluster}/{namespace}/{name}" for cluster in ("east", "west")]


def moved(kind: str, number: int, *, at: float, away: bool) -> dict[str, Any]:
    namespace, name = name_of(number)
    whole = ROUTE_KINDS[kind].sum_to or 1
    weights = {name: 0 if away else whole, f"{name}-west": whole if away else 0}
    return {"at": at, "action": "SetWeights", "object": f"east/{namespace}/{kind}/{name}", "weights": weights}


@pytest.mark.parametrize("kind", ["TrafficSplit", "VirtualService", "HTTPProxy", "ServiceSplitter"])
def test_as_a_rule_test_each_route_goes_to_its_own_other_and_comes_back(kind: str) -> None:
    bad, good = "Healthy x2 Unhealthy x3 Healthy x6", "Healthy x11"
    inputs = [
        {"target": target, "values": bad if number in BAD and target.startswith("service/east/") else good}
        for number in range(ROUTES)
        for target in targets(number)
    ]
    order = sorted(BAD, key=lambda number: moved(kind, number, at=0, away=True)["object"])
    expect = [moved(kind, number, at=at, away=at == 20) for at in (20, 45) for number in order]
    inventory = [{"route": listed(kind, number)} for number in range(ROUTES)]
    case = {"name": "a fleet", "intervalSeconds": 5, "inventory": inventory, "inputs": inputs, "expect": expect}
    suite = {"apiVersion": "reactor/v1", "ruleFiles": ["fleet.yaml"], "tests": [case]}
    results = list(tester.run(tester.load_suite(json.dumps(suite), "fleet_test.yaml", lambda _: rule_text(kind))))
    assert [(one.name, one.passed) for one in results] == [("a fleet", True)], results


@pytest.mark.parametrize("kind", ["TrafficSplit", "VirtualService"])
def test_as_a_simulation_all_of_them_move_at_once_and_the_same_each_time(kind: str) -> None:
    events: list[dict[str, Any]] = [{"at": 0, "inventory": {"route": listed(kind, one)}} for one in range(ROUTES)]
    events += [
        {"at": 0, "observe": {"target": target, "status": "Healthy"}}
        for one in range(ROUTES)
        for target in targets(one)
    ]
    events += [{"at": 5, "observe": {"target": targets(one)[0], "status": "Unhealthy"}} for one in range(ROUTES)]
    text = "\n".join(json.dumps(event) for event in events)
    rules = load_rules([("fleet.yaml", rule_text(kind))]).rules

    def played() -> list[dict[str, Any]]:
        return [
            json.loads(line)
            for line in simulate(rules, history.load_history(text.split("\n"), "fleet.jsonl").events, until=60)
        ]

    first = played()
    wanted = {key: one for number in range(ROUTES) for key, one in [keyed(moved(kind, number, at=15, away=True))]}
    assert {one["object"]: (one["at"], one["action"], one["weights"]) for one in first} == wanted
    assert played() == first


def keyed(one: dict[str, Any]) -> tuple[str, tuple[Any, ...]]:
    return one["object"], (one["at"], one["action"], one["weights"])
