"""A workload leaves clusters that fail: when, to where, how, and when it does not."""

from __future__ import annotations

from typing import Any

import pytest

from rules.engine.group_codec import dump_group, load_group
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.rehearsal.simulation import at
from tests.unit.rules.builders import Event, outcome, rule_set
from tests.unit.rules.workload.builders import (
    OBJECT,
    acts,
    cluster,
    clusters,
    copy,
    divided,
    fact,
    happens,
    held_copy,
    holds,
    member,
    placement,
    workload,
    workload_rule,
)


def rule(**keys: Any) -> dict[str, Any]:
    """Two copies on three clusters, in which any failure is tolerated for 100 s."""
    given = {
        "placement": placement("m1", "m2", "m3", tolerate=100),
        "failover": {"cluster": {"purgeMode": "Gracefully"}},
    }
    return workload_rule(**given | keys)


def start(*names: str) -> list[Event]:
    return [workload({"m1": 2, "m2": 2}, replicas=2), *clusters("Healthy", *(names or ("m1", "m2", "m3")))]


MOVED = [(110.0, "Place", {"m1": 2, "m3": 2}), (110.0, "Evict", "m2")]


def test_a_bad_cluster_is_left_when_its_toleration_is_over() -> None:
    assert acts(rule(), *start(), cluster("m2", "Unhealthy", at=10)) == MOVED


def test_an_unreachable_cluster_is_left_too() -> None:
    assert acts(rule(), *start(), cluster("m2", "Unknown", at=10)) == MOVED


def test_silence_makes_a_cluster_unreachable() -> None:
    events = [*start("m1", "m3"), cluster("m2", "Healthy", at=0, stale=10)]
    assert acts(rule(), *events) == MOVED


def test_a_dip_shorter_than_the_toleration_moves_nothing() -> None:
    events = [cluster("m2", "Unhealthy", at=10), cluster("m2", "Healthy", at=109)]
    assert acts(rule(), *start(), *events) == []


def test_without_a_policy_for_its_key_a_failure_is_tolerated_for_300_seconds() -> None:
    given = rule(placement=placement("m1", "m2", "m3"))
    assert [second for second, *_ in acts(given, *start(), cluster("m2", "Unhealthy", at=10))] == [310.0, 310.0]
    assert [second for second, *_ in acts(given, *start(), cluster("m2", "Unknown", at=10))] == [310.0, 310.0]


def test_a_toleration_without_seconds_has_no_end() -> None:
    forever = placement("m1", "m2", "m3") | {"clusterTolerations": [{"operator": "Exists", "effect": "NoExecute"}]}
    assert acts(rule(placement=forever), *start(), cluster("m2", "Unhealthy", at=10)) == []


@pytest.mark.parametrize(
    ("seconds", "leaves"),
    [((200, 50), 60.0), ((50, 200), 60.0), ((50, None), 60.0), ((None, 50), None), ((None, None), None)],
)
def test_of_several_tolerations_the_shortest_counts_unless_the_first_has_no_end(
    seconds: tuple[int | None, ...], leaves: float | None
) -> None:
    listed = [
        {"operator": "Exists", "effect": "NoExecute"} | ({} if one is None else {"tolerationSeconds": one})
        for one in seconds
    ]
    given = rule(placement=placement("m1", "m2", "m3") | {"clusterTolerations": listed})
    came = acts(given, *start(), cluster("m2", "Unhealthy", at=10))
    assert [second for second, *_ in came] == ([leaves] * 2 if leaves is not None else [])


def test_without_a_cluster_block_cluster_failover_is_off() -> None:
    assert acts(rule(failover={"application": {}}), *start(), cluster("m2", "Unhealthy", at=10)) == []
    assert acts(rule(failover={}), *start(), cluster("m2", "Unhealthy", at=10)) == []


def test_a_taint_that_another_writer_puts_on_a_cluster_counts_from_when_it_was_added() -> None:
    taint = {"key": "maintenance", "effect": "NoExecute"}
    events = [*start(), member("m2", at=0), member("m2", at=40, taints=[taint]), member("m2", at=90, taints=[taint])]
    came = happens(rule(), *events, until=200)
    assert [(one.at, type(one.what).__name__) for one in came] == [(140.0, "Place"), (140.0, "Evict")]
    assert getattr(came[0].what, "because", "") == "ClusterTainted"


def test_a_taint_with_its_own_time_is_timed_from_there() -> None:
    taint = {"key": "maintenance", "effect": "NoExecute", "timeAdded": "1970-01-01T00:00:20Z"}
    came = acts(rule(), *start(), member("m2", at=60, taints=[taint]))
    assert [second for second, *_ in came] == [120.0, 120.0]


def test_a_taint_that_nothing_tolerates_is_left_at_once() -> None:
    given = rule(placement=placement("m1", "m2", "m3"))
    taint = {"key": "maintenance", "effect": "NoExecute"}
    assert [second for second, *_ in acts(given, *start(), member("m2", at=60, taints=[taint]))] == [60.0, 60.0]


def test_no_execute_is_needed_to_leave_and_no_schedule_is_enough_not_to_come() -> None:
    taint = {"key": "full", "effect": "NoSchedule"}
    events = [*start(), member("m3", at=0, taints=[taint]), member("m2", at=0, taints=[taint])]
    assert acts(rule(), *events) == []
    assert holds(rule(), *events, cluster("m2", "Unhealthy", at=10)) == [(110.0, "NoLandingPlace")]


def test_the_rules_own_toleration_comes_before_the_policys() -> None:
    came = acts(rule(tolerationSeconds=50), *start(), cluster("m2", "Unhealthy", at=10))
    assert [second for second, *_ in came] == [160.0, 160.0]


def test_unhealthy_and_unknown_in_turn_are_left_in_the_end() -> None:
    """Each has its own clock, and only Healthy stops them: 30 s of one and 30 s of the other, again and again."""
    flapping = [
        cluster("m2", status, at=second)
        for second, status in zip(range(10, 600, 30), ["Unhealthy", "Unknown"] * 10, strict=True)
    ]
    # Unhealthy from 10 to 40, 70 to 100, 130 to 160: 100 s of it are over at 200.
    assert [second for second, *_ in acts(rule(), *start(), *flapping)] == [200.0, 200.0]


def test_healthy_stops_the_clock() -> None:
    events = [
        cluster("m2", "Unhealthy", at=10), cluster("m2", "Healthy", at=100), cluster("m2", "Unhealthy", at=110),
    ]  # fmt: skip
    assert [second for second, *_ in acts(rule(), *start(), *events)] == [210.0, 210.0]


def test_a_cluster_that_is_healthy_for_less_than_its_recovery_goes_on_where_it_was() -> None:
    events = [
        cluster("m2", "Unhealthy", at=10), cluster("m2", "Healthy", at=60), cluster("m2", "Unhealthy", at=70),
    ]  # fmt: skip
    came = acts(rule(recoverySeconds=30), *start(), *events)
    assert [second for second, *_ in came] == [120.0, 120.0]  # 10 s of it were good


def test_a_cluster_that_is_healthy_before_it_gets_its_taint_begins_again() -> None:
    """The rule's own tolerationSeconds is the time for which it must be bad without a break."""
    events = [
        cluster("m2", "Unhealthy", at=10), cluster("m2", "Healthy", at=40), cluster("m2", "Unhealthy", at=50),
    ]  # fmt: skip
    came = acts(rule(tolerationSeconds=40, recoverySeconds=30), *start(), *events)
    assert [second for second, *_ in came] == [190.0, 190.0]  # 50 + 40, and the 100 s of the policy


def test_a_cluster_that_was_never_known_is_no_failure() -> None:
    events = [*start("m1", "m3"), cluster("m2", "Unknown", at=0)]
    assert acts(rule(), *events) == []
    assert holds(rule(), *events) == [(0.0, "TargetUnknown")]


def test_with_unknown_as_unhealthy_it_is_one() -> None:
    events = [*start("m1", "m3"), cluster("m2", "Unknown", at=0)]
    assert [second for second, *_ in acts(rule(treatUnknownAs="Unhealthy"), *events)] == [100.0, 100.0]


def test_only_workloads_on_a_cluster_that_changes_and_those_that_wait_are_decided_again() -> None:
    group_store = GroupStore(Routing.of(rule_set(rule(placement=placement(tolerate=100)))))
    nginx = fact(workload({"m1": 2, "m2": 2}))
    others = [
        nginx.model_copy(update={"name": "redis", "clusters": {"m3": 1}}),
        nginx.model_copy(update={"name": "mail", "clusters": {"m4": 1}}),
    ]
    group_store.apply([nginx, *others, *map(fact, clusters("Healthy", "m1", "m2", "m3"))], at(0))

    def decided(status: str, name: str, second: float) -> set[str]:
        found = group_store.apply([fact(cluster(name, status, at=second))], at(second))
        return {decision.group.object.rpartition("/")[2] for decision in found} - {"*"}

    assert decided("Unhealthy", "m2", 10) == {"nginx"}
    assert decided("Healthy", "m2", 20) == {"nginx"}
    assert decided("Healthy", "m2", 30) == set(), "nothing has changed"
    assert decided("Unknown", "m4", 40) == {"mail"}
    assert decided("Unhealthy", "m3", 50) == {"redis", "mail"}, "mail holds: nobody has known how m4 is"


# --- many at once --------------------------------------------------------------------------------------------------


def all_of(**keys: Any) -> dict[str, Any]:
    """A rule on four clusters with the default limit of 40%."""
    names = ("m1", "m2", "m3", "m4")
    return rule(placement=placement(*names, tolerate=100), guards={"ratePerSecond": 1000}, **keys)


FOUR = start("m1", "m2", "m3", "m4")


def test_when_all_clusters_fall_silent_the_first_to_return_lets_no_copy_go_before_a_whole_toleration() -> None:
    silent = clusters("Unknown", "m1", "m2", "m3", "m4", at=10)
    events = [*FOUR, *silent, *clusters("Healthy", "m1", "m3", "m4", at=500)]
    assert acts(all_of(), *events, until=599) == []
    assert acts(all_of(), *events)[:2] == [(600.0, "Place", {"m1": 2, "m3": 2}), (600.0, "Evict", "m2")]
    assert acts(all_of(), *events, cluster("m2", "Healthy", at=590)) == []


def test_of_two_clusters_the_one_that_returns_takes_the_workload_at_once() -> None:
    two = [workload({"m1": 2}), *clusters("Healthy", "m1", "m2"), *clusters("Unhealthy", "m1", "m2", at=10)]
    given = rule(placement=placement("m1", "m2", tolerate=100), guards={"ratePerSecond": 1000})
    assert acts(given, *two, cluster("m2", "Healthy", at=500))[0] == (500.0, "Place", {"m2": 2})


def test_what_was_tolerated_while_too_many_clusters_were_bad_does_not_count() -> None:
    silent = [cluster("m2", "Unknown", at=10), cluster("m4", "Unknown", at=40)]
    events = [*FOUR, *silent, cluster("m4", "Healthy", at=500)]
    assert holds(all_of(), *events, until=501) == [(110.0, "WidespreadFailure")]
    came = acts(all_of(), *events)
    assert came[0] == (570.0, "Place", {"m1": 2, "m3": 2}), "30 s were over before the other one fell silent"
    assert acts(all_of(), *events, cluster("m2", "Healthy", at=560)) == []


def test_clusters_that_come_and_go_do_not_keep_one_that_is_dead_without_end() -> None:
    flapping = [
        cluster("m4", "Healthy" if second % 40 else "Unhealthy", at=second) for second in range(20, 1000, 20)
    ]  # fmt: skip
    events = [*FOUR, cluster("m2", "Unhealthy", at=0), *flapping]
    assert acts(all_of(), *events)[0][:2] == (180.0, "Place"), "of 180 s m4 was bad, too, for 80"


def test_an_outage_is_remembered_through_a_restart() -> None:
    routing = Routing.of(rule_set(all_of()))
    group_store = GroupStore(routing)
    group_store.apply([one for _, one in FOUR], at(0))
    group_store.apply([fact(one) for one in clusters("Unknown", "m1", "m2", "m3", "m4", at=10)], at(10))
    group_store = GroupStore(routing, [load_group(dump_group(group)) for group in group_store.groups.values()])
    group_store.apply([fact(one) for one in clusters("Healthy", "m1", "m3", "m4", at=500)], at(500))
    assert group_store.next_alarm() == at(600.0)


# --- where to ------------------------------------------------------------------------------------------------------


def test_nothing_is_evicted_without_a_landing_place_and_it_goes_as_soon_as_there_is_one() -> None:
    events = [*start("m1", "m2"), cluster("m2", "Unhealthy", at=10), cluster("m3", "Healthy", at=500)]
    assert holds(rule(), *events, until=600) == [(110.0, "NoLandingPlace")]
    assert acts(rule(), *events) == [(500.0, "Place", {"m1": 2, "m3": 2}), (500.0, "Evict", "m2")]


def test_a_hold_says_why_each_cluster_will_not_do() -> None:
    events = [*start("m1", "m2"), cluster("m3", "Unhealthy", at=0), cluster("m2", "Unhealthy", at=10)]
    [hold] = [one.what for one in happens(rule(placement=placement("m1", "m2", "m3", "m9", tolerate=100)), *events)]
    assert "m3 is Unhealthy" in hold.detail
    assert "m9 is not known" in hold.detail


def test_a_cluster_of_the_inventory_without_an_observation_will_do_but_after_others() -> None:
    given = rule(placement=placement("m1", "m2", "m3", "m4", tolerate=100))
    bad = cluster("m2", "Unhealthy", at=10)
    assert acts(given, *start("m1", "m2"), member("m3"), bad)[0][2] == {"m1": 2, "m3": 2}
    assert acts(given, *start("m1", "m2", "m4"), member("m3"), bad)[0][2] == {"m1": 2, "m4": 2}


def test_a_cluster_that_has_left_the_inventory_will_not_do() -> None:
    events = [*start(), member("m3"), member("m3", at=50, exists=False), cluster("m2", "Unhealthy", at=10)]
    assert holds(rule(), *events) == [(110.0, "NoLandingPlace")]


def test_room_that_turns_up_is_found_without_a_word_to_the_workload() -> None:
    events = [*start(), member("m3", availableReplicas=1), cluster("m2", "Unhealthy", at=10)]
    assert holds(rule(), *events) == [(110.0, "NoLandingPlace")]
    room = member("m3", at=200, availableReplicas=5)
    assert acts(rule(), *events, room) == [(200.0, "Place", {"m1": 2, "m3": 2}), (200.0, "Evict", "m2")]


def test_two_failures_with_one_place_move_nothing_or_what_can_be() -> None:
    events = [*start(), *clusters("Unhealthy", "m1", "m2", at=10)]
    assert acts(rule(), *events) == []
    came = acts(rule(onInsufficient="Partial"), *events)
    assert came == [(110.0, "Place", {"m3": 2}), (110.0, "Evict", "m1"), (110.0, "Evict", "m2")]


def test_divided_replicas_go_to_those_that_stay() -> None:
    given = rule(placement=placement("m1", "m2", tolerate=100, replicaScheduling=divided(m1=1, m2=2)))
    events = [
        workload({"m1": 1, "m2": 2}, replicas=3),
        *clusters("Healthy", "m1", "m2"),
        cluster("m1", "Unknown", at=10),
    ]
    assert acts(given, *events) == [(110.0, "Place", {"m2": 3}), (110.0, "Evict", "m1")]


def test_static_weights_give_no_more_than_there_was_where_there_are_more_clusters_than_replicas() -> None:
    """m4 and m6 would have no share, and keep what they hold. The whole used to become four of three."""
    names = [f"m{number}" for number in range(1, 9)]
    given = rule(placement=placement(*names, tolerate=100, replicaScheduling=divided()))
    events = [workload({"m2": 1, "m4": 1, "m6": 1}, replicas=3), *clusters("Healthy", *names)]
    came = acts(given, *events, cluster("m2", "Unhealthy", at=10))
    assert came[0] == (110.0, "Place", {"m1": 1, "m4": 1, "m6": 1})


def test_a_copy_on_a_cluster_that_is_bad_itself_gets_no_more() -> None:
    given = rule(placement=placement("m1", "m2", tolerate=100, replicaScheduling=divided(m1=1, m2=2)))
    events = [
        workload({"m1": 1, "m2": 2}, replicas=3), *clusters("Healthy", "m1", "m2"), cluster("m1", "Unhealthy", at=10),
        cluster("m2", "Unhealthy", at=60),
    ]  # fmt: skip
    assert acts(given, *events, until=150) == []
    assert holds(given, *events, until=150) == [(110.0, "NoLandingPlace")]


def test_ordered_groups_are_tried_in_order() -> None:
    groups = [
        {"affinityName": "here", "clusterNames": ["m1", "m2"]}, {"affinityName": "there", "clusterNames": ["m3"]},
    ]  # fmt: skip
    given = rule(placement=placement(tolerate=100) | {"clusterAffinities": groups})
    events = [workload({"m1": 2}), *clusters("Healthy", "m1", "m2", "m3"), cluster("m1", "Unhealthy", at=10)]
    assert acts(given, *events)[0][2] == {"m2": 2}
    assert acts(given, *events, cluster("m2", "Unhealthy", at=10))[0][2] == {"m3": 2}


def test_a_region_constraint_is_kept_when_a_copy_moves() -> None:
    spread = [
        {"spreadByField": "region", "minGroups": 2, "maxGroups": 2},
        {"spreadByField": "cluster", "minGroups": 2, "maxGroups": 2},
    ]
    given = rule(placement=placement(tolerate=100) | {"spreadConstraints": spread})
    regions = {"m1": "eu", "m2": "us", "m3": "eu", "m4": "us"}
    events = [
        workload({"m1": 2, "m2": 2}), *clusters("Healthy", *regions),
        *(member(name, region=region) for name, region in regions.items()), cluster("m2", "Unhealthy", at=10),
    ]  # fmt: skip
    assert acts(given, *events)[0][2] == {"m1": 2, "m4": 2}


# --- the workload itself -------------------------------------------------------------------------------------------


def test_a_workload_that_was_never_listed_is_not_moved() -> None:
    assert acts(rule(), *clusters("Healthy", "m1", "m2", "m3"), cluster("m2", "Unhealthy", at=10)) == []


def test_a_workload_that_is_gone_is_left_alone_and_one_that_goes_half_way_is_told() -> None:
    gone = workload({}, at=50, exists=False)
    assert acts(rule(), *start(), cluster("m2", "Unhealthy", at=10), gone) == []
    assert holds(rule(), *start(), cluster("m2", "Unhealthy", at=10), gone) == []
    late = workload({}, at=150, exists=False)
    assert holds(rule(), *start(), cluster("m2", "Unhealthy", at=10), late) == [(150.0, "WorkloadNotFound")]


def test_single_copies_make_a_workload() -> None:
    events = [held_copy("m1", 2, at=0), held_copy("m2", 2, at=0), *clusters("Healthy", "m1", "m2", "m3")]
    assert acts(rule(), *events, cluster("m2", "Unhealthy", at=10)) == MOVED


def test_a_copy_that_another_writer_removes_needs_no_more_moving() -> None:
    events = [*start(), cluster("m2", "Unhealthy", at=10), workload({"m1": 2}, at=60, replicas=2)]
    assert acts(rule(), *events) == []


def test_late_inventory_undoes_nothing() -> None:
    late = (200.0, workload({"m1": 2, "m2": 2, "m4": 2}, at=5)[1])
    assert acts(rule(), *start(), cluster("m2", "Unhealthy", at=10), late) == MOVED


def test_inventory_from_before_an_action_is_not_taken_for_the_world_after_it() -> None:
    stale = (115.0, workload({"m1": 2, "m2": 2, "m4": 1}, at=109)[1])
    assert acts(rule(), *start(), cluster("m2", "Unhealthy", at=10), stale, until=130) == MOVED


def test_other_workloads_of_the_rule_go_by_the_same_clusters() -> None:
    other = fact(workload({"m2": 1})).model_copy(update={"name": "redis"})
    came = happens(rule(), *start(), (0.0, other), cluster("m2", "Unhealthy", at=10))
    assert {getattr(one.what, "object", "") for one in came} == {OBJECT, "default/Deployment/redis"}


# --- the old copy --------------------------------------------------------------------------------------------------


def test_the_old_copy_goes_when_all_that_stay_are_healthy() -> None:
    events = [*start(), cluster("m2", "Unhealthy", at=10), copy("m1", "Healthy", at=0)]
    assert acts(rule(), *events, until=600) == MOVED
    assert acts(rule(), *events, copy("m3", "Healthy", at=150)) == [*MOVED, (150.0, "Purge", "m2")]


def test_health_from_before_the_copy_was_placed_says_nothing_about_it() -> None:
    events = [*start(), cluster("m2", "Unhealthy", at=10), copy("m1", "Healthy", at=0), copy("m3", "Healthy", at=60)]
    assert acts(rule(), *events, until=600) == MOVED


def test_a_copy_that_grows_has_to_be_healthy_again() -> None:
    given = rule(placement=placement("m1", "m2", tolerate=100, replicaScheduling=divided(m1=1, m2=2)))
    events = [
        workload({"m1": 1, "m2": 2}, replicas=3), *clusters("Healthy", "m1", "m2"), copy("m2", "Healthy", at=5),
        cluster("m1", "Unhealthy", at=10), copy("m2", "Healthy", at=140),
    ]  # fmt: skip
    assert acts(given, *events)[-1] == (140.0, "Purge", "m1")


def failover(**keys: Any) -> dict[str, Any]:
    return {"cluster": {"purgeMode": "Gracefully", "gracePeriodSeconds": 50, **keys}}


def test_with_no_healthy_replacement_the_old_copy_stays_beyond_its_grace() -> None:
    events = [*start(), cluster("m2", "Unhealthy", at=10)]
    assert acts(rule(failover=failover()), *events) == MOVED
    assert holds(rule(failover=failover()), *events) == [(160.0, "GraceExpired")]
    later = [*events, copy("m1", "Healthy", at=900)]
    assert acts(rule(failover=failover()), *later)[-1] == (900.0, "Purge", "m2")


def test_after_its_grace_the_old_copy_goes_if_it_is_not_the_last_healthy_one() -> None:
    events = [*start(), cluster("m2", "Unhealthy", at=10), copy("m1", "Healthy", at=0)]
    assert acts(rule(failover=failover()), *events) == [*MOVED, (160.0, "Purge", "m2")]


@pytest.mark.parametrize("where", ["rule", "block"])
def test_the_seeds_way_purges_after_the_grace_but_never_the_last_healthy_copy(where: str) -> None:
    keys = {"onGraceExpired": "Purge"}
    given = rule(failover=failover(), **keys) if where == "rule" else rule(failover=failover(**keys))
    events = [*start(), cluster("m2", "Unhealthy", at=10)]
    assert acts(given, *events) == [*MOVED, (160.0, "Purge", "m2")]
    alive = [*events, copy("m2", "Healthy", at=120)]
    assert acts(given, *alive) == MOVED
    assert holds(given, *alive) == [(160.0, "LastHealthyCopy")]


def test_directly_evicts_first_and_places_then() -> None:
    given = rule(failover={"cluster": {"purgeMode": "Immediately"}})
    events = [*start(), cluster("m2", "Unhealthy", at=10), copy("m3", "Healthy", at=150)]
    assert acts(given, *events) == [(110.0, "Evict", "m2"), (110.0, "Place", {"m1": 2, "m3": 2})]


def test_directly_does_not_evict_into_nothing_either() -> None:
    given = rule(failover={"cluster": {"purgeMode": "Directly"}})
    assert acts(given, *start("m1", "m2"), cluster("m2", "Unhealthy", at=10)) == []


def test_what_was_evicted_directly_is_placed_though_its_cluster_recovers_meanwhile() -> None:
    given = rule(failover={"cluster": {"purgeMode": "Directly"}})
    events = [
        *start(), cluster("m2", "Unhealthy", at=10), outcome(f"nginx/{OBJECT}/1", "Done", at=120),
        cluster("m2", "Healthy", at=115),
    ]  # fmt: skip
    came = acts(given, *events, outcomes=False, until=130)
    assert came == [(110.0, "Evict", "m2"), (120.0, "Place", {"m1": 2, "m3": 2})]


def test_never_leaves_the_old_copy_to_a_person() -> None:
    given = rule(failover={"cluster": {"purgeMode": "Never"}})
    events = [*start(), cluster("m2", "Unhealthy", at=10), copy("m1", "Healthy", at=0), copy("m3", "Healthy", at=150)]
    assert acts(given, *events) == MOVED


def test_with_never_the_move_ends_when_the_person_has_removed_the_copy() -> None:
    never = {"cluster": {"purgeMode": "Never", "blockPredecessorSeconds": None}}
    given = rule(failover=never, placement=placement("m1", "m2", "m3", tolerate=100))
    events = [held_copy("m1", 2, at=0), held_copy("m2", 2, at=0), *clusters("Healthy", "m1", "m2", "m3")]
    removed = held_copy("m2", None, at=300, exists=False)
    back = [cluster("m2", "Healthy", at=400), cluster("m1", "Unhealthy", at=500)]
    came = acts(given, *events, cluster("m2", "Unhealthy", at=10), removed, *back)
    assert came == [*MOVED, (600.0, "Place", {"m2": 2, "m3": 2}), (600.0, "Evict", "m1")]


# --- recovery ------------------------------------------------------------------------------------------------------


def test_a_cluster_that_recovers_before_the_purge_keeps_its_copy() -> None:
    events = [*start(), cluster("m2", "Unhealthy", at=10), cluster("m2", "Healthy", at=150)]
    assert acts(rule(), *events) == [*MOVED, (150.0, "CancelEviction", "m2"), (150.0, "Evict", "m3")]


def test_only_after_its_recovery_time() -> None:
    events = [*start(), cluster("m2", "Unhealthy", at=10), cluster("m2", "Healthy", at=150)]
    came = acts(rule(recoverySeconds=60), *events)
    assert came == [*MOVED, (210.0, "CancelEviction", "m2"), (210.0, "Evict", "m3")]


def test_an_eviction_that_has_not_begun_is_dropped() -> None:
    events = [*start(), cluster("m2", "Unhealthy", at=10), cluster("m2", "Healthy", at=120)]
    came = acts(rule(), *events, outcomes=False, until=600)
    assert [verb for _, verb, _ in came] == ["Place"]


def test_with_never_a_recovery_changes_nothing() -> None:
    given = rule(failover={"cluster": {"purgeMode": "Never"}})
    assert acts(given, *start(), cluster("m2", "Unhealthy", at=10), cluster("m2", "Healthy", at=150)) == MOVED


def test_a_cluster_that_comes_back_after_the_purge_is_asked_stays_left() -> None:
    """A dead cluster is purged when it comes back, before its copy may serve again."""
    events = [*start(), cluster("m2", "Unhealthy", at=10), copy("m1", "Healthy", at=0), copy("m3", "Healthy", at=150)]
    done = [outcome(f"nginx/{OBJECT}/{number}", "Done", at=111 + number) for number in (1, 2)]
    came = acts(rule(), *events, *done, cluster("m2", "Healthy", at=400), outcomes=False, until=500)
    assert [verb for _, verb, _ in came] == ["Place", "Evict", "Purge"]


# --- outcomes and modes --------------------------------------------------------------------------------------------


def test_each_step_waits_for_the_outcome_of_the_one_before() -> None:
    events = [*start(), cluster("m2", "Unhealthy", at=10), copy("m1", "Healthy", at=0)]
    assert [verb for _, verb, _ in acts(rule(), *events, outcomes=False, until=500)] == ["Place"]
    placed = outcome(f"nginx/{OBJECT}/1", "Done", at=130)
    assert acts(rule(), *events, placed, outcomes=False, until=500)[1:] == [(130.0, "Evict", "m2")]
    gone = outcome(f"nginx/{OBJECT}/2", "Done", at=140)
    came = acts(rule(), *events, placed, gone, copy("m3", "Healthy", at=135), outcomes=False, until=500)
    assert came[2:] == [(140.0, "Purge", "m2")]


def test_a_plan_on_its_way_is_not_replaced_because_rooms_change() -> None:
    given = rule(placement=placement("m1", "m2", "m3", "m4", tolerate=100))
    events = [
        *start("m1", "m2", "m3", "m4"), member("m3", availableReplicas=9), member("m4", availableReplicas=8),
        cluster("m2", "Unhealthy", at=10), member("m4", at=115, availableReplicas=99),
        workload({"m1": 2, "m2": 2}, at=116, replicas=2),
    ]  # fmt: skip
    assert acts(given, *events, outcomes=False, until=118) == MOVED[:1]


def test_a_dry_run_rehearses_the_whole_move_and_not_again() -> None:
    refreshed = [workload({"m1": 2, "m2": 2}, at=second, replicas=2) for second in range(120, 600, 30)]
    events = [*start(), cluster("m2", "Unhealthy", at=10), *refreshed]
    came = acts(rule(mode="DryRun"), *events)
    assert came == MOVED


def test_a_dry_run_does_not_complain_that_a_rehearsed_copy_is_not_healthy() -> None:
    assert holds(rule(mode="DryRun", failover=failover()), *start(), cluster("m2", "Unhealthy", at=10)) == []


def test_a_dry_run_purges_too_where_a_history_says_that_the_copy_is_healthy() -> None:
    events = [*start(), cluster("m2", "Unhealthy", at=10), copy("m1", "Healthy", at=0), copy("m3", "Healthy", at=150)]
    assert acts(rule(mode="DryRun"), *events) == [*MOVED, (150.0, "Purge", "m2")]


def test_mode_off_does_nothing() -> None:
    assert acts(rule(mode="Off"), *start(), cluster("m2", "Unhealthy", at=10)) == []


@pytest.mark.parametrize(("keys", "back_at"), [({}, 710.0), ({"blockPredecessorSeconds": 0}, None)])
def test_a_cluster_that_was_left_gets_no_new_copy_for_a_while(keys: dict[str, Any], back_at: float | None) -> None:
    given = rule(failover={"cluster": keys}, placement=placement("m1", "m2", tolerate=100))
    to_m2 = [workload({"m1": 2}, replicas=2), *clusters("Healthy", "m1", "m2"), cluster("m1", "Unhealthy", at=10)]
    serves = [copy("m2", "Healthy", at=120), cluster("m1", "Healthy", at=200), cluster("m2", "Unhealthy", at=300)]
    came = acts(given, *to_m2, *serves, until=2000)
    assert came[:3] == [(110.0, "Place", {"m2": 2}), (110.0, "Evict", "m1"), (120.0, "Purge", "m1")]
    back = [one for one in came[3:] if one[1] == "Place"]
    assert back == ([(back_at, "Place", {"m1": 2})] if back_at else [])
