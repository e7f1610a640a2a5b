"""Mistakes of the core that simulated worlds have found, each as the shortest history that shows it."""

from __future__ import annotations

from typing import Any

import pytest

from bus.messages import Cluster, Hold, Mode, Outcome, Place, Workload, WorkloadCopy, ZoneStep
from rules.core.group import Group, OutboxEntry
from rules.engine.group_codec import dump_group, load_group
from rules.kinds.zone.plan import settings_for
from rules.kinds.zone.state import ZoneState
from rules.rehearsal.simulation import Emitted, at
from rules.rehearsal.simulation import play as play_
from tests.unit.rules.builders import (
    Event,
    failover,
    healthy,
    moves,
    outcome,
    route,
    rule_set,
    seen,
    unhealthy,
    unknown,
)

TWO = [{"service": "a"}, {"service": "b"}]


def test_a_primary_whose_weight_another_writer_took_is_not_given_it_back_while_it_is_unwell() -> None:
    rule = failover(backends=TWO, tolerationSeconds=30)
    history = [
        route({"a": 1, "b": 0}), healthy("a", at=0), healthy("b", at=0),
        unhealthy("a", at=10), healthy("a", at=50),  # so it is known to have recovered, and not only to be well
        unhealthy("a", at=100), route({"a": 0, "b": 1}, at=110),
    ]  # fmt: skip
    assert moves(rule, *history, healthy("a", at=120), until=125)[2:] == [(120, {"a": 1, "b": 0})]
    assert moves(rule, *history, unknown("a", at=120), until=125)[2:] == []


def test_a_word_that_comes_late_does_not_date_a_recovery_back_before_another_signal() -> None:
    rule = failover(backends=TWO, recoverySeconds=60)
    history = [
        route({"a": 1, "b": 0}), healthy("b", at=0), healthy("a", at=0, signal="x"), healthy("a", at=0, signal="y"),
        unhealthy("a", at=10, signal="x"), unhealthy("a", at=10, signal="y"),
        healthy("a", at=101, signal="x"), healthy("a", at=91, heard=110, signal="y"),
    ]  # fmt: skip
    assert moves(rule, *history)[-1] == (161, {"a": 1, "b": 0})


def test_a_route_that_is_deleted_and_made_again_gets_no_id_for_a_second_time() -> None:
    keys = {"cluster": "east", "kind": "TrafficSplit", "selector": "app=web"}
    rule = {"name": "all", "kind": "TrafficFailover", "mode": "Enforce", "route": keys}
    ours: dict[str, Any] = {"labels": {"app": "web"}}
    history: list[Event] = [
        route({"a": 1, "b": 0}, **ours), healthy("a", at=0), healthy("b", at=0), unhealthy("a", at=10),
        route({"a": 1, "b": 0}, at=20, exists=False, **ours), healthy("a", at=30),
        route({"a": 1, "b": 0}, at=40, **ours), unhealthy("a", at=50),
    ]  # fmt: skip
    rules = rule_set(rule).rules
    said = play_(rules, sorted(history, key=lambda event: event[0]), until=60)
    ids = [one.what.id for one in said if not isinstance(one.what, Hold)]
    assert ids == [f"all/east/shop/TrafficSplit/web/{number}" for number in (1, 2)]


# --- workloads -------------------------------------------------------------------------------------------------------

OBJECT = "default/Deployment/nginx"
NGINX = {"namespace": "default", "kind": "Deployment", "name": "nginx"}


def mover(**application: Any) -> dict[str, Any]:
    return {
        "name": "nginx", "kind": "WorkloadFailover", "mode": "Enforce",
        "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx"}],
        "placement": {"clusterAffinity": {"clusterNames": ["m1", "m2", "m3"]}},
        "guards": {"maxUnhealthy": "100%", "rounding": "Down"},
        "failover": {"application": {"decisionConditions": {"tolerationSeconds": 20}} | application},
    }  # fmt: skip


def copy(cluster: str, status: str, second: float) -> Event:
    return seen(f"workload/{cluster}/{OBJECT}", status, at=second)


def listed(second: float, how: str, *clusters: str) -> list[Event]:
    if how == "together":
        fact = Workload(**NGINX, replicas=1, clusters=dict.fromkeys(clusters, 1), observed_at=at(second))  # type: ignore[arg-type]
        return [(second, fact)]
    return [(second, WorkloadCopy(**NGINX, cluster=one, replicas=1, observed_at=at(second))) for one in clusters]  # type: ignore[arg-type]


def existing(*names: str) -> list[Event]:
    return [(0.0, Cluster(name=name, observed_at=at(0))) for name in names]


@pytest.mark.parametrize("how", ["together", "one by one"])
def test_a_copy_that_is_listed_before_we_hear_that_it_was_placed_is_a_new_one_all_the_same(how: str) -> None:
    # m2 had a copy long ago that was well, so the delay of the new one must not count from then.
    rule = mover(preConditions={"delaySeconds": 1000}, blockPredecessorSeconds=0)
    history: list[Event] = [
        *existing("m1", "m2", "m3"), *listed(0, how, "m1"), copy("m2", "Healthy", 0), copy("m1", "Healthy", 0),
        copy("m1", "Unhealthy", 1000), *listed(1021, how, "m1", "m2"),
        outcome("nginx/default/Deployment/nginx/1", "Done", at=1022), copy("m1", "Healthy", 1023),
        copy("m2", "Unhealthy", 1030),
    ]  # fmt: skip
    said = played(rule, history, until=1500)
    assert (said[0].at, type(said[0].what)) == (1020, Place)
    assert not [one for one in said if isinstance(one.what, Place) and one.at > 1020], "the delay is not over"


def test_a_cluster_that_is_bad_is_left_as_soon_as_the_copys_own_trouble_is_over() -> None:
    rule = mover() | {"tolerationSeconds": 0}
    rule["failover"] |= {"cluster": {}}
    borne = {
        "key": "cluster.karmada.io/not-ready",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 50,
    }
    rule["placement"] = {"clusterAffinity": {"clusterNames": ["m1", "m2"]}, "clusterTolerations": [borne]}
    history: list[Event] = [
        *existing("m1", "m2", "m3"), seen("cluster/m3", "Healthy", at=0),  # so it is no outage of all
        *listed(0, "together", "m1"), seen("cluster/m1", "Healthy", at=0),
        seen("cluster/m2", "Unhealthy", at=0), copy("m1", "Healthy", 0), seen("cluster/m1", "Unhealthy", at=10),
        copy("m1", "Unhealthy", 20), copy("m1", "Healthy", 100), seen("cluster/m2", "Healthy", at=100),
    ]  # fmt: skip
    asked = [(one.at, one.what.because) for one in played(rule, history, until=200) if isinstance(one.what, Place)]
    assert asked == [(100, "ClusterUnhealthy")]


def test_where_a_part_would_do_and_there_is_room_for_none_nothing_is_evicted() -> None:
    rule = mover(decisionConditions={"tolerationSeconds": 20}) | {"onInsufficient": "Partial"}
    rule["placement"] |= {
        "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
    }
    full: list[Event] = [
        (0.0, Cluster(name=name, available_replicas=0, observed_at=at(0))) for name in ("m1", "m2", "m3")
    ]
    history = [*full, *listed(0, "together", "m1"), copy("m1", "Healthy", 0), copy("m1", "Unhealthy", 10)]
    said = [one.what for one in played(rule, history, until=200)]
    assert [what.held if isinstance(what, Hold) else type(what) for what in said] == ["NoLandingPlace"]


def played(rule: dict[str, Any], history: list[Event], until: float) -> list[Emitted]:
    events = sorted(history, key=lambda event: event[0])
    answered = any(isinstance(fact, Outcome) for _, fact in events)
    return list(play_(rule_set(rule).rules, events, until=until, outcomes=not answered))


# --- what is stored --------------------------------------------------------------------------------------------------


def test_a_step_of_a_zone_that_is_on_its_way_is_the_same_after_a_restart() -> None:
    zones = [{"name": "a"}, {"name": "b"}]
    rule: Any = rule_set({
        "name": "zones", "kind": "ZoneIsolation", "cluster": "prod", "zones": zones,
        "network": {"provider": "LabelledNetworkPolicy"},
    }).rules[0]  # fmt: skip
    for step in rule.steps:
        settings = settings_for(rule, "a", step, mode="degraded", steps=("Fence",))
        action = ZoneStep(
            id="zones/prod/a/1", rule="zones", object="prod/a", generation=1, mode=Mode.ENFORCE, because="Commanded",
            decided_at=at(0), cluster="prod", zone="a", carrier="Kubernetes", phase="Failover", status="Pending",
            step=step, settings=settings,
        )  # fmt: skip
        again = (
            load_group(dump_group(Group("zones", "prod", ZoneState(), outbox=(OutboxEntry(action, at(1)),))))
            .outbox[0]
            .action
        )
        assert isinstance(again, ZoneStep)
        assert again.settings == settings
