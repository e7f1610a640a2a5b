"""Acts that rest on no health are no finding, whatever their targets are: commands, taints, overflow, ways back."""

from __future__ import annotations

from typing import Any

import pytest

from bus.messages import ClusterTaints, DecisionRecord, Health, IsolateZone, Outcome, Taint
from reactor.audit.decisions import judge
from reactor.audit.stored_observations import hear
from rules.rehearsal.recorded_premises import by_rules
from rules.rehearsal.simulation import at
from tests.unit.audit.recording import acting, found, records
from tests.unit.audit.stories import (
    LISTED,
    ROUTE,
    ROUTE_STORY,
    WORKLOAD_STORY,
    ZONE_LISTED,
    ZONE_STORY,
    ZONES_RULES,
    copy_look,
    look,
    workload_rules,
    zone_look,
)
from tests.unit.rules.builders import backends, failover, healthy, route, rule_set, seen
from tests.unit.rules.zone.builders import seen as zone_seen


def bare(record: DecisionRecord) -> DecisionRecord:
    """The record as if no source had looked at anything."""
    return record.model_copy(update={"evidence": ()})


def contrary(record: DecisionRecord) -> DecisionRecord:
    """The record as if every target were the other way round."""
    turned = {Health.HEALTHY: Health.UNHEALTHY, Health.UNHEALTHY: Health.HEALTHY, Health.UNKNOWN: Health.HEALTHY}
    evidence = [one.model_copy(update={"status": turned[one.status]}) for one in record.evidence]
    return record.model_copy(update={"evidence": tuple(evidence)})


def test_a_persons_isolation_of_a_zone() -> None:
    asked = (105.0, IsolateZone(rule="zones", zone="a", by="ann", reason="INC-7", force=True, observed_at=at(105)))
    kept = records(ZONES_RULES, *ZONE_LISTED, asked)
    record = acting(kept, "ZoneStep")
    assert record.actions[0]["because"] == "Commanded"
    assert found(ZONES_RULES, *map(bare, kept)) == []


def test_an_isolation_that_a_person_takes_over_while_no_signal_sees_the_zone() -> None:
    blind = [event for name in ("inside", "outside") for event in zone_seen("a", "Unknown", at=112, signals=(name,))]
    asked = (113.0, IsolateZone(rule="zones", zone="a", by="ann", reason="INC-7", observed_at=at(113)))
    kept = records(ZONES_RULES, *ZONE_STORY[:-4], *blind, asked, until=140, outcomes=False)
    steps = [(action["step"], action["settings"].get("by", "")) for one in kept for action in one.actions]
    assert [*dict.fromkeys(steps)] == [("Fence", ""), ("Fence", "ann")]
    assert found(ZONES_RULES, *kept) == []


def test_a_step_that_is_tried_again_while_no_signal_sees_the_zone() -> None:
    bad = [event for second in (100, 111) for event in zone_look("a", "Unhealthy", second, 100)]
    done = (112.0, Outcome(action="zones/prod/a/1", rule="zones", object="prod/a", status="Done", observed_at=at(112)))
    blind = [event for name in ("inside", "outside") for event in zone_seen("a", "Unknown", at=120, signals=(name,))]
    refused = (
        420.0,
        Outcome(action="zones/prod/a/2", rule="zones", object="prod/a", status="Refused", observed_at=at(420)),
    )
    kept = records(ZONES_RULES, *ZONE_LISTED, *bad, done, *blind, refused, until=3000, outcomes=False)
    tried = [action["id"] for one in kept for action in one.actions if action["step"] == "ShiftTraffic"]
    assert [*dict.fromkeys(tried)][:2] == ["zones/prod/a/2", "zones/prod/a/3"]
    assert found(ZONES_RULES, *kept) == []


def test_the_further_steps_of_an_isolation() -> None:
    kept = records(ZONES_RULES, *ZONE_STORY)
    later = [one for one in kept for action in one.actions if action["action"] == "ZoneStep"][1:5]
    assert [one.actions[0]["because"] for one in later] == ["ZoneUnhealthy"] * 4
    assert found(ZONES_RULES, *map(bare, later)) == []


def test_a_workload_that_leaves_a_cluster_for_its_taint() -> None:
    taints = (Taint(key="reactor/brownout", effect="NoExecute"),)
    tainted = (10.0, ClusterTaints(cluster="m2", rule="brown", taints=taints, observed_at=at(10)))
    brown = {
        "name": "brown", "kind": "ClusterTaint", "mode": "Enforce", "match": "cluster/*", "signals": ["brownout"],
        "taints": [{"key": "reactor/brownout", "effect": "NoExecute"}],
    }  # fmt: skip
    rules = rule_set(workload_rules().rules[0].model_dump(mode="json", by_alias=True, exclude_unset=True), brown)
    kept = records(rules, *LISTED, tainted, look("m3", "Healthy", 120, 0), look("m2", "Healthy", 120, 0))
    evicted = acting(kept, "Evict")
    assert evicted.actions[0]["detail"].startswith("ClusterTainted")
    assert found(rules, *kept) == found(rules, bare(evicted)) == []


def test_a_copy_that_stays_after_all() -> None:
    back = [look("m2", "Healthy", 130, 130), look("m2", "Healthy", 500, 130)]
    story = [one for one in WORKLOAD_STORY if one != copy_look("m3", "Healthy", 115, 115)]
    rules = workload_rules(recoverySeconds=5)
    kept = records(rules, *story[:-1], *back)
    record = acting(kept, "CancelEviction")
    assert found(rules, bare(record)) == found(rules, contrary(record)) == []


def test_weights_that_another_writer_has_changed_while_failed_over() -> None:
    story = [*ROUTE_STORY[:6], route({"a": 1, "b": 0}, at=40)]
    kept = records(ROUTE, *story)
    record = acting(kept, "SetWeights", because="Drift")
    assert found(ROUTE, bare(record)) == found(ROUTE, contrary(record)) == []


@pytest.mark.parametrize("change", [bare, contrary])
def test_overflow(change: Any) -> None:
    rules = rule_set(failover(overflow={}, tolerationSeconds=10, backends=backends("a", "b")))
    half = [seen("a", "Healthy", at=at_, healthy_percent=40) for at_ in (5, 16, 30)]
    kept = records(rules, route({"a": 1, "b": 0}), healthy("a", at=0), healthy("b", at=0, healthy_percent=100), *half)
    record = acting(kept, "SetWeights")
    assert record.actions[0]["because"] == "PrimaryUnhealthy"
    assert found(rules, record) == found(rules, change(record)) == []


def test_what_another_kind_of_rule_with_this_name_has_done_is_undecided() -> None:
    kept = records(ZONES_RULES, *ZONE_STORY)
    now = rule_set(failover(name="zones"))
    verdict = judge(kept, hear([]), by_rules(now.rules))
    assert verdict.breaches == []
    assert verdict.tested["undecided"] == sum(len(one.actions) for one in kept) > 0
