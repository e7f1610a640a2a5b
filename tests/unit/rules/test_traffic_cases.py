"""Every weight case that linkerd-failover's code, tests, workflow and issues tell of, its own way and the safe way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rules.rehearsal import history
from rules.rehearsal.simulator import simulate
from tests.unit.rules.builders import Event, failover, healthy, route, rule_set, step, the_rule, unhealthy

DATA = Path(__file__).parents[2] / "data"
Case = dict[str, Any]


def _cases() -> Iterator[Any]:
    for file in ("traffic", "traffic_table"):
        for case in json.loads((DATA / f"{file}.json").read_text("utf-8"))["cases"]:
            yield pytest.param(case, id=f"{file}-{case['name']}")


CASES = list(_cases())


def named_primary(case: Case) -> dict[str, str]:
    primary = case["primary_annotation"]
    return {} if primary is None else {"failover.linkerd.io/primary-service": primary}


def facts(case: Case, kind: str, *, inventory_first: bool) -> list[Event]:
    weights = [{"service": backend["service"], "weight": backend["weight"]} for backend in case["backends"]]
    listed = route({}, kind=kind, annotations=named_primary(case), entries=weights)
    services = [*case["backends"], *case.get("other_services", [])]
    seen = [(healthy if service["ready"] else unhealthy)(service["service"], at=0) for service in services]
    return [listed, *seen] if inventory_first else [*seen, listed]


def written(case: Case, *, safe: bool) -> dict[str, int] | None:
    expected: dict[str, int] | None = case["safe_expect"] if safe and "safe_expect" in case else case["expect"]
    return expected


@pytest.mark.parametrize("inventory_first", [True, False], ids=["inventory-first", "inventory-last"])
@pytest.mark.parametrize(("kind", "zero"), [("TrafficSplit", False), ("TrafficSplit", True), ("HTTPRoute", False)])
@pytest.mark.parametrize("case", CASES)
def test_a_case_gets_its_weights_by_one_decision(case: Case, kind: str, zero: bool, inventory_first: bool) -> None:
    rule = the_rule(route_kind=kind, onAllDown="Zero" if zero else "Hold")
    decision = step(rule, None, 0, *facts(case, kind, inventory_first=inventory_first))
    asked = [getattr(action, "weights", None) for action in decision.actions]
    expected = written(case, safe=not zero)
    assert asked == ([] if expected is None else [expected])


def lines(case: Case, kind: str, *, inventory_first: bool) -> Iterator[str]:
    """The same facts as a history that a person writes."""
    standing = [{"service": backend["service"], "weight": backend["weight"]} for backend in case["backends"]]
    listed = {
        "cluster": "east", "kind": kind, "namespace": "shop", "name": "web", "annotations": named_primary(case),
        "labels": {}, "backends": standing,
    }  # fmt: skip
    inventory = json.dumps({"at": 0, "inventory": {"route": listed}})
    if inventory_first:
        yield inventory
    for service in [*case["backends"], *case.get("other_services", [])]:
        status = "Healthy" if service["ready"] else "Unhealthy"
        seen = {"target": f"service/east/shop/{service['service']}", "status": status, "signal": "readiness"}
        yield json.dumps({"at": 0, "observe": seen})
    if not inventory_first:
        yield inventory


@pytest.mark.parametrize("inventory_first", [True, False], ids=["inventory-first", "inventory-last"])
@pytest.mark.parametrize(("kind", "zero"), [("TrafficSplit", False), ("TrafficSplit", True), ("HTTPRoute", False)])
@pytest.mark.parametrize("case", CASES)
def test_a_case_gets_its_weights_by_simulation_and_then_rests(
    case: Case, kind: str, zero: bool, inventory_first: bool
) -> None:
    rules = rule_set(failover(route_kind=kind, onAllDown="Zero" if zero else "Hold")).rules
    events = history.load_history(lines(case, kind, inventory_first=inventory_first), "case.jsonl").events
    came = [json.loads(line) for line in simulate(rules, events, until=600)]
    expected = written(case, safe=not zero)
    assert [line["weights"] for line in came if "weights" in line] == ([] if expected is None else [expected])
    assert {line["at"] for line in came} <= {0.0}


@pytest.mark.parametrize("case", CASES)
def test_an_http_route_is_never_asked_to_be_all_zero(case: Case) -> None:
    rules = rule_set(failover(route_kind="HTTPRoute", onAllDown="Spread")).rules
    events = history.load_history(lines(case, "HTTPRoute", inventory_first=True), "case.jsonl").events
    for line in map(json.loads, simulate(rules, events, until=600)):
        assert any(line.get("weights", {"": 1}).values())


def test_a_selector_rule_treats_every_case_like_a_named_one() -> None:
    selector = {"cluster": "east", "kind": "TrafficSplit", "selector": "managed=yes"}
    rules = rule_set(failover(route=selector)).rules
    for param in CASES:
        case = param.values[0]
        text = "\n".join(lines(case, "TrafficSplit", inventory_first=False)).replace(
            '"labels": {}', '"labels": {"managed": "yes"}'
        )
        came = [
            json.loads(line)
            for line in simulate(rules, history.load_history(text.split("\n"), "case").events, until=600)
        ]
        expected = written(case, safe=True)
        assert [line["weights"] for line in came if "weights" in line] == ([] if expected is None else [expected])
