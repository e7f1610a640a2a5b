"""Every case of Karmada's own tests, code and proposals that is about something we do, group by group.

`expect` is what Karmada does, `ours` what we do on purpose instead. NOT_OURS has what we do not do at all, OTHERWISE
single cases that we answer otherwise: the page docs/concepts/karmada-differences.md tells both to users.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.rules.workload import cases_division, cases_eviction, cases_health, cases_language, cases_state

FILE = Path(__file__).parents[3] / "data" / "workload.json"
PAGE = Path(__file__).parents[4] / "docs" / "concepts" / "karmada-differences.md"
Case = dict[str, Any]
GROUPS: dict[str, dict[str, Any]] = json.loads(FILE.read_text("utf-8"))["groups"]

CHECKS: dict[str, Callable[[Case], None]] = {
    **cases_division.CHECKS, **cases_eviction.CHECKS, **cases_health.CHECKS, **cases_language.CHECKS,
    **cases_state.CHECKS,
}  # fmt: skip

NOT_OURS: dict[str, str] = {
    "needs_reschedule": "the reactor is no scheduler: it places what a failure takes away, and does not rebalance",
    "fresh_requested": "there is no rebalance on request: that is the deployer's, or Karmada's",
    "copies_to_keep": "a Purge names one copy of one workload, so nothing has to be worked out about the others",
    "condition_match": "ClusterTaint goes by signals of a cluster, with windows, and not by its conditions",
    "ocm_taint_tolerated": "a comparison with Open Cluster Management, whose effects Karmada does not have",
}

OTHERWISE: dict[str, tuple[Callable[[Case], bool], str]] = {
    "graceful_task_assess": (
        lambda case: case["age_s"] is None or case["suppress"] is False
        or case["age_s"] == (case["timeout_s"] if case["grace_s"] is None else case["grace_s"])
        or (not case["targets"] and case["scheduled"] and "ours" not in case),
        "a task has its time; Never ends when the copy is gone; a limit is its moment; no targets are not healthy",
    ),
    "graceful_tasks_batch": (
        lambda case: any(task["age_s"] is None for task in case["tasks"]) or not case["targets"],
        "a task always has its time; no targets are no healthy targets",
    ),
    "graceful_next_check": (
        lambda case: any(
            task["age_s"] is None or task["age_s"] >= (task["grace_s"] or case["timeout_s"])
            for task in case["tasks"] if task["suppress"] is None
        ),
        "one whose limit is over is looked at when something changes",
    ),
    "eviction_decision": (lambda case: case["tolerations"] is None, "a policy without placement tolerates by default"),
    "eviction_enqueue": (
        lambda case: case["tolerations"] is None and bool(case["taints"]),
        "a policy without a placement tolerates by default, and one that cannot be read moves nothing",
    ),
    "purge_mode_resolve": (
        lambda case: case["policy_cluster"] is None, "without a cluster block cluster failover is off"
    ),
    "cluster_monitor": (lambda case: case["mode"] == "push", "only clusters that a LeaseWatch names are watched"),
    "eviction_rate_delay": (lambda case: case["rate"] == 0, "a rate of 0 is refused: it would be a rule switched off"),
    "zone_disruption_rate_k8s": (
        lambda case: case["state"] == "full" and not case["all_zones_full"],
        "the peers of a guard are one population: when all of them are bad, all is",
    ),
    "validate_app_failover": (
        lambda case: "grace_missing" in case["expect"], "gracePeriodSeconds has a default, so it is never missing"
    ),
    "validate_taint_policy": (
        lambda case: not case["allow_noexecute"] and bool(case["expect"]),
        "NoExecute is what ClusterTaint is for: there is no switch that forbids it",
    ),
}  # fmt: skip


def cases() -> Iterator[Any]:
    for group, body in GROUPS.items():
        for case in body["cases"]:
            differs = group in OTHERWISE and OTHERWISE[group][0](case) and "ours" not in case
            if group in CHECKS and not differs:
                yield pytest.param(group, case, id=f"{group}-{case['id']}")


@pytest.mark.parametrize(("group", "case"), list(cases()))
def test_a_case_is_answered_as_karmada_does_or_as_we_say_we_do(group: str, case: Case) -> None:
    CHECKS[group](case)


def test_every_group_is_either_run_or_told_why_not() -> None:
    assert not CHECKS.keys() & NOT_OURS.keys()
    assert GROUPS.keys() == CHECKS.keys() | NOT_OURS.keys()
    assert OTHERWISE.keys() <= CHECKS.keys()


def test_few_cases_are_left_out_of_the_groups_that_are_run() -> None:
    all_cases = sum(len(body["cases"]) for group, body in GROUPS.items() if group in CHECKS)
    assert all_cases - len(list(cases())) <= all_cases // 12


def test_the_page_about_differences_names_every_group_that_we_answer_otherwise() -> None:
    text = PAGE.read_text("utf-8")
    assert not [group for group in (*NOT_OURS, *OTHERWISE) if f"`{group}`" not in text]
