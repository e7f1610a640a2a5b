"""A signal puts a taint on a cluster, and the taint moves what does not tolerate it."""

from __future__ import annotations

from typing import Any

import pytest

from bus.messages import ClusterTaints, Mode, Taint
from rules.engine.group_codec import dump_group, load_group
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.rehearsal.simulation import Simulator
from rules.rehearsal.simulation import at as at_
from tests.unit.rules.builders import Event, outcome, paused, resumed, rule_set
from tests.unit.rules.workload.builders import (
    acts,
    cluster,
    clusters,
    happens,
    placement,
    short,
    workload,
    workload_rule,
)

TAINT = {"key": "reactor/brownout", "effect": "NoExecute"}
SHOWN = [{"key": "reactor/brownout", "value": "", "effect": "NoExecute"}]


def taint_rule(**keys: Any) -> dict[str, Any]:
    return {
        "name": "brownout", "kind": "ClusterTaint", "mode": "Enforce", "match": "cluster/*", "signals": ["brownout"],
        "tolerationSeconds": 100, "recoverySeconds": 50, "taints": [TAINT],
    } | keys  # fmt: skip


def dim(name: str, status: str, *, at: float) -> Event:
    return cluster(name, status, at=at, signal="brownout")


def test_the_taint_comes_after_the_toleration_and_goes_after_the_recovery() -> None:
    events = [dim("east", "Healthy", at=0), dim("east", "Unhealthy", at=10), dim("east", "Healthy", at=200)]
    assert acts(taint_rule(), *events) == [(110.0, "SetTaints", SHOWN), (250.0, "SetTaints", [])]


def test_a_cluster_that_was_always_well_is_not_touched() -> None:
    assert acts(taint_rule(), dim("east", "Healthy", at=0), dim("east", "Unknown", at=50)) == []


def test_other_signals_do_not_count() -> None:
    assert acts(taint_rule(), cluster("east", "Unhealthy", at=0)) == []


def test_the_taint_is_timed_from_when_it_was_put_on_and_taken_off_with_the_taints_from_before() -> None:
    events = [dim("east", "Unhealthy", at=10), dim("east", "Healthy", at=200)]
    _put, off = (one.what for one in happens(taint_rule(), *events))
    [before] = getattr(off, "before")  # noqa: B009 - not every action has it
    assert (before.key, before.time_added) == ("reactor/brownout", at_(110))


def test_a_taint_that_was_held_back_is_tolerated_from_when_it_was_put_on() -> None:
    moves = workload_rule(placement=placement("m1", "m2", tolerate=300), failover={"cluster": {}}, signals=["ready"])
    ready = [cluster(name, "Healthy", at=0, signal="ready") for name in ("m1", "m2")]
    held_back = [dim("m1", "Unhealthy", at=10), paused("brownout", at=11), resumed("brownout", at=1000)]
    came = acts([taint_rule(), moves], workload({"m1": 2}, replicas=2), *ready, *held_back, until=1500)
    assert came == [(1000.0, "SetTaints", SHOWN), (1300.0, "Place", {"m2": 2}), (1300.0, "Evict", "m1")]


def test_a_taint_that_is_there_keeps_its_time_when_the_rule_gets_another_one() -> None:
    group_store = played(taint_rule(tolerationSeconds=0), dim("m1", "Unhealthy", at=10))
    second = {"key": "reactor/slow", "effect": "NoSchedule"}
    again = rules_changed(group_store, [taint_rule(tolerationSeconds=0, taints=[TAINT, second])])
    run(again, [dim("m1", "Unhealthy", at=50)])
    state = again.groups["brownout", "cluster/m1"].state
    assert state is not None
    assert [(one.key, one.time_added) for one in state.taints or ()] == [
        ("reactor/brownout", at_(10)), ("reactor/slow", at_(50)),
    ]  # fmt: skip


def test_a_taint_stays_on_a_cluster_that_failed_again_before_it_was_taken_off() -> None:
    """The write failed; before the next try the cluster is bad again, and copies must not come back to it."""
    failed = outcome("brownout/cluster/east/2", "Failed", at=251, reason="ApiUnavailable")
    events = [dim("east", "Unhealthy", at=10), outcome("brownout/cluster/east/1", "Done", at=111)]
    events += [dim("east", "Healthy", at=200), failed, dim("east", "Unhealthy", at=252)]
    came = acts(taint_rule(carrier="Karmada"), *events, until=350, outcomes=False)
    assert came == [(110.0, "SetTaints", SHOWN), (250.0, "SetTaints", [])]


def test_a_taint_that_may_have_been_put_on_before_it_was_called_off_is_taken_off() -> None:
    """The answer of the write was lost, and the cluster recovered before the next try: nothing else would look."""
    called_off = outcome("brownout/cluster/east/1", "Refused", at=150, reason="CalledOff")
    events = [dim("east", "Unhealthy", at=10), dim("east", "Healthy", at=140), called_off]
    came = acts(taint_rule(carrier="Karmada"), *events, until=205, outcomes=False)
    assert came == [(110.0, "SetTaints", SHOWN), (190.0, "SetTaints", [])]
    events += [outcome("brownout/cluster/east/2", "Done", at=191)]
    assert acts(taint_rule(carrier="Karmada"), *events, until=900, outcomes=False) == came


def test_a_taint_that_may_have_been_taken_off_before_that_was_called_off_is_put_on() -> None:
    events = [dim("east", "Unhealthy", at=10), outcome("brownout/cluster/east/1", "Done", at=111)]
    events += [dim("east", "Healthy", at=200), dim("east", "Unhealthy", at=252)]
    called_off = outcome("brownout/cluster/east/2", "Refused", at=253, reason="CalledOff")
    came = acts(taint_rule(carrier="Karmada"), *events, called_off, until=360, outcomes=False)
    assert came == [(110.0, "SetTaints", SHOWN), (250.0, "SetTaints", []), (352.0, "SetTaints", SHOWN)]


def test_workloads_leave_a_tainted_cluster_by_their_own_tolerations() -> None:
    moves = workload_rule(placement=placement("m1", "m2", tolerate=30), failover={"cluster": {}}, signals=["ready"])
    ready = [cluster(name, "Healthy", at=0, signal="ready") for name in ("m1", "m2")]
    events = [workload({"m1": 2}, replicas=2), *ready, dim("m1", "Healthy", at=0), dim("m1", "Unhealthy", at=10)]
    came = acts([taint_rule(), moves], *events, until=500)
    assert came == [
        (110.0, "SetTaints", SHOWN), (140.0, "Place", {"m2": 2}), (140.0, "Evict", "m1"),
    ]  # fmt: skip


def test_they_stay_when_the_taint_is_taken_off_in_time() -> None:
    moves = workload_rule(placement=placement("m1", "m2", tolerate=100), failover={"cluster": {}}, signals=["ready"])
    ready = [cluster(name, "Healthy", at=0, signal="ready") for name in ("m1", "m2")]
    events = [*ready, dim("m1", "Unhealthy", at=10), dim("m1", "Healthy", at=120)]
    came = acts([taint_rule(), moves], workload({"m1": 2}, replicas=2), *events)
    assert came == [(110.0, "SetTaints", SHOWN), (170.0, "SetTaints", [])]


def test_a_rehearsed_taint_moves_nothing() -> None:
    moves = workload_rule(placement=placement("m1", "m2", tolerate=0), failover={"cluster": {}}, signals=["ready"])
    events = [workload({"m1": 2}, replicas=2), *clusters("Healthy", "m1", "m2"), dim("m1", "Unhealthy", at=10)]
    came = acts([taint_rule(mode="DryRun"), moves], *events)
    assert came == [(110.0, "SetTaints", SHOWN)]


# --- rules that are taken away or put to rest ----------------------------------------------------------------------
MOVES = workload_rule(placement=placement("m1", "m2", tolerate=30), failover={"cluster": {}}, signals=["ready"])
READY = [cluster(name, "Healthy", at=0, signal="ready") for name in ("m1", "m2")]
OFF, RETIRED = taint_rule(mode="Off", tolerationSeconds=0), taint_rule(match="cluster/elsewhere")


def run(group_store: GroupStore, events: list[Event]) -> list[tuple[Any, ...]]:
    """Results of these events, and of all that follows within 1000 s."""
    player, found = Simulator(group_store, outcomes=True), []
    for when, fact in events:
        found += [*player.until(at_(when)), *player.take([fact], at_(when))]
    found += [*player.until(at_(events[-1][0] + 1000))]
    return short(found)


def played(*rules_and_events: Any) -> GroupStore:
    given = [one for one in rules_and_events if isinstance(one, dict)]
    group_store = GroupStore(Routing.of(rule_set(*given)))
    player = Simulator(group_store, outcomes=True)
    for when, fact in (one for one in rules_and_events if not isinstance(one, dict)):
        list(player.take([fact], at_(when)))
    return group_store


def rules_changed(group_store: GroupStore, rules: list[dict[str, Any]]) -> GroupStore:
    """Store of a process that gets other rules: its groups are read back."""
    return GroupStore(
        Routing.of(rule_set(*rules)), [load_group(dump_group(group)) for group in group_store.groups.values()]
    )


def tainted(*more: Event) -> GroupStore:
    return played(taint_rule(tolerationSeconds=0), MOVES, *READY, *more, dim("m1", "Unhealthy", at=10))


@pytest.mark.parametrize("after", [[], [OFF], [OFF | {"mode": "DryRun"}], [RETIRED]], ids=["gone", "off", "dry", "no"])
def test_a_rule_that_is_taken_away_or_put_to_rest_leaves_no_taint_behind(after: list[dict[str, Any]]) -> None:
    again = rules_changed(tainted(), [*after, MOVES])
    came = run(again, [dim("m1", "Healthy", at=100), workload({"m1": 2}, at=5000, replicas=2)])
    assert [one for one in came if one[1] != "SetTaints"] == []


def test_what_waits_for_a_taint_stays_when_its_rule_is_taken_away() -> None:
    again = rules_changed(tainted(workload({"m1": 2}, replicas=2)), [MOVES])
    assert list(Simulator(again, outcomes=True).until(at_(3000))) == []


@pytest.mark.parametrize("after", [[], [OFF]], ids=["gone", "off"])
def test_an_old_word_of_a_rule_that_was_taken_away_counts_for_nothing(after: list[dict[str, Any]]) -> None:
    again = rules_changed(tainted(workload({"m1": 2}, replicas=2)), [*after, MOVES])
    taint = Taint(key="reactor/brownout", effect="NoExecute", time_added=at_(10))
    late = ClusterTaints(cluster="m1", rule="brownout", taints=(taint,), observed_at=at_(12))
    assert run(again, [(12, late)]) == []


def test_a_rule_that_was_off_puts_its_taint_on_again() -> None:
    off = rules_changed(tainted(workload({"m1": 2}, replicas=2)), [OFF, MOVES])
    run(off, [dim("m1", "Unhealthy", at=20)])
    on = rules_changed(off, [taint_rule(tolerationSeconds=0), MOVES])
    came = run(on, [dim("m1", "Unhealthy", at=2000)])
    assert came[:3] == [(2000.0, "SetTaints", SHOWN), (2030.0, "Place", {"m2": 2}), (2030.0, "Evict", "m1")]


@pytest.mark.parametrize(
    ("meanwhile", "asked"), [("Healthy", [(2000.0, "SetTaints", [])]), ("Unhealthy", [])], ids=["well again", "bad"]
)
def test_after_a_rehearsal_the_taints_on_a_karmada_object_are_those_from_before(
    meanwhile: str, asked: list[tuple[Any, ...]]
) -> None:
    on = taint_rule(tolerationSeconds=0, carrier="Karmada")
    dry = rules_changed(played(on, dim("m1", "Unhealthy", at=10)), [on | {"mode": "DryRun"}])
    run(dry, [dim("m1", "Healthy", at=100), dim("m1", "Unhealthy", at=300), dim("m1", meanwhile, at=600)])
    again = rules_changed(dry, [on])
    assert run(again, [dim("m1", meanwhile, at=2000)]) == asked


def test_a_rule_that_goes_on_keeps_its_taints_over_a_change_of_others() -> None:
    other = taint_rule(name="other", match="cluster/m2")
    again = rules_changed(tainted(workload({"m1": 2}, replicas=2)), [taint_rule(tolerationSeconds=0), other, MOVES])
    assert again.groups["brownout", "cluster/m1"].mode is Mode.ENFORCE
    came = [(one.at, type(one.what).__name__) for one in Simulator(again, outcomes=True).until(at_(3000))]
    assert came[:2] == [(40.0, "Place"), (40.0, "Evict")]
