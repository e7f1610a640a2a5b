"""Texts of others may be as long as a message allows: what is made of them still fits into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from bus.messages import (
    AcquireRequest,
    Cluster,
    Fact,
    Hold,
    Observation,
    Outcome,
    Pause,
    Workload,
    ZoneInventory,
    Zones,
)
from rules.catalog import new_group
from rules.core.desired import TEXT_MAX, cut
from rules.engine.decide import decide
from rules.engine.routing import Routing
from rules.rehearsal.simulation import Emitted, play
from rules.rehearsal.simulation import at as at_
from tests.unit.rules.builders import Event, failover, healthy, route, rule_set, seen, unhealthy

LONG = "x" * TEXT_MAX
TOLD = {"notify": ["oncall"]}
TRAFFIC = failover(backends=[{"service": "a"}, {"service": "b"}], **TOLD)
TAINT = {"name": "taint", "kind": "ClusterTaint", "mode": "Enforce", "match": "cluster/*",
         "taints": [{"key": "bad", "effect": "NoExecute"}]} | TOLD  # fmt: skip
NEWS = {"name": "news", "kind": "Notification", "mode": "Enforce", "match": "cluster/*",
        "message": "{target}: {team}", **TOLD}  # fmt: skip
MOVER = {"name": "mover", "kind": "WorkloadFailover", "mode": "Enforce", "failover": {"cluster": {}},
         "placement": {"clusterTolerations": [{"operator": "Exists", "tolerationSeconds": 1}]},
         "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
         "guards": {"maxUnhealthy": "100%"}} | TOLD  # fmt: skip
ZONES = {"name": "zones", "kind": "ZoneIsolation", "mode": "Enforce", "cluster": "prod", "tolerationSeconds": 10,
         "zones": [{"name": name} for name in "abc"], "steps": ["Fence"]} | TOLD  # fmt: skip
RULES = [TRAFFIC, TAINT, NEWS, MOVER, ZONES]
NAMES = [rule["name"] for rule in RULES]


def bad(target: str, **more: Any) -> Event:
    return seen(target, "Unhealthy", at=10, detail=LONG, labels={"team": LONG}, **more)


def well(*targets: str, **more: Any) -> list[Event]:
    return [seen(target, "Healthy", at=0, detail=LONG, labels={"team": LONG}, **more) for target in targets]


def history() -> list[Event]:
    zones = Zones(
        cluster="prod", zones={name: ZoneInventory(nodes=5, healthy_nodes=5) for name in "abc"}, observed_at=at_(0),
        demand_nodes=8,
    )  # fmt: skip
    listed: list[Fact] = [Cluster(name=name, observed_at=at_(0)) for name in ("m1", "m2")]
    nginx = Workload(namespace="d", kind="Deployment", name="n", replicas=1, clusters={"m1": 1}, observed_at=at_(0))
    zone_targets = [f"zone/prod/{name}" for name in "abc"]
    return [
        route({"a": 1, "b": 0}), healthy("a", at=0), healthy("b", at=0), bad("service/east/shop/a"),
        *((0.0, fact) for fact in [*listed, nginx, zones]), *well("cluster/m1", "cluster/m2"), bad("cluster/m1"),
        *(event for signal in ("one", "two") for event in well(*zone_targets, signal=signal)),
        *(bad("zone/prod/a", signal=signal) for signal in ("one", "two")),
    ]  # fmt: skip


def said(rule: dict[str, Any], events: Sequence[Event], *, outcomes: bool = True) -> list[Emitted]:
    in_time = sorted(events, key=lambda event: event[0])
    return list(play(Routing.of(rule_set(rule)), in_time, until=3000, outcomes=outcomes))


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_a_long_detail_stops_no_rule(rule: dict[str, Any]) -> None:
    assert [one for one in said(rule, history()) if not isinstance(one.what, Hold)]


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_a_long_reason_of_a_pause_stops_no_rule(rule: dict[str, Any]) -> None:
    pause = Pause(rule="*", by="a" * 253, reason=LONG, observed_at=at_(5))
    held = [one.what for one in said(rule, [*history(), (5.0, pause)]) if isinstance(one.what, Hold)]
    assert [(hold.held, len(hold.detail)) for hold in held] == [("Paused", TEXT_MAX)]


@pytest.mark.parametrize("rule", [one for one in RULES if one is not NEWS], ids=[n for n in NAMES if n != "news"])
@pytest.mark.parametrize("mode", [{"mode": "Approve"}, {"guards": {"maxConcurrent": 1}}], ids=["approve", "guard"])
def test_what_is_asked_of_people_and_guards_fits(rule: dict[str, Any], mode: dict[str, Any]) -> None:
    assert said(rule | mode, history())


@pytest.mark.parametrize("rule", [one for one in RULES if one is not NEWS], ids=[n for n in NAMES if n != "news"])
def test_a_long_reason_of_a_failure_stops_no_rule(rule: dict[str, Any]) -> None:
    first = next(one.what for one in said(rule, history(), outcomes=False) if not isinstance(one.what, Hold))
    assert not isinstance(first, Hold)
    failed = Outcome(
        action=first.id, rule=first.rule, object=first.object, status="Failed", reason="R" * 253, detail=LONG,
        observed_at=at_(900),
    )  # fmt: skip
    assert said(rule, [*history(), (900.0, failed)], outcomes=False)


def test_a_claim_says_what_for_in_as_many_words_as_fit() -> None:
    rules = rule_set(TRAFFIC | {"guards": {"maxConcurrent": 1}})
    many = {f"{'s' * 240}-{number}": int(number == 0) for number in range(30)}
    events = [route(many), *(healthy(name, at=0) for name in many), unhealthy(next(iter(many)), at=1)]
    rule = rules.rules[0].model_copy(update={"backends": None})
    decision = decide(rule, new_group(rule, "east/shop/TrafficSplit/web"), [fact for _, fact in events], at_(1))
    assert [len(said.what) for said in decision.emits if isinstance(said, AcquireRequest)] == [TEXT_MAX]


def test_a_text_that_fits_is_left_as_it_is_and_a_longer_one_ends_in_dots() -> None:
    assert cut(LONG) == LONG
    assert cut(LONG + "y") == LONG[:-1] + "…"
    assert len(Observation(target="a/b", status="Healthy", observed_at=at_(0), detail=cut(LONG * 2)).detail) == TEXT_MAX  # type: ignore[arg-type]
