"""Nothing leaves for the taint of a rule whose cause is over: the taint is only still on (decision 35)."""

from __future__ import annotations

from typing import Any

import pytest

from bus.messages import ClusterTaints, Health
from rules.engine.group_codec import dump_group, load_group
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.rehearsal.simulation import Simulator
from rules.rehearsal.simulation import at as moment
from tests.unit.rules.builders import Event, paused, resumed, rule_set
from tests.unit.rules.workload.builders import acts, cluster, copy, holds, member, placement, workload, workload_rule
from tests.unit.rules.workload.test_cluster_taint import played

SHOWN = [{"key": "reactor/brownout", "value": "", "effect": "NoExecute"}]
PUT = (110.0, "SetTaints", SHOWN)
TAKEN_OFF: tuple[str, list[Any]] = ("SetTaints", [])
MOVED = [("Place", {"m2": 2}), ("Evict", "m1")]


def brownout(**keys: Any) -> dict[str, Any]:
    """A rule that taints after 100 s, and takes that back after 50 s."""
    return {
        "name": "brownout", "kind": "ClusterTaint", "mode": "Enforce", "match": "cluster/*", "signals": ["brownout"],
        "tolerationSeconds": 100, "recoverySeconds": 50, "taints": [{"key": "reactor/brownout", "effect": "NoExecute"}],
    } | keys  # fmt: skip


def moves(tolerate: int = 30) -> dict[str, Any]:
    return workload_rule(placement=placement("m1", "m2", tolerate=tolerate), failover={"cluster": {}}, signals=["up"])


def look(status: str, at: float, since: float, **more: Any) -> Event:
    """Observation of m1 by the source that the rule uses, and since when without a break."""
    return cluster("m1", status, at=at, signal="brownout", source="dim", since=moment(since), **more)


START = [workload({"m1": 2}, replicas=2), *(cluster(name, "Healthy", at=0, signal="up") for name in ("m1", "m2"))]
TAINTED = [*START, look("Unhealthy", 10, 10), look("Unhealthy", 110, 10)]
RULES = [brownout(), moves()]


def after(*events: Event, rules: Any = RULES) -> list[tuple[Any, ...]]:
    """Actions from when the taint is on."""
    first, *rest = acts(rules, *TAINTED, *events)
    assert first == PUT
    return rest


def test_a_workload_stays_on_a_cluster_that_recovered_unheard_while_its_taint_was_on() -> None:
    assert after(look("Healthy", 300, 150)) == [(300.0, *TAKEN_OFF)]


def test_a_workload_leaves_once_the_cause_of_the_taint_is_seen_after_its_toleration() -> None:
    assert after() == []
    assert after(look("Unhealthy", 139, 10)) == []
    assert after(look("Unhealthy", 300, 10)) == [(300.0, *act) for act in MOVED]


def test_what_was_seen_for_longer_needs_no_other_look() -> None:
    again = look("Unhealthy", 120, 10, valid_seconds=30)
    assert after(again) == [(140.0, *act) for act in MOVED]


def test_a_workload_leaves_for_a_taint_that_stays_on_while_its_cluster_recovers() -> None:
    """A taint is a reason by itself: until the rule wants it off, workloads leave by their tolerations."""
    assert after(look("Healthy", 130, 130)) == [*((140.0, *act) for act in MOVED)]
    assert after(look("Healthy", 130, 130), look("Healthy", 180, 130))[2] == (180.0, *TAKEN_OFF)


def test_a_taint_that_its_rule_is_prevented_from_taking_off_moves_nothing() -> None:
    well = [paused("brownout", at=120), look("Healthy", 125, 125), look("Healthy", 500, 125)]
    assert after(*well, resumed("brownout", at=900), rules=[brownout(), moves(tolerate=200)]) == [(900.0, *TAKEN_OFF)]


def test_a_workload_waits_while_the_source_of_a_taint_is_silent_and_says_so() -> None:
    silent = look("Unhealthy", 120, 10, stale=60)
    assert after(silent) == []
    assert holds(RULES, *TAINTED, silent)[0] == (142.0, "SourceSilent")
    assert after(silent, look("Unhealthy", 300, 10)) == [(300.0, *act) for act in MOVED]


def test_where_silence_is_bad_the_taint_counts_as_long_as_it_is_on() -> None:
    rules = [brownout(treatUnknownAs="Unhealthy"), moves()]
    events = [*START, look("Unhealthy", 10, 10), look("Unhealthy", 110, 10, stale=20)]
    assert acts(rules, *events) == [PUT, *((140.0, *act) for act in MOVED)]


def test_the_taint_of_another_writer_needs_no_word() -> None:
    taint = [{"key": "reactor/brownout", "effect": "NoExecute", "timeAdded": moment(110)}]
    tainted = (110.0, ClusterTaints.model_validate(
        {"cluster": "m1", "rule": "brownout", "taints": taint, "observed_at": moment(110)}
    ))  # fmt: skip
    assert acts(RULES, *START, tainted) == [(140.0, *act) for act in MOVED]


def test_of_two_rules_with_the_same_taint_one_that_has_seen_its_cause_is_enough() -> None:
    other = brownout(name="dimmer", signals=["dim"])
    dim = [cluster("m1", "Unhealthy", at=10, signal="dim", source="dimmer", since=moment(10))]
    dim += [cluster("m1", "Unhealthy", at=at, signal="dim", source="dimmer", since=moment(10)) for at in (110, 300)]
    events = sorted([*TAINTED, *dim, look("Healthy", 200, 130)], key=lambda one: one[0])
    assert [one for one in acts([brownout(), other, moves()], *events) if one[1] != "SetTaints"] == [
        (300.0, *act) for act in MOVED
    ]


@pytest.mark.parametrize("bad_at", [150.0, 200.0, 333.0])
def test_a_toleration_ends_in_time_also_while_the_source_of_a_taint_is_silent(bad_at: float) -> None:
    """Noticed only as a look was asked for again, which is ever less often, it ended ten seconds late."""
    silent = [look("Unhealthy", 120, 10, stale=60), cluster("m1", "Unhealthy", at=bad_at, signal="up")]
    assert after(*silent)[:1] == [(bad_at + 30, "Place", {"m2": 2})]


# --- whom it asks, and what a rule says again ----------------------------------------------------------------------
def test_the_source_of_the_taint_is_asked_for_a_look_from_the_end_of_the_toleration() -> None:
    due = played(*RULES, *TAINTED).fire_due(moment(140))
    lacks = [(one.source, one.target, one.since) for decision in due for one in decision.lacks]
    assert lacks == [("dim", "cluster/m1", moment(140))]


def test_an_executor_that_asks_again_gets_its_answer_on_a_new_look_at_the_cause() -> None:
    group_store = played(*RULES, *TAINTED, look("Unhealthy", 120, 10, valid_seconds=25))
    list(Simulator(group_store, outcomes=False).until(moment(141)))
    [move] = [entry.action for group in group_store.groups.values() for entry in group.outbox]
    assert move.proven_at == moment(145)
    later = moment(150)
    asked = group_store.confirm("nginx", move.object, move.id, later, later)
    assert (asked.wanted, [(one.source, one.since) for one in asked.lacks]) == (None, [("dim", later)])


def test_what_a_new_owner_says_again_is_not_newer_than_what_comes_next() -> None:
    """Found with Quorums: dated ahead, it made the next word of the rule count as an old one."""
    group_store = played(*RULES, *TAINTED)
    again = GroupStore(
        Routing.of(rule_set(*RULES)), [load_group(dump_group(one)) for one in group_store.groups.values()]
    )
    [said] = [fact for decision in again.outstanding(moment(400)) for fact in decision.emits]
    assert isinstance(said, ClusterTaints)
    assert (said.observed_at, said.health) == (moment(110), Health.UNHEALTHY)
    assert [(one.signal, one.source, one.until) for one in said.looks] == [("brownout", "dim", moment(110))]


# --- a silent source of a taint holds up nothing else, and nothing but its word proves a cause ----------------------
SILENT = look("Unhealthy", 120, 10, stale=60)


def test_a_cluster_that_is_bad_by_its_own_health_is_left_though_the_source_of_its_taint_is_silent() -> None:
    down = [cluster("m1", "Unhealthy", at=at, signal="up", source="probe", since=moment(200)) for at in (200, 260, 400)]
    assert after(SILENT, *down) == [(260.0, *act) for act in MOVED]


def test_a_copy_that_is_bad_leaves_though_the_source_of_the_taint_of_its_cluster_is_silent() -> None:
    failing = {"cluster": {}, "application": {"decisionConditions": {"tolerationSeconds": 60}}}
    rules = [brownout(), moves() | {"signals": ["up", "ready"], "failover": failing}]
    bad = [copy("m1", "Unhealthy", at=at, signal="ready", source="pods", since=moment(200)) for at in (200, 270)]
    assert after(SILENT, *bad, rules=rules) == [(270.0, *act) for act in MOVED]


def test_a_signal_that_is_not_known_any_more_is_no_evidence_beside_one_that_is_bad() -> None:
    rules = [brownout(signals=["brownout", "alert"]), moves()]
    alert = [
        cluster("m1", status, at=at, signal="alert", source="am", since=moment(at), resolved=status == "Unknown")
        for status, at in (("Unhealthy", 111), ("Unknown", 141))
    ]
    assert after(*alert, rules=rules) == []


def test_a_rule_that_knows_nothing_moves_nothing_also_where_workloads_take_unknown_for_bad() -> None:
    rules = [brownout(), moves() | {"treatUnknownAs": "Unhealthy"}]
    assert after(look("Unknown", 141, 141), rules=rules) == []


def test_a_taint_that_was_taken_off_moves_nothing_before_inventory_shows_that() -> None:
    """Karmada lists it until its watch gets the removal."""
    listed = member("m1", at=111, taints=[{"key": "reactor/brownout", "effect": "NoExecute", "timeAdded": moment(110)}])
    assert after(listed, look("Healthy", 300, 150), member("m1", at=302)) == [(300.0, *TAKEN_OFF)]


def test_what_another_writer_has_put_on_stays_when_a_rule_takes_off_its_own() -> None:
    manual = member("m1", at=60, taints=[{"key": "reactor/brownout", "effect": "NoExecute", "timeAdded": moment(50)}])
    events = sorted([*TAINTED, manual, look("Healthy", 111, 111), look("Healthy", 400, 111)], key=lambda one: one[0])
    group_store = played(*RULES, *events)
    list(Simulator(group_store, outcomes=True).until(moment(401)))
    assert [one.key for one in group_store.groups["nginx", "*"].state.clusters["m1"].taints] == ["reactor/brownout"]


def test_a_new_owner_says_again_a_taint_for_silence_whose_word_was_lost() -> None:
    rules = [brownout(treatUnknownAs="Unhealthy"), moves()]
    group_store = played(*rules, *TAINTED, look("Healthy", 130, 130, valid_seconds=60, stale=70))
    list(Simulator(group_store, outcomes=True).until(moment(190)))
    known = group_store.groups["nginx", "*"]
    list(Simulator(group_store, outcomes=True).until(moment(310)))
    lost = [known if one.object == "*" else one for one in group_store.groups.values()]
    again = GroupStore(Routing.of(rule_set(*rules)), [load_group(dump_group(one)) for one in lost])
    for decision in again.outstanding(moment(320)):
        again.apply(decision.emits, moment(320))
    assert list(again.groups["nginx", "*"].state.clusters["m1"].by_rule) == ["brownout"]
