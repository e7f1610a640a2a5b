"""A needless act that is put into a record by hand is found from the record alone, in every kind; no right one is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from bus.messages import DecisionRecord, Health, TargetEvidence
from rules.loader import RuleSet
from rules.rehearsal.simulation import at
from tests.unit.audit.recording import acting, edited, found, records, without
from tests.unit.audit.stories import (
    M2,
    M3,
    ON_M3,
    ROUTE,
    ROUTE_STORY,
    TAINT_STORY,
    TAINTS,
    WORKLOAD,
    WORKLOAD_STORY,
    ZONE,
    ZONE_STORY,
    ZONES_RULES,
    A,
    B,
)
from tests.unit.rules.builders import Event

STORIES = {
    "routes": (ROUTE, ROUTE_STORY), "workloads": (WORKLOAD, WORKLOAD_STORY), "taints": (TAINTS, TAINT_STORY),
    "zones": (ZONES_RULES, ZONE_STORY),
}  # fmt: skip
ACTS = {
    "a primary that is left": (ROUTE, ROUTE_STORY, "SetWeights", {"because": "PrimaryUnhealthy"}, A),
    "a secondary that gets traffic": (ROUTE, ROUTE_STORY, "SetWeights", {"because": "PrimaryUnhealthy"}, B),
    "a primary that gets its traffic back": (ROUTE, ROUTE_STORY, "SetWeights", {"because": "PrimaryHealthy"}, A),
    "a cluster that a placement leaves": (WORKLOAD, WORKLOAD_STORY, "Place", {}, M2),
    "a cluster that gets a copy": (WORKLOAD, WORKLOAD_STORY, "Place", {}, M3),
    "a cluster that a copy is evicted from": (WORKLOAD, WORKLOAD_STORY, "Evict", {}, M2),
    "a cluster that is tainted": (TAINTS, TAINT_STORY, "SetTaints", {"before": []}, M2),
    "a cluster that loses its taint": (TAINTS, TAINT_STORY, "SetTaints", {"taints": []}, M2),
    "a zone that is isolated": (ZONES_RULES, ZONE_STORY, "ZoneStep", {"undo": False}, ZONE),
    "a zone that comes back": (ZONES_RULES, ZONE_STORY, "ZoneStep", {"undo": True}, ZONE),
}
Act = tuple[RuleSet, list[Event], str, Mapping[str, Any], str]


@pytest.fixture(params=[*ACTS.values()], ids=[*ACTS])
def act(request: pytest.FixtureRequest) -> tuple[RuleSet, DecisionRecord, str]:
    """The rules, the record of a right act, and a target that it rests on."""
    rules, story, action, fields, target = request.param
    record = acting(records(rules, *story), action, **fields)
    assert found(rules, record) == []
    return rules, record, target


def other(status: Health) -> Health:
    return Health.UNHEALTHY if status is Health.HEALTHY else Health.HEALTHY


def seen_before(one: TargetEvidence) -> dict[str, Any]:
    """Evidence whose looks all ended a second before they count."""
    moment = (one.window_ended or one.window_began) - timedelta(seconds=1)
    looks = [look.model_copy(update={"observed_at": moment, "valid_until": moment}) for look in one.looks]
    return {"looks": tuple(looks)}


@pytest.mark.parametrize("name", STORIES)
def test_a_true_record_has_no_finding(name: str) -> None:
    rules, story = STORIES[name]
    kept = records(rules, *story)
    assert len([one for one in kept if one.actions]) >= 2
    assert found(rules, *kept) == []


def test_an_act_that_the_present_contradicts_is_needless(act: tuple[RuleSet, DecisionRecord, str]) -> None:
    rules, record, target = act
    [what] = found(rules, edited(record, target, lambda one: {"status": other(one.status)}))
    assert what.startswith(f"needless: {target} was ")
    assert what.count("and the action needs it to be") >= 1


def test_an_act_without_a_look_from_after_its_window_is_needless(act: tuple[RuleSet, DecisionRecord, str]) -> None:
    rules, record, target = act
    [what] = found(rules, edited(record, target, seen_before))
    assert what.startswith(f"needless: {target}: last seen ")
    assert "to be seen at 1970-01-01T00:0" in what


def test_an_act_without_evidence_is_needless(act: tuple[RuleSet, DecisionRecord, str]) -> None:
    rules, record, target = act
    assert f"needless: {target}: the record has no evidence of it" in found(rules, without(record, target))[0]


def test_an_act_is_needless_in_a_record_that_holds_nothing_else(act: tuple[RuleSet, DecisionRecord, str]) -> None:
    rules, record, _ = act
    bare = DecisionRecord(rule=record.rule, object=record.object, decided_at=record.decided_at, actions=record.actions)
    if record.actions[0]["because"] != "PrimaryHealthy":  # without a state it may have had traffic before
        assert "the record has no evidence of it" in found(rules, bare)[0]


def test_an_act_in_a_record_of_another_moment_is_needless() -> None:
    """Its id was used before: by the moment of its decision it is not the same action said again."""
    kept = records(ROUTE, *ROUTE_STORY)
    right = acting(kept, "SetWeights")
    quiet = right.model_copy(update={"decided_at": at(50), "evidence": (), "facts": (), "held": None})
    again = {**right.actions[0], "decidedAt": "1970-01-01T00:00:50Z"}
    assert found(ROUTE, *kept, quiet) == []
    assert found(ROUTE, *kept, quiet.model_copy(update={"actions": (again,)})) == [
        f"needless: {A}: the record has no evidence of it"
    ]


def test_a_purge_needs_a_copy_that_is_healthy() -> None:
    record = acting(records(WORKLOAD, *WORKLOAD_STORY), "Purge")
    sick = edited(record, ON_M3, lambda _: {"status": Health.UNHEALTHY})
    assert found(WORKLOAD, record) == []
    alone = edited(sick, ON_M3.replace("m3", "m1"), lambda _: {"status": Health.UNKNOWN})
    [what] = found(WORKLOAD, alone)
    assert what.startswith("needless: ")
    assert f"{ON_M3} was Unhealthy, and the action needs it to be Healthy" in what


def test_a_zone_is_not_isolated_by_one_signal() -> None:
    record = acting(records(ZONES_RULES, *ZONE_STORY), "ZoneStep")
    [what] = found(ZONES_RULES, edited(record, ZONE, lambda one: {"looks": one.looks[:1]}))
    assert "2 signals have to be seen at" in what
