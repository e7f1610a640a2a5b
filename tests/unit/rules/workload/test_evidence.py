"""No copy leaves a cluster, and none is placed or purged, against what is seen now (decision 21)."""

from __future__ import annotations

from typing import Any

from bus.messages import ClusterTaints, Taint
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.rehearsal.simulation import Simulator
from rules.rehearsal.simulation import at as moment
from tests.unit.rules.builders import Event, outcome, rule_set
from tests.unit.rules.workload.builders import (
    acts,
    cluster,
    copy,
    fact,
    held_copy,
    holds,
    in_time,
    placement,
    workload,
    workload_rule,
)

MOVED = [("Place", {"m1": 2, "m3": 2}), ("Evict", "m2")]


def rule(**keys: Any) -> dict[str, Any]:
    """Two copies on three clusters; a failure of a cluster, or of a copy, is tolerated for 100 s."""
    given = {
        "placement": placement("m1", "m2", "m3", tolerate=100),
        "failover": {
            "cluster": {"purgeMode": "Gracefully", "gracePeriodSeconds": 50},
            "application": {"decisionConditions": {"tolerationSeconds": 100}},
        },
    }
    return workload_rule(**given | keys)


def look(name: str, status: str, at: float, since: float) -> Event:
    """Observation by the probe of a cluster, and since when without a break."""
    return cluster(name, status, at=at, signal="probe", source="probe", since=moment(since))


def copy_look(name: str, status: str, at: float, since: float) -> Event:
    return copy(name, status, at=at, signal="watch", source="watch", since=moment(since))


START = [workload({"m1": 2, "m2": 2}, replicas=2), *(look(name, "Healthy", 0, 0) for name in ("m1", "m2", "m3"))]
BAD = look("m2", "Unhealthy", 10, 10)


def after(*events: Event, until: float = 3000) -> list[tuple[Any, ...]]:
    return acts(rule(), *START, BAD, *events, until=until)


def test_a_cluster_that_recovered_unheard_is_not_left() -> None:
    assert after(look("m2", "Healthy", 200, 60), look("m3", "Healthy", 200, 0)) == []


def test_a_cluster_is_left_once_it_is_seen_bad_after_its_toleration_and_the_other_is_seen_healthy() -> None:
    bad = look("m2", "Unhealthy", 200, 10)
    assert after(bad) == []
    assert after(bad, look("m3", "Healthy", 109, 0)) == []
    assert after(bad, look("m3", "Healthy", 200.5, 0)) == [(200.5, *act) for act in MOVED]


def test_a_cluster_that_failed_again_unheard_has_its_whole_toleration_once_more() -> None:
    again = [look("m2", "Unhealthy", 200, 150), look("m3", "Healthy", 200, 0)]
    then = [look("m2", "Unhealthy", 251, 150), look("m3", "Healthy", 251, 0)]
    assert after(*again) == []
    assert after(*again, *then) == [(251, *act) for act in MOVED]


def test_a_source_of_clusters_that_does_not_answer_is_told_of() -> None:
    assert holds(rule(), *START, BAD) == [(112, "SourceSilent")]


def test_a_copy_that_recovered_unheard_stays() -> None:
    bad = [copy_look("m2", "Healthy", 0, 0), copy_look("m2", "Unhealthy", 10, 10)]
    fresh = look("m3", "Healthy", 200, 0)
    assert acts(rule(), *START, *bad, copy_look("m2", "Healthy", 200, 60), fresh) == []
    found = acts(rule(), *START, *bad, copy_look("m2", "Unhealthy", 200, 10), fresh)
    assert found[:2] == [(200, *act) for act in MOVED]


def test_a_cluster_that_is_left_for_its_taint_may_be_healthy() -> None:
    """A person, or a brownout alert, has tainted it: no bad word about its health is needed."""
    taints = (Taint(key="reactor/brownout", effect="NoExecute"),)
    tainted = (10.0, ClusterTaints(cluster="m2", rule="brown", taints=taints, observed_at=moment(10)))
    brown = {
        "name": "brown", "kind": "ClusterTaint", "mode": "Enforce", "match": "cluster/*", "signals": ["brownout"],
        "taints": [{"key": "reactor/brownout", "effect": "NoExecute"}],
    }  # fmt: skip
    found = acts(rule_set(rule(), brown), *START, tainted, look("m3", "Healthy", 120, 0), look("m2", "Healthy", 120, 0))
    assert found == [(120, *act) for act in MOVED]


def test_the_old_copy_is_purged_only_by_what_was_seen_of_the_others_since_its_grace_was_over() -> None:
    left = [look("m2", "Unhealthy", 110, 10), look("m3", "Healthy", 110, 0)]
    early = [copy_look("m1", "Healthy", 120, 0), copy_look("m3", "Unhealthy", 120, 120)]
    assert after(*left, *early, until=200) == [(110, *act) for act in MOVED]
    assert after(*left, *early, copy_look("m1", "Healthy", 170, 0), until=200)[2:] == [(170, "Purge", "m2")]


def test_a_copy_that_fell_silent_and_failed_again_unheard_has_its_whole_toleration_once_more() -> None:
    def silent(at: float, since: float) -> Event:
        return copy("m2", "Unhealthy", at=at, signal="watch", source="watch", since=moment(since), stale=60)

    bad = [copy_look("m2", "Healthy", 0, 0), silent(10, 10)]
    fresh = [look("m3", "Healthy", at, 0) for at in (400, 440, 491)]
    again = [silent(400, 390), silent(440, 390)]
    assert acts(rule(), *START, *bad, *again, *fresh, until=480) == []
    assert acts(rule(), *START, *bad, *again, silent(491, 390), *fresh, until=495) == [(491, *act) for act in MOVED]
    seen_bad = acts(rule(), *START, *bad, silent(400, 10), *fresh, until=420)
    assert seen_bad == [(400, *act) for act in MOVED]


def test_a_cluster_that_fell_silent_and_failed_again_unheard_has_its_whole_toleration_once_more() -> None:
    def silent(at: float, since: float) -> Event:
        return cluster("m2", "Unhealthy", at=at, signal="probe", source="probe", since=moment(since), stale=60)

    fresh = [look("m3", "Healthy", at, 0) for at in (400, 440, 491)]
    again = [silent(400, 390), silent(440, 390)]
    assert acts(rule(), *START, silent(10, 10), *again, *fresh, until=480) == []
    found = acts(rule(), *START, silent(10, 10), *again, silent(491, 390), *fresh, until=495)
    assert found == [(491, *act) for act in MOVED]


def test_a_new_copy_whose_toleration_begins_again_unheard_is_too_many_as_the_old_one_is_back() -> None:
    one_of_two = placement("m1", "m2", spread={"minGroups": 1, "maxGroups": 1})
    start = [workload({"m1": 2}), *(look(name, "Healthy", 0, 0) for name in ("m1", "m2"))]
    moved = [
        copy_look("m1", "Unhealthy", 10, 10), copy_look("m1", "Unhealthy", 110, 10), look("m2", "Healthy", 110, 0),
        copy_look("m2", "Unhealthy", 112, 111),
    ]  # fmt: skip
    # Its toleration was over at 211, and nothing was seen from 112 to 300.
    back = [copy_look("m2", "Unhealthy", 300, 300), copy_look("m1", "Healthy", 301, 301)]
    came = acts(rule(placement=one_of_two), *start, *moved, *back, until=310)
    assert came[2:] == [(301, "CancelEviction", "m1"), (301, "Evict", "m2"), (301, "Purge", "m2")]


PATIENT = {"cluster": {"purgeMode": "Gracefully", "gracePeriodSeconds": 5000}}


def test_a_copy_that_was_too_many_stays_where_its_eviction_is_known_only_when_another_one_has_to_leave_again() -> None:
    id_ = "nginx/default/Deployment/nginx"
    start = [*START, *(copy_look(name, "Healthy", 0, 0) for name in ("m1", "m2"))]
    left = [BAD, look("m2", "Unhealthy", 110, 10), look("m3", "Healthy", 110, 0), outcome(f"{id_}/1", "Done", at=111)]
    back = [look("m2", "Healthy", 112, 112), outcome(f"{id_}/2", "Refused", reason="CalledOff", at=113)]
    again = [look("m2", "Unhealthy", 130, 130), look("m2", "Unhealthy", 231, 130), outcome(f"{id_}/3", "Done", at=232)]
    found = acts(rule(failover=PATIENT), *start, *left, *back, *again, until=300, outcomes=False)
    assert found == [
        (110, "Place", {"m1": 2, "m3": 2}), (111, "Evict", "m2"), (113, "Evict", "m3"), (231, "Evict", "m2"),
        (232, "CancelEviction", "m3"),
    ]  # fmt: skip


def test_a_cluster_whose_toleration_begins_again_unheard_is_not_back_for_the_copy_that_was_placed() -> None:
    """A reactor that died after the copy was placed: the outcome was lost."""
    start = [*START, copy_look("m1", "Healthy", 0, 0), copy_look("m2", "Healthy", 0, 0)]
    left = [BAD, look("m2", "Unhealthy", 110, 10), look("m3", "Healthy", 110, 0), held_copy("m3", 2, at=304)]
    lost = outcome("nginx/default/Deployment/nginx/1", "Failed", reason="Waited", at=305)
    again = [look("m2", "Unhealthy", 300, 300), copy_look("m3", "Healthy", 306, 111)]
    found = acts(rule(failover=PATIENT), *start, *left, lost, *again, until=390, outcomes=False)
    assert found == [(110, "Place", {"m1": 2, "m3": 2})]


def test_a_copy_of_which_nothing_was_said_since_it_was_placed_is_asked_for() -> None:
    """It was seen before the answer to its Place came, and is as it was: its source would repeat it in half a
    minute."""
    group_store = GroupStore(Routing.of(rule_set(rule())))
    player = Simulator(group_store, outcomes=False)
    seen = [*START, BAD, look("m2", "Unhealthy", 110, 10), look("m3", "Healthy", 110, 0)]
    for when, given in [*seen, copy_look("m3", "Healthy", 112, 112)]:
        list(player.take([given], moment(when)))
    [place] = [entry.action for group in group_store.groups.values() for entry in group.outbox]
    decisions = group_store.apply([fact(outcome(place.id, "Done", at=113))], moment(113))
    asked = [(lack.source, lack.target, lack.since) for decision in decisions for lack in decision.lacks]
    assert asked == [("watch", "workload/m3/default/Deployment/nginx", moment(113))]
    again = group_store.apply([fact(copy_look("m3", "Healthy", 113.5, 112))], moment(113.5))
    assert [lack for decision in again for lack in decision.lacks] == []


def test_a_source_that_stays_silent_is_not_asked_without_end_where_no_move_waits() -> None:
    """It may have been removed from the rule file."""
    group_store = GroupStore(Routing.of(rule_set(rule(onGraceExpired="Purge"))))
    player = Simulator(group_store, outcomes=True)
    seen = [*START, BAD, look("m2", "Unhealthy", 110, 10), look("m3", "Healthy", 110, 0)]
    for when, given in in_time([*seen, copy_look("m3", "Healthy", 50, 50)]):
        list(player.take([given], moment(when)))
    asked = []
    while (alarm := group_store.next_alarm()) is not None and alarm < moment(6000):
        decisions = group_store.fire_due(alarm)
        asked += [alarm for decision in decisions if decision.lacks]
        list(player._follow(decisions, alarm))
    assert [group.state.moves for group in group_store.groups.values() if group.object != "*"] == [{}]
    assert max(asked) < moment(1500)
