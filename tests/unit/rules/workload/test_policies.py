"""Policies of a Karmada control plane are honoured unchanged, and a rule that is switched to Enforce starts again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bus.messages import Evict, Hold
from rules.catalog import new_group
from rules.core.group import Group
from rules.engine.decide import decide
from rules.engine.group_codec import dump_group, load_group
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.rehearsal.simulation import Simulator, at
from tests.unit.rules.builders import Event, rule_set
from tests.unit.rules.workload.builders import (
    OBJECT,
    acts,
    cluster,
    clusters,
    copy,
    fact,
    happens,
    holds,
    placement,
    short,
    workload,
    workload_rule,
)


def drop_in() -> dict[str, Any]:
    rule = workload_rule(carrier="Karmada", policies={"selector": "managed=yes"}, resourceSelectors=[])
    del rule["failover"], rule["propagateDeps"]
    return rule


def policy(**keys: Any) -> dict[str, Any]:
    return {
        "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "nginx"}],
        "placement": placement("m1", "m2", tolerate=50), "failover": {"cluster": {"purgeMode": "Gracefully"}},
    } | keys  # fmt: skip


def start() -> list[Event]:
    return [*clusters("Healthy", "m1", "m2"), cluster("m1", "Unhealthy", at=10)]


def test_a_workload_follows_the_policy_that_governs_it() -> None:
    events = [workload({"m1": 2}, replicas=2, policy=policy()), *start()]
    assert acts(drop_in(), *events) == [(60.0, "Place", {"m2": 2}), (60.0, "Evict", "m1")]


def test_what_karmadas_api_has_no_place_for_is_beside_the_selector() -> None:
    rule = drop_in()
    rule["policies"]["failover"] = {"cluster": {"purgeMode": "Never"}, "application": {"gracePeriodSeconds": 5}}
    events = [workload({"m1": 2}, replicas=2, policy=policy()), *start()]
    (evicted,) = [one.what for one in happens(rule, *events) if isinstance(one.what, Evict)]
    assert (evicted.purge_mode, evicted.grace_period_seconds) == ("Never", None)


def test_what_counts_as_bad_is_added_to_how_long_the_policy_says() -> None:
    rule = drop_in()
    rule["policies"]["failover"] = {"application": {"decisionConditions": {"healthyState": ["Unhealthy", "Unknown"]}}}
    application = {"purgeMode": "Gracefully", "gracePeriodSeconds": 60, "decisionConditions": {"tolerationSeconds": 20}}
    own = policy(failover={"application": application})
    events = [
        workload({"m1": 2}, replicas=2, policy=own), *clusters("Healthy", "m1", "m2"), copy("m1", "Healthy", at=5),
        copy("m1", "Unknown", at=30),
    ]  # fmt: skip
    assert acts(rule, *events)[:1] == [(50.0, "Place", {"m2": 2})]


def test_a_failover_that_a_policy_does_not_have_stays_off() -> None:
    rule = drop_in()
    rule["policies"]["failover"] = {"cluster": {"gracePeriodSeconds": 5}}
    assert acts(rule, workload({"m1": 2}, replicas=2, policy=policy(failover={})), *start()) == []


def test_one_that_no_policy_governs_is_left_alone() -> None:
    assert acts(drop_in(), workload({"m1": 2}, replicas=2), *start()) == []


def test_a_policy_that_cannot_be_carried_out_is_a_hold_with_its_key() -> None:
    events = [workload({"m1": 2}, replicas=2, policy=policy(placement={"cats": 9})), *start()]
    assert acts(drop_in(), *events) == []
    assert holds(drop_in(), *events)[0][1] == "PolicyUnusable"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"suspension": {"dispatching": True}}, "suspension: a suspended policy must not move anything"),
        ({"failover": {"cluster": {"purgeMode": "Never", "gracePeriodSeconds": 5}}}, "failover.cluster.gracePeriodS"),
        ({"placement": {"workloadAffinity": {"required": []}}}, "placement.workloadAffinity: workloads are not placed"),
        ({"failover": {"cluster": {}, "application": {}}, "propagateDeps": False}, "propagateDeps: application fail"),
    ],
)
def test_a_policy_that_a_rule_file_could_not_hold_moves_nothing_and_says_why(keys: dict[str, Any], words: str) -> None:
    events = [workload({"m1": 2}, replicas=2, policy=policy(**keys)), *start()]
    assert acts(drop_in(), *events) == []
    (hold,) = [one.what for one in happens(drop_in(), *events) if isinstance(one.what, Hold)]
    assert hold.held == "PolicyUnusable"
    assert hold.detail.startswith(words)


def test_what_was_rehearsed_is_done_once_the_rule_is_enforced() -> None:
    rehearsing, enforcing = (
        Routing.of(rule_set(workload_rule(mode=mode, placement=placement("m1", "m2", tolerate=50))))
        for mode in ("DryRun", "Enforce")
    )
    group_store = GroupStore(rehearsing)
    player = Simulator(group_store, outcomes=True)
    rehearsed = list(player.take([fact(workload({"m1": 2}, replicas=2))], at(0)))
    for second, one in start():
        rehearsed += [*player.until(at(second)), *player.take([one], at(second))]
    rehearsed += player.until(at(100))
    assert short(rehearsed) == [(60.0, "Place", {"m2": 2}), (60.0, "Evict", "m1")]
    group_store = GroupStore(enforcing, [load_group(dump_group(group)) for group in group_store.groups.values()])
    done = list(Simulator(group_store, outcomes=True).take([fact(workload({"m1": 2}, at=200, replicas=2))], at(200)))
    assert short(done) == [(200.0, "Place", {"m2": 2}), (200.0, "Evict", "m1")]


def group(rule: Any, object_: str, *events: Event) -> Group:
    out = new_group(rule, object_)
    for second, one in events:
        out = decide(rule, out, [one], at(second)).group
    return out


def test_everything_that_is_remembered_can_be_stored() -> None:
    rule = rule_set(workload_rule(placement=placement("m1", "m2", tolerate=50))).rules[0]
    census = group(rule, "*", *start())
    first = group(rule, OBJECT, workload({"m1": 2}, replicas=2, policy={"a": [1]}), copy("m1", "Unhealthy", at=5))
    later = decide(rule, first, [], at(70), census).group
    for one in (census, first, later, replace(later, outbox=())):
        assert load_group(dump_group(one)) == one
