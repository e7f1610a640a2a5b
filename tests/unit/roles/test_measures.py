"""What the gauges about rules say: for as long as it is so, and no longer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from reactor.decide.measures import Measures
from reactor.runtime import telemetry
from rules.core.group import Group, Holding
from rules.kinds.workload.state import Relocation, WorkloadState
from rules.kinds.zone.state import Isolation, ZoneState
from rules.rehearsal.simulate import at
from rules.rulefile.loader import LoadedRule
from tests.unit.rules.builders import backends, healthy, route, step, the_rule

HOME, AWAY = {"a": 1, "b": 0}, {"a": 0, "b": 1}


@pytest.fixture
def measures() -> Iterator[Measures]:
    yield Measures()
    Measures()  # leaves nothing behind


def group(weights: Mapping[str, int], rule: LoadedRule | None = None, **more: Any) -> Group:
    found = step(rule or RULE, None, 1, route(weights), healthy("a", at=0), healthy("b", at=0)).group
    return replace(found, owed=(), **more)


RULE = the_rule(backends=backends("a", "b"))
RULES = {"web": RULE}


def series(name: str) -> dict[tuple[str, ...], float]:
    """The samples of a metric by the values of their labels."""
    found = next(one for one in telemetry.REGISTRY.collect() if one.name == name)
    return {tuple(sample.labels.values()): sample.value for sample in found.samples}


def test_each_rule_has_all_states_and_counts_its_objects(measures: Measures) -> None:
    held = Holding("NoHealthySecondary", "none", at(1))
    measures.take([group(HOME), group(HOME, held=held), group(AWAY, held=held)], RULES)
    states = series("reactor_rule_state")
    assert {labels[0] for labels in states} == {"web"}
    assert {state: value for (_, state), value in states.items() if value} == {"Watching": 1, "Held": 2}
    assert len(states) == 7
    assert series("reactor_held") == {("web", "NoHealthySecondary"): 2}
    assert series("reactor_failed_over") == {("web",): 1}


def test_a_hold_that_is_over_and_a_rule_that_is_no_more_leave_nothing_behind(measures: Measures) -> None:
    measures.take([group(AWAY, held=Holding("Paused", "ann", at(1)))], RULES)
    measures.take([group(HOME)], RULES)
    assert series("reactor_held") == {}
    assert series("reactor_failed_over") == {("web",): 0}
    measures.take([], RULES)
    assert series("reactor_rule_state") == series("reactor_failed_over") == {}


def test_the_primary_is_the_rules_else_the_routes_else_the_first(measures: Measures) -> None:
    other = the_rule(backends=backends("a", "b"), primary="b")
    measures.take([group(HOME, other)], {"web": other})
    assert series("reactor_failed_over") == {("web",): 1}
    measures.take([group(HOME)], {})
    assert series("reactor_failed_over") == {("web",): 0}


def test_nothing_is_away_in_a_dry_run_and_with_all_weights_zero(measures: Measures) -> None:
    rehearsal = the_rule(backends=backends("a", "b"), mode="DryRun")
    measures.take([group(AWAY, rehearsal), group({"a": 0, "b": 0})], {"web": rehearsal})
    assert series("reactor_failed_over") == {("web",): 0}


def test_workloads_taints_and_zones_count_while_they_are_away(measures: Measures) -> None:
    leaving = WorkloadState(moves={"m1": Relocation("Cluster", "ClusterUnhealthy", "down")})
    record = Isolation("a", "Failover", "InProgress", "ZoneUnhealthy", at(0), at(0))
    states = [
        Group("web", "1", workload=leaving), Group("web", "2", workload=WorkloadState()),
        Group("zones", "3", zone=ZoneState(isolation=replace(record, touched=("Fence",)))),
        Group("zones", "4", zone=ZoneState(isolation=record)),
    ]  # fmt: skip
    measures.take(states, {})
    assert series("reactor_failed_over") == {("web",): 1, ("zones",): 1}


def test_guards_are_no_rules(measures: Measures) -> None:
    measures.take([Group("@guard.all", "*"), Group("@pauses", "*")], {})
    assert series("reactor_rule_state") == {}


def test_it_says_which_version_runs_and_what_the_process_uses() -> None:
    telemetry.say_versions()
    ((_, python),) = series("reactor_build_info")
    assert python.startswith("3.")
    if series_exists("process_resident_memory_bytes"):
        assert series("process_resident_memory_bytes")[()] > 0


def series_exists(name: str) -> bool:
    """Prometheus's client counts what /proc says: on Linux."""
    return any(one.name == name for one in telemetry.REGISTRY.collect())
