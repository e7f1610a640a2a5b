"""The contract with users, read by a stranger: rule files and histories as people write them, and what comes out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from rules.core.errors import InvalidHistory
from rules.engine.routing import Routing
from rules.loader import load_rules
from rules.rehearsal import history
from rules.rehearsal.simulator import simulate

EAST, WEST = "service/east/shop/web", "service/west/shop/web"
TRAFFIC = {
    "name": "web", "kind": "TrafficFailover", "mode": "Enforce", "tolerationSeconds": 10, "recoverySeconds": 60,
    "route": {"cluster": "east", "kind": "TrafficSplit", "namespace": "shop", "name": "web"},
    "backends": [{"service": "web"}, {"service": "web-west", "target": WEST}],
}  # fmt: skip
TAINT = {
    "name": "brownout", "kind": "ClusterTaint", "mode": "Enforce", "match": "cluster/east", "tolerationSeconds": 10,
    "taints": [{"key": "reactor/brownout", "effect": "NoExecute"}],
}  # fmt: skip
WORDS = {
    "name": "oncall", "kind": "Notification", "mode": "Enforce", "match": "custom/**", "message": "{target} {status}"
}  # fmt: skip


def observed(at: float, target: str, status: str) -> dict[str, Any]:
    return {"at": at, "observe": {"target": target, "status": status, "signal": "readiness"}}


def told(
    rule: dict[str, Any], *events: dict[str, Any], until: float = 300, outcomes: bool = True,
    guards: Sequence[dict[str, Any]] = (),
) -> list[dict[str, Any]]:  # fmt: skip
    """The lines of `reactor simulate`."""
    text = json.dumps({"apiVersion": "reactor/v1", "rules": [rule], "guards": list(guards)})
    facts = history.load_history([json.dumps(event) for event in events], "h.jsonl").events
    rules = Routing.of(load_rules([("rules.yaml", text)]))
    return [json.loads(line) for line in simulate(rules, facts, until=until, outcomes=outcomes)]


def short(lines: Sequence[dict[str, Any]]) -> list[tuple[float, str]]:
    """Second, and the action or the reason of a hold."""
    return [(line["at"], line.get("action") or line["held"]) for line in lines]


BAD_AT_5: dict[str, tuple[dict[str, Any], list[dict[str, Any]], str, str]] = {
    "TrafficFailover": (TRAFFIC, [observed(0, EAST, "Healthy"), observed(0, WEST, "Healthy")], EAST, "SetWeights"),
    "ClusterTaint": (TAINT, [observed(0, "cluster/east", "Healthy")], "cluster/east", "SetTaints"),
    "Notification": (WORDS | {"tolerationSeconds": 10}, [observed(0, "custom/psp", "Healthy")], "custom/psp", "Notify"),
}


@pytest.mark.parametrize("kind", BAD_AT_5)
def test_where_unknown_counts_as_bad_no_rule_says_that_it_waits(kind: str) -> None:
    rule, before, target, action = BAD_AT_5[kind]
    unknown = [*before, observed(5, target, "Unknown")]
    assert short(told({**rule, "treatUnknownAs": "Unhealthy"}, *unknown)) == [(15, action)]
    assert all("action" not in line for line in told(rule, *unknown))


@pytest.mark.parametrize("kind", ["TrafficFailover", "ClusterTaint"])
def test_where_unknown_counts_as_bad_one_that_was_never_known_acts_without_a_word_of_waiting(kind: str) -> None:
    rule, before, target, action = BAD_AT_5[kind]
    others = [event for event in before if event["observe"]["target"] != target]
    unknown = [*others, observed(5, target, "Unknown")]
    assert short(told({**rule, "treatUnknownAs": "Unhealthy"}, *unknown)) == [(15, action)]
    assert short(told(rule, *unknown)) == [(5, "TargetUnknown")]


def test_people_are_told_unknown_where_that_is_what_counts_as_bad() -> None:
    story = [observed(0, "custom/psp", "Healthy"), observed(5, "custom/psp", "Unknown")]
    [line] = told(WORDS | {"treatUnknownAs": "Unhealthy"}, *story)
    assert line["message"] == "custom/psp Unknown"


def test_what_calls_a_failover_on_its_way_back_is_no_drift() -> None:
    story = [
        observed(0, EAST, "Healthy"), observed(0, WEST, "Healthy"), observed(5, EAST, "Unhealthy"),
        observed(100, EAST, "Healthy"),
    ]  # fmt: skip
    lines = told(TRAFFIC, *story, outcomes=False)
    assert [(line["at"], line["because"]) for line in lines] == [(15, "PrimaryUnhealthy"), (160, "PrimaryHealthy")]


def test_guards_for_the_same_rules_need_no_names() -> None:
    """The contract's guards have no `name`: two of them for the same rules both hold."""
    story = [
        observed(0, EAST, "Healthy"), observed(0, WEST, "Healthy"), observed(5, EAST, "Unhealthy"),
        observed(20, EAST, "Healthy"), observed(30, EAST, "Unhealthy"),
    ]  # fmt: skip
    guards = [{"rules": ["*"], "maxConcurrent": 1}, {"rules": ["*"], "ratePerSecond": 0.01}]
    lines = told(TRAFFIC | {"tolerationSeconds": 0, "recoverySeconds": 0}, *story, guards=guards)
    assert short(lines) == [(5, "SetWeights"), (20, "SetWeights"), (30, "RateLimited"), (105, "SetWeights")]


ZONES = {
    "name": "prod-zones", "kind": "ZoneIsolation", "mode": "Enforce", "cluster": "prod",
    "zones": [{"name": name} for name in "abc"],
}  # fmt: skip


def test_a_step_that_failed_is_told_of_its_zone() -> None:
    """A hold's object is that of the action that it is about."""
    zones = {"cluster": "prod", "zones": {name: {"nodes": 5, "healthyNodes": 5} for name in "abc"}}
    word = {"rule": "prod-zones", "zone": "a", "by": "ann", "reason": "INC-7"}
    lines = told(
        ZONES, {"at": 0, "inventory": {"zones": zones}}, {"at": 9, "command": {"isolateZone": word}},
        {"at": 20, "outcome": {"action": "prod-zones/prod/a/1", "status": "Failed", "reason": "Forbidden"}},
        until=30, outcomes=False,
    )  # fmt: skip
    assert short(lines) == [(9, "ZoneStep"), (20, "ActionFailed")]
    assert {line["object"] for line in lines} == {"prod/a"}


def test_a_blocked_window_may_be_shorter_than_a_minute() -> None:
    guards = {"blockedWindows": [{"cron": "0 0 * * *", "durationSeconds": 30}]}
    story = [observed(0, EAST, "Healthy"), observed(0, WEST, "Healthy"), observed(5, EAST, "Unhealthy")]
    assert short(told(TRAFFIC | {"guards": guards}, *story)) == [(15, "InBlockedWindow"), (30, "SetWeights")]


@pytest.mark.parametrize(("version", "kind"), [("batch/v1", "Job"), ("v1", "Pod"), ("example.com/v1", "Widget")])
def test_a_workload_is_known_by_its_kind_alone(version: str, kind: str) -> None:
    """The contract's inventory has no apiVersion."""
    rule = {
        "name": "w", "kind": "WorkloadFailover", "mode": "Enforce", "failover": {"cluster": {}},
        "resourceSelectors": [{"apiVersion": version, "kind": kind}],
    }  # fmt: skip
    workload = {"namespace": "d", "kind": kind, "name": "n", "clusters": {"m1": 1}}
    inventory = [{"cluster": {"name": "m1"}}, {"cluster": {"name": "m2"}}, {"workload": workload}]
    story = [{"at": 0, "inventory": one} for one in inventory]
    assert short(told(rule, *story, observed(10, "cluster/m1", "Unhealthy"), until=310)) == [
        (310, "Place"), (310, "Evict"),
    ]  # fmt: skip
    other = {"at": 0, "inventory": {"workload": workload | {"apiVersion": "other/v1"}}}
    assert told(rule, *story[:2], other, observed(10, "cluster/m1", "Unhealthy"), until=310) == []


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"inventory": {"cluster": {}}}, "inventory.cluster.name: required, and not there"),
    ({"inventory": {"cluster": {"name": "a", "availableReplicas": -1}}},
     "inventory.cluster.availableReplicas: must be 0 or more, got -1"),
    ({"command": {"pause": {"rule": "*", "reason": "upgrade"}}}, "command.pause.by: required, and not there"),
    ({"command": {"isolateZone": {"rule": "z", "by": "ann", "reason": "x"}}},
     "command.isolateZone.zone: required, and not there"),
    ({"observe": {"status": "Healthy"}}, "observe.target: required, and not there"),
    ({"outcome": {"status": "Done"}}, "outcome.action: required, and not there"),
]  # fmt: skip


@pytest.mark.parametrize(("event", "message"), WRONG)
def test_a_wrong_line_says_where_it_is_wrong(event: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidHistory) as caught:
        history.load_history([json.dumps({"at": 1} | event)], "h.jsonl")
    assert str(caught.value).startswith(f"h.jsonl:1: {message}")


OPTIONAL: list[dict[str, Any]] = [
    {"cluster": {"name": "a", "labels": None, "region": None, "zone": None, "availableReplicas": None}},
    {"workload": {"namespace": "d", "kind": "Deployment", "name": "n", "uid": None, "replicas": None, "clusters": {}}},
    {"route": {"cluster": "e", "kind": "TrafficSplit", "namespace": "s", "name": "n", "labels": None, "backends": []}},
    {"zones": {"cluster": "prod", "zones": {"a": {"nodes": 1, "healthyNodes": 1}}, "demandNodes": None}},
]


@pytest.mark.parametrize("inventory", OPTIONAL)
def test_null_is_the_same_as_a_key_that_is_left_out(inventory: dict[str, dict[str, Any]]) -> None:
    [(name, body)] = inventory.items()
    without = {name: {key: value for key, value in body.items() if value is not None}}
    one, other = (
        history.load_history([json.dumps({"at": 1, "inventory": said})], "h").events for said in (inventory, without)
    )
    assert one == other
