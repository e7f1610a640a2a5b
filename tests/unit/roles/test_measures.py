"""Gauges about rules: current for as long as they are shown."""

from __future__ import annotations

from collections import UserDict
from collections.abc import ItemsView, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from reactor.decide.measures import Measures
from reactor.runtime import telemetry
from reactor.runtime.rule_series import RuleSeries
from rules.core.group import Group, Holding, NoState
from rules.kinds.workload.state import Relocation, WorkloadState
from rules.kinds.zone.state import Isolation, ZoneState
from rules.limits.state import LimiterState
from rules.rehearsal.simulation import at
from rules.rulefile.model import Rule
from rules.summary import GroupStatus, state_of
from tests.unit.rules.builders import backends, healthy, route, step, the_rule, unhealthy

HOME, AWAY = {"a": 1, "b": 0}, {"a": 0, "b": 1}


@pytest.fixture
def measures() -> Iterator[Measures]:
    yield Measures()
    Measures()  # leaves nothing behind


def group(weights: Mapping[str, int], rule: Rule | None = None, **more: Any) -> Group:
    found = step(rule or RULE, None, 1, route(weights), healthy("a", at=0), healthy("b", at=0)).group
    return replace(found, outbox=(), **more)


RULE = the_rule(backends=backends("a", "b"))
RULES = {"web": RULE}


def series(name: str) -> dict[tuple[str, ...], float]:
    """The samples of a metric by the values of their labels."""
    found = next(one for one in telemetry.REGISTRY.collect() if one.name == name)
    return {tuple(sample.labels.values()): sample.value for sample in found.samples}


async def test_each_rule_has_all_states_and_counts_its_objects(measures: Measures) -> None:
    held = Holding("NoHealthySecondary", "none", at(1))
    await measures.take(
        [group(HOME, object="1"), group(HOME, object="2", held=held), group(AWAY, object="3", held=held)], RULES
    )
    states = series("reactor_rule_state")
    assert {labels[0] for labels in states} == {"web"}
    assert {state: value for (_, state), value in states.items() if value} == {"Watching": 1, "Held": 2}
    assert len(states) == 7
    assert series("reactor_held") == {("web", "NoHealthySecondary"): 2}
    assert series("reactor_failed_over") == {("web",): 1}


async def test_what_changes_one_after_the_other_adds_up_as_if_it_were_measured_again(measures: Measures) -> None:
    held = Holding("NoHealthySecondary", "none", at(1))
    groups = [group(HOME, object=f"{number}") for number in range(6)]
    for number in (0, 3, 5):
        groups[number] = group(AWAY, object=f"{number}", held=held if number else None)
        await measures.take(groups, RULES)
    del groups[3]
    groups[-1] = group(HOME, object="5")
    await measures.take(groups, RULES)
    kept = {name: series(f"reactor_{name}") for name in ("rule_state", "failed_over", "held", "targets")}
    await Measures().take(groups, RULES)
    assert kept == {name: series(f"reactor_{name}") for name in kept}
    assert kept["failed_over"] == {("web",): 1}
    assert kept["held"] == {}


async def test_groups_that_were_not_changed_count_on_and_those_that_are_gone_do_not(measures: Measures) -> None:
    groups = [group(HOME, object=f"{number}") for number in range(4)]
    await measures.take(groups, RULES)
    away = group(AWAY, object="2")
    await measures.take([away], RULES, gone=[("web", "0"), ("web", "never seen")])
    kept = {name: series(f"reactor_{name}") for name in ("rule_state", "failed_over", "held", "targets")}
    await Measures().take([groups[1], away, groups[3]], RULES)
    assert kept == {name: series(f"reactor_{name}") for name in kept}
    assert sum(kept["rule_state"].values()) == 3


async def test_a_hold_that_is_over_and_a_rule_that_is_no_more_leave_nothing_behind(measures: Measures) -> None:
    await measures.take([group(AWAY, held=Holding("Paused", "ann", at(1)))], RULES)
    await measures.take([group(HOME)], RULES)
    assert series("reactor_held") == {}
    assert series("reactor_failed_over") == {("web",): 0}
    await measures.take([], RULES)
    assert series("reactor_rule_state") == series("reactor_failed_over") == {}


async def test_the_primary_is_the_rules_else_the_routes_else_the_first(measures: Measures) -> None:
    other = the_rule(backends=backends("a", "b"), primary="b")
    await measures.take([group(HOME, other)], {"web": other})
    assert series("reactor_failed_over") == {("web",): 1}
    await measures.take([group(HOME)], {})
    assert series("reactor_failed_over") == {("web",): 0}


async def test_nothing_is_away_in_a_dry_run_and_with_all_weights_zero(measures: Measures) -> None:
    rehearsal = the_rule(backends=backends("a", "b"), mode="DryRun")
    await measures.take([group(AWAY, rehearsal, object="1"), group({"a": 0, "b": 0}, object="2")], {"web": rehearsal})
    assert series("reactor_failed_over") == {("web",): 0}


async def test_workloads_taints_and_zones_count_while_they_are_away(measures: Measures) -> None:
    leaving = WorkloadState(moves={"m1": Relocation("Cluster", "ClusterUnhealthy", "down")})
    record = Isolation("a", "Failover", "InProgress", "ZoneUnhealthy", at(0), at(0))
    states: list[Group] = [
        Group("web", "1", leaving), Group("web", "2", WorkloadState()),
        Group("zones", "3", ZoneState(isolation=replace(record, touched=("Fence",)))),
        Group("zones", "4", ZoneState(isolation=record)),
    ]  # fmt: skip
    await measures.take(states, {})
    assert series("reactor_failed_over") == {("web",): 1, ("zones",): 1}


async def test_only_what_has_changed_is_measured_again(measures: Measures, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = [group(HOME, object=str(number)) for number in range(100)]
    await measures.take(groups, RULES)
    asked: list[str] = []

    def counted(one: Group) -> GroupStatus:
        asked.append(one.object)
        return state_of(one)

    monkeypatch.setattr("reactor.decide.measures.state_of", counted)
    await measures.take([], RULES, gone=())
    assert asked == []
    groups[7] = replace(groups[7], held=Holding("Paused", "ann", at(1)))
    await measures.take([groups[7]], RULES, gone=())
    assert asked == ["7"]
    assert series("reactor_rule_state")["web", "Watching"] == 99
    await measures.take(groups[:7], RULES)
    assert series("reactor_rule_state")["web", "Watching"] == 7
    assert series("reactor_held") == {}


async def test_a_reload_measures_all_by_the_new_rules(measures: Measures) -> None:
    groups = [group(HOME)]
    await measures.take(groups, RULES)
    await measures.take(groups, {"web": the_rule(backends=backends("a", "b"), primary="b")})
    assert series("reactor_failed_over") == {("web",): 1}


async def test_problems_and_open_windows_are_counted_while_they_last(measures: Measures) -> None:
    rule = the_rule(backends=backends("a", "b"), tolerationSeconds=60)
    waiting = step(rule, group(HOME), 2, unhealthy("a", at=2)).group
    await measures.take(
        [replace(waiting, outbox=()), group(HOME, object="2", held=Holding("RouteNotFound", "", at(1)))], RULES
    )
    assert series("reactor_rule_problems") == {("web",): 1}
    assert series("reactor_open_windows")[()] == 1
    await measures.take([], RULES)
    assert series("reactor_rule_problems") == {}
    assert series("reactor_open_windows")[()] == 0


async def test_guards_are_no_rules(measures: Measures) -> None:
    await measures.take([Group("@guard.all", "*", LimiterState()), Group("@pauses", "*", NoState())], {})
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


def test_a_rule_that_is_measured_for_the_first_time_during_a_scrape_breaks_nothing() -> None:
    class Slow(UserDict[tuple[str, ...], int]):
        def items(self) -> ItemsView[tuple[str, ...], int]:
            shown.show("b", {(): 2})
            return super().items()

    shown = RuleSeries("reactor_test", "Test.", ["rule"], registry=CollectorRegistry())
    shown.show("a", Slow({(): 1}))
    [first], [second] = shown.collect(), shown.collect()
    assert [sample.labels["rule"] for sample in first.samples] == ["a"]
    assert {sample.labels["rule"]: sample.value for sample in second.samples} == {"a": 1, "b": 2}
    shown.show("a", {})
    [third] = shown.collect()
    assert [sample.labels["rule"] for sample in third.samples] == ["b"]
