"""Routes that are in no cluster: a load balancer of the settings, as rules, histories and rule tests name it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bus.messages import Backend, Route, SetWeights
from rules.core.errors import Problem
from rules.loader import examine
from rules.rehearsal.history import load_history, written
from rules.rehearsal.rule_tests import tester
from rules.rehearsal.simulation import at as at_
from tests.unit.rules.builders import Event, healthy, holds, moves, rule_file, said, unhealthy

HOME, AWAY = {"here": 1, "there": 0}, {"here": 0, "there": 1}
OBJECT = "edge/HAProxy/edge"
TARGETS = {"here": "custom/edge/here", "there": "custom/edge/there"}


def rule(kind: str = "HAProxy", **keys: Any) -> dict[str, Any]:
    backends = [{"service": service, "target": target} for service, target in TARGETS.items()]
    route = {"kind": kind, "name": "edge", **keys.pop("route", {})}
    return {
        "name": "web", "kind": "TrafficFailover", "mode": "Enforce", "route": route, "backends": backends,
        "recoverySeconds": 30,
    } | keys  # fmt: skip


def listed(weights: dict[str, int], *, at: float = 0, life: str = "") -> Event:
    backends = tuple(Backend(service=name, weight=weight) for name, weight in weights.items())
    return at, Route(kind="HAProxy", name="edge", backends=backends, life=life, observed_at=at_(at))


WELL = (listed(HOME, life="1"), healthy(TARGETS["here"], at=0), healthy(TARGETS["there"], at=0))


def because(*events: Event, **keys: Any) -> list[tuple[float, str]]:
    things = said(rule(**keys), *events)
    return [(one.at, one.what.because) for one in things if isinstance(one.what, SetWeights)]


def test_it_moves_as_any_route_does_and_has_an_object_of_its_own() -> None:
    events = (*WELL, unhealthy(TARGETS["here"], at=10), healthy(TARGETS["here"], at=20))
    assert moves(rule(), *events) == [(10, AWAY), (50, HOME)]
    (first, _) = [one.what for one in said(rule(), *events) if isinstance(one.what, SetWeights)]
    assert (first.object, first.route.object, first.id) == (OBJECT, OBJECT, f"web/{OBJECT}/1")


def test_without_a_listing_a_rehearsal_takes_it_to_be_well() -> None:
    events = (healthy(TARGETS["here"], at=0), healthy(TARGETS["there"], at=0), unhealthy(TARGETS["here"], at=10))
    assert moves(rule(), *events) == [(10, AWAY)]


def test_weights_that_are_forgotten_with_a_start_are_put_back_also_where_drift_is_left() -> None:
    events = (*WELL, unhealthy(TARGETS["here"], at=10), listed(HOME, at=20, life="2"))
    for on_drift in ("Restore", "Hold"):
        assert moves(rule(onDrift=on_drift), *events) == [(10, AWAY), (20, AWAY)]
        assert because(*events, onDrift=on_drift) == [(10, "PrimaryUnhealthy"), (20, "Drift")]


def test_weights_that_another_writer_changes_while_it_runs_are_left_where_drift_is_left() -> None:
    events = (*WELL, unhealthy(TARGETS["here"], at=10), listed({"here": 0, "there": 7}, at=20, life="1"))
    assert moves(rule(onDrift="Hold"), *events) == [(10, AWAY)]
    assert holds(rule(onDrift="Hold"), *events) == [(20, "DriftedByHand")]
    assert moves(rule(), *events) == [(10, AWAY), (20, AWAY)]


def test_what_was_forgotten_is_put_back_also_where_the_rule_itself_wants_nothing() -> None:
    down = (*WELL, unhealthy(TARGETS["here"], at=10), unhealthy(TARGETS["there"], at=20))
    assert moves(rule(), *down, listed({"here": 1, "there": 1}, at=30, life="2")) == [(10, AWAY), (30, AWAY)]


def test_what_was_set_by_hand_and_left_is_put_back_after_a_start() -> None:
    by_hand = {"here": 3, "there": 5}
    events = (*WELL, listed(by_hand, at=20, life="1"), listed(HOME, at=40, life="2"))
    assert moves(rule(onDrift="Hold"), *events) == [(40, by_hand)]


def test_what_a_worker_that_is_leaving_still_has_is_no_proof_that_it_was_put_back() -> None:
    # In a reload of HAProxy both workers answer for a while: what is found right may be the old one's.
    by_hand, later = {"here": 3, "there": 5}, {"here": 7, "there": 7}
    events = (*WELL, listed(by_hand, at=20, life="1"), listed(HOME, at=40, life="2"), listed(HOME, at=45, life="2"))
    assert moves(rule(onDrift="Hold"), *events) == [(40, by_hand), (45, by_hand)]
    stands = (*events, listed(by_hand, at=50, life="2"), listed(later, at=60, life="2"))
    assert moves(rule(onDrift="Hold"), *stands) == [(40, by_hand), (45, by_hand)]


def test_a_start_that_forgot_nothing_is_no_news() -> None:
    events = (*WELL, unhealthy(TARGETS["here"], at=10), listed(AWAY, at=20, life="2"))
    assert moves(rule(), *events) == [(10, AWAY)]


def test_histories_and_rule_tests_leave_the_cluster_out() -> None:
    body = '"kind": "HAProxy", "name": "edge", "life": "1", "backends": [{"service": "here", "weight": 1}]'
    ((second, fact),) = load_history([f'{{"at": 0, "inventory": {{"route": {{{body}}}}}}}'], "h.jsonl").events
    assert isinstance(fact, Route)
    assert fact.object == OBJECT
    assert load_history([written(second, fact)], "h.jsonl").events == [(second, fact)]
    suite = {
        "apiVersion": "reactor/v1", "ruleFiles": ["rules.yaml"],
        "tests": [{
            "name": "it leaves", "intervalSeconds": 5,
            "inventory": [{"route": {"kind": "HAProxy", "name": "edge", "backends": [
                {"service": "here", "weight": 1}, {"service": "there", "weight": 0},
            ]}}],
            "inputs": [
                {"target": TARGETS["here"], "values": "Healthy Unhealthy x3"},
                {"target": TARGETS["there"], "values": "Healthy x4"},
            ],
            "expect": [{"at": 5, "action": "SetWeights", "rule": "web", "object": OBJECT, "weights": AWAY}],
        }],
    }  # fmt: skip
    (result,) = tester.run(tester.load_suite(json.dumps(suite), "rules_test.yaml", lambda _: rule_file(rule())))
    assert result.passed, result


@pytest.mark.parametrize(
    ("keys", "place", "why"),
    [
        ({"route": {"cluster": "east"}}, "rules[0].route.cluster", "left out with kind: HAProxy"),
        ({"route": {"namespace": "shop"}}, "rules[0].route.namespace", "left out with kind: HAProxy"),
        ({"route": {"selector": "a=b"}}, "rules[0].route.selector", "left out with kind: HAProxy"),
        ({"route": {"rule": 1}}, "rules[0].route.rule", "left out with kind: HAProxy"),
        ({"route": {"name": None}}, "rules[0].route", "the settings' loadBalancers"),
        ({"backends": None}, "rules[0]", "needs backends, each with a target"),
        ({"backends": [{"service": "a"}]}, "rules[0].backends[0]", "needs a target"),
        (
            {"backends": [{"service": "a", "target": "custom/a", "weight": 300}]},
            "rules[0].backends[0].weight", "takes weights up to 256",
        ),
        ({"onAllDown": "Zero"}, "rules[0].onAllDown", "Zero only goes with TrafficSplit"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_said_with_its_place(keys: dict[str, Any], place: str, why: str) -> None:
    given = {key: value for key, value in rule(**keys).items() if value is not None}
    given["route"] = {key: value for key, value in given["route"].items() if value is not None}
    found = _errors(given)
    assert any(problem.path == place and why in problem.message for problem in found), found
    assert all(problem.line >= 1 for problem in found)


def _errors(given: dict[str, Any]) -> list[Problem]:
    return [problem for problem in examine([("r.yaml", rule_file(given))]).problems if problem.severity == "error"]


def test_a_route_in_a_cluster_still_needs_its_cluster() -> None:
    given = rule(kind="TrafficSplit", route={"namespace": "shop"})
    found = _errors(given)
    assert [problem.path for problem in found] == ["rules[0].route.cluster"]
    assert "required with kind: TrafficSplit" in found[0].message
