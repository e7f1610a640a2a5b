"""Cases about tolerations, tasks and application failover, applied to our functions, or to a whole history."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from bus.messages import Evict, Health, Taint, WorkloadRef
from rules.core.errors import InvalidFiles
from rules.core.group import Group
from rules.core.member import Member, Signal
from rules.core.reasons import Because
from rules.core.timers import Stopwatch, runs
from rules.kinds.workload import causes as workload_causes
from rules.kinds.workload import facts as workload_facts
from rules.kinds.workload.eviction import armed_at, blocked, bound, fails_at, next_purge, purged_because
from rules.kinds.workload.model import (
    ApplicationFailover,
    DecisionConditions,
    OnGraceExpired,
    PreConditions,
    PurgeMode,
    WorkloadFailover,
)
from rules.kinds.workload.placement import Toleration
from rules.kinds.workload.state import Copy, Departure, Relocation, WorkloadState
from rules.kinds.workload.tolerations import earliest, leaves_at, may_come, used
from rules.rehearsal.simulation import at
from rules.rulefile.model import Rule
from tests.unit.rules.builders import rule_set
from tests.unit.rules.workload.builders import OBJECT, acts, clusters, copy, placement, workload, workload_rule

Case = dict[str, Any]
NOW = at(100_000)
RULE = rule_set(workload_rule()).rules[0]


def moment(second: float | None) -> datetime | None:
    return None if second is None else NOW + timedelta(seconds=second)


def taints(case: Case) -> list[Taint]:
    return [
        Taint(key=one["key"], value=one["value"], effect=one["effect"], time_added=moment(one["added_s"]))
        for one in case["taints"]
    ]


def tolerations(given: list[Case]) -> list[Toleration]:
    return [
        Toleration(
            key=one["key"], operator=one["op"], value=one["value"], effect=one["effect"],
            toleration_seconds=one["seconds"],
        )
        for one in given
    ]  # fmt: skip


def seconds_left(until: datetime | None) -> float:
    """-1: without end; 0: now."""
    return -1 if until is None else max((until - NOW).total_seconds(), 0)


def toleration_matches(case: Case) -> None:
    given = tolerations(case["tolerations"])
    found = used(taints(case), given)
    indexes = [next(i for i, one in enumerate(given) if one is first) for first in found or ()]
    assert {"all": found is not None, "used": indexes} == case["expect"]


def toleration_min_time(case: Case) -> None:
    assert seconds_left(earliest(taints(case), tolerations(case["used"]), RULE.window)) == case["expect"]


def eviction_decision(case: Case) -> None:
    stands = taints(case) if case["enabled"] and case.get("cluster_exists", True) else []
    left = seconds_left(leaves_at(stands, tolerations(case["tolerations"]), RULE.window))
    assert {"evict": left == 0, "wait_s": left} == case["expect"]


def eviction_enqueue(case: Case) -> None:
    left = seconds_left(leaves_at(taints(case), tolerations(case["tolerations"] or []), RULE.window))
    word = "skip" if left == -1 else "delayed" if left else "immediate"
    assert word == case["expect"]


def schedule_filter(case: Case) -> None:
    comes = case["bound"] or may_come(taints(case), tolerations(case["tolerations"]))
    assert (not case["evicting"] and comes) == case["expect"]


# --- tasks ---------------------------------------------------------------------------------------------------------


def fate(case: Case, task: Case, on_expired: OnGraceExpired) -> str:
    """End of the old copy, in Karmada's words. A suppressed task is the mode Never."""
    limit = case["timeout_s"] if task["grace_s"] is None else task["grace_s"]
    health = {name: Health(status) for name, status in case["health"].items()}
    why = purged_because(
        timedelta(seconds=task["age_s"]), None if task.get("suppress") else timedelta(seconds=limit),
        {name: health.get(name) for name in case["targets"]}, placed=case["scheduled"], source=None,
        on_expired=on_expired,
    )  # fmt: skip
    return "drop" if isinstance(why, Because) else "keep"


def graceful_task_assess(case: Case) -> None:
    if "ours" in case:
        assert fate(case, case, OnGraceExpired.KEEP) == case["ours"]
    else:
        assert fate(case, case, OnGraceExpired.PURGE) == case["expect"]


def graceful_tasks_batch(case: Case) -> None:
    fates = {task["from"]: fate(case, task, OnGraceExpired.PURGE) for task in case["tasks"]}
    assert [name for name, word in fates.items() if word == "keep"] == [one["from"] for one in case["expect_kept"]]
    assert [name for name, word in fates.items() if word == "drop"] == case["expect_evicted"]


def graceful_next_check(case: Case) -> None:
    moves = [
        Relocation(
            "Cluster", "", "", evicted_at=moment(-task["age_s"]),
            grace_seconds=(task["grace_s"] or case["timeout_s"]) if task["suppress"] is None else None,
        )
        for task in case["tasks"]
    ]  # fmt: skip
    assert max(seconds_left(next_purge(RULE.window, moves, NOW)), 0) == case["expect"]


def the_rule(**keys: Any) -> WorkloadFailover:
    rule: Rule = rule_set(workload_rule(**keys)).rules[0]
    assert isinstance(rule, WorkloadFailover)
    return rule


def group_of(
    copies: Mapping[str, Copy], moves: Mapping[str, Relocation], members: Mapping[str, Health] | None = None
) -> Group:
    state = WorkloadState(api_version="apps/v1", exists=True, copies=copies, moves=moves)
    told = {
        f"workload/{name}/{OBJECT}": Member(status, NOW, signals={"health": Signal(status, NOW)})
        for name, status in (members or {}).items()
    }
    return Group("nginx", OBJECT, state, members=told)


def evict_cluster(case: Case) -> None:
    copies = {name: Copy(count) for name, count in case["clusters"].items()}
    open_tasks = {name: Relocation("Cluster", "", "", placed=True, evicted_at=NOW) for name in case["tasks"]}
    ref = WorkloadRef(namespace="default", kind="Deployment", name="nginx")
    name = case["cluster"]
    action = Evict.model_construct(
        workload=ref, carrier="Kubernetes", from_=name, purge_mode="Gracefully", grace_period_seconds=600,
        replicas=case["clusters"].get(name), because="TolerationElapsed", detail="",
        decided_at=NOW,
    )  # fmt: skip
    after = workload_facts.done(the_rule(), group_of(copies, open_tasks), action, NOW).state
    assert after is not None
    assert {name: one.replicas for name, one in bound(after.copies, after.moves).items()} == case["expect_clusters"]
    tasks = [{"from": name, "replicas": move.replicas} for name, move in after.moves.items()]
    assert tasks == sorted(case["expect_tasks"], key=lambda task: str(task["from"]))


def purge_mode_actions(case: Case) -> None:
    """Check the mode, and the end of the old copy: before the new one is placed, when that is Healthy, or never."""
    rule = workload_rule(
        placement=placement("m1", "m2", tolerate=10), failover={"cluster": {"purgeMode": case["mode"]}}
    )  # fmt: skip
    behaviour = the_rule(failover={"cluster": {"purgeMode": case["mode"]}}).failover
    assert behaviour is not None
    assert behaviour.cluster is not None
    assert behaviour.cluster.purge_mode.value == case["expect"]["canonical"]
    done = acts(
        rule, workload({"m1": 2}, replicas=2), *clusters("Healthy", "m1", "m2"),
        *clusters("Unhealthy", "m1", at=5), copy("m2", "Healthy", at=50),
    )  # fmt: skip
    order = [verb for _, verb, _ in done]
    goes = {
        ("Evict", "Place"): "before_new",
        ("Place", "Evict", "Purge"): "when_new_healthy_or_timeout",
        ("Place", "Evict"): "manual",
    }
    assert goes[tuple(order)] == case["expect"]["old_copy_removed"]


def purge_mode_resolve(case: Case) -> None:
    mode = case["policy_cluster"].get("mode")
    keys = {} if mode is None else {"purgeMode": mode}
    failover = the_rule(failover={"cluster": keys}).failover
    assert failover is not None
    assert failover.cluster is not None
    assert failover.cluster.purge_mode == PurgeMode(case["expect"])


# --- application failover ------------------------------------------------------------------------------------------


def after_looking(case_health: Mapping[str, str], timers: list[str], evicting: list[str]) -> WorkloadState:
    """The workload after its copies' health was looked at once; `timers` have been bad for a while."""
    copies = {
        name: Copy(1, first_status_at=NOW, bad=Stopwatch(NOW, NOW) if name in timers else None) for name in case_health
    }
    moves = {name: Relocation("Application", "", "", placed=True, evicted_at=NOW) for name in evicting}
    members = {name: Health(status) for name, status in case_health.items()}
    group = workload_causes.advance(the_rule(), group_of(copies, moves, members), None, NOW)
    return group.state


def app_health_split(case: Case) -> None:
    state = after_looking(case["health"], list(case["health"]), case["evicting"])
    clocks = {name: state.copies[name].bad for name in case["health"] if name not in case["evicting"]}
    running = [name for name, clock in clocks.items() if runs(clock)]
    reset = [name for name in case["health"] if state.copies[name].bad is None]
    expect: Case = dict(case["ours"] if "ours" in case else case["expect"])
    # Unknown never clears a timer of ours: the one case about it says so, and it holds for all.
    expect["reset"] = [name for name in expect["reset"] if case["health"][name] != "Unknown"]
    assert {"unhealthy": running, "reset": reset} == expect


def app_failover_detect(case: Case) -> None:
    application = ApplicationFailover(decision_conditions=DecisionConditions(toleration_seconds=case["toleration_s"]))
    ends = {}
    for name in case["unhealthy"]:
        since = moment(case["first_seen_s"].get(name, 0)) or NOW
        end = fails_at(RULE.window, application, Copy(1, first_status_at=since, bad=Stopwatch(since, since)))
        assert end is not None
        ends[name] = (end - NOW).total_seconds()
    got = {
        "evict": [name for name, left in ends.items() if left <= 0],
        "recheck_s": min((left for left in ends.values() if left > 0), default=0),
    }
    assert got == case.get("ours", case["expect"])


def app_timer_cleanup(case: Case) -> None:
    health = {name: "Healthy" if name in case["reset"] else "Unhealthy" for name in case["bound"]}
    state = after_looking(health, case["timers"], [])
    kept = [name for name, one in state.copies.items() if one.bad is not None and name in case["timers"]]
    assert sorted(kept) == case["expect"]


def app_failover_gate(case: Case) -> None:
    """Active: a copy that is bad for long enough is left."""
    failover: dict[str, Any] = {"cluster": {}}
    if case["failover_application"]:
        failover["application"] = {"decisionConditions": {"tolerationSeconds": 30}}
    rule = workload_rule(failover=failover, propagateDeps=case["propagate_deps"], placement=placement("m1", "m2"))
    told = case["statuses_collected"] and case["health_rule_exists"]
    events = [workload({"m1": 2}, replicas=2), *clusters("Healthy", "m1", "m2")]
    try:
        active = bool(acts(rule, *events, *([copy("m1", "Unhealthy", at=0)] if told else [])))
    except InvalidFiles:
        active = False  # refused by reactor check
    assert active == case["expect"]


def app_failover_timeline(case: Case) -> None:
    application = {"decisionConditions": {"tolerationSeconds": case["toleration_s"]}, "purgeMode": case["purge"]}
    if case["purge"] in ("Gracefully", "Graciously") and case["grace_s"] is not None:
        application["gracePeriodSeconds"] = case["grace_s"]
    rule = workload_rule(
        failover={"application": application}, placement=placement("m1", "m2"),
        onGraceExpired="Keep" if "ours" in case else "Purge",
    )  # fmt: skip
    healthy = [copy("m2", "Healthy", at=second) for second in range(1, 700)] if case["replacement"] == "healthy" else []
    done = acts(
        rule, workload({"m1": 2}, replicas=2), *clusters("Healthy", "m1", "m2"), copy("m1", "Unhealthy", at=0), *healthy
    )  # fmt: skip
    directly = case["purge"] in ("Directly", "Immediately")
    removed = [second for second, verb, _ in done if verb == ("Evict" if directly else "Purge")]
    expect: Case = case["ours"] if "ours" in case else case["expect"]
    assert bool(removed) == expect["removed"]
    if removed and expect["removed_not_before_s"] is not None:
        assert removed[0] >= expect["removed_not_before_s"]


def seed_block_predecessor(case: Case) -> None:
    seconds = ApplicationFailover().block_predecessor_seconds if case["block_s"] is None else case["block_s"]
    left = Departure(NOW - timedelta(seconds=case["evicted_ago_s"]), "Application")
    assert blocked(left, seconds, NOW) == case["expect"]


def seed_preconditions(case: Case) -> None:
    conditions = PreConditions(
        delay_seconds=case["delay_s"], healthy_state="Healthy" if case["need_healthy"] else None
    )  # fmt: skip
    ago = case["first_status_ago_s"]
    first = NOW - timedelta(seconds=ago) if ago is not None else None
    moment_ = armed_at(RULE.window, conditions, Copy(1, first_status_at=first, once_healthy=case["once_healthy"]))
    assert (moment_ is not None and moment_ <= NOW) == case["expect"]


CHECKS: dict[str, Callable[[Case], None]] = {
    "toleration_matches": toleration_matches,
    "toleration_min_time": toleration_min_time,
    "eviction_decision": eviction_decision,
    "eviction_enqueue": eviction_enqueue,
    "schedule_filter": schedule_filter,
    "graceful_task_assess": graceful_task_assess,
    "graceful_tasks_batch": graceful_tasks_batch,
    "graceful_next_check": graceful_next_check,
    "evict_cluster": evict_cluster,
    "purge_mode_actions": purge_mode_actions,
    "purge_mode_resolve": purge_mode_resolve,
    "app_health_split": app_health_split,
    "app_failover_detect": app_failover_detect,
    "app_timer_cleanup": app_timer_cleanup,
    "app_failover_gate": app_failover_gate,
    "app_failover_timeline": app_failover_timeline,
    "seed_block_predecessor": seed_block_predecessor,
    "seed_preconditions": seed_preconditions,
}
