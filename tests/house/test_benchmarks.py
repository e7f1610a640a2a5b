"""Benchmarks: a missing tool is reported, and is no failure; and each rule kind is measured."""

from __future__ import annotations

import pytest

from benchmarks.beside_linkerd import beside_linkerd_failover
from benchmarks.heard_facts import Moment
from benchmarks.rules_many import KINDS as MEASURED
from benchmarks.rules_many import Form, routing_of
from rules import catalog
from rules.core.index import Pattern
from rules.core.interests import path_of
from rules.limits.limiter import LimiterRule


@pytest.mark.parametrize("program", ["", "/nowhere/linkerd-failover-controller"])
async def test_without_linkerd_failover_the_comparison_is_skipped(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINKERD_FAILOVER", program)
    result = await beside_linkerd_failover()
    assert result.figures == {"skipped": "LINKERD_FAILOVER names no program"}


def test_every_kind_is_measured_with_ten_a_thousand_and_ten_thousand_rules() -> None:
    """All but the limiter's, which gets facts of no target: a group that acquires addresses it by its name."""
    measured = {name.partition(" ")[0] for name in MEASURED}
    kinds = [model.__name__.removesuffix("Rule") for model in catalog.KINDS if model is not LimiterRule]
    assert [f"benchmarks/rules_many.py, KINDS: {name}" for name in kinds if name not in measured] == []


@pytest.mark.parametrize(("name", "form"), MEASURED.items())
def test_each_type_of_fact_that_a_kind_hears_is_measured(name: str, form: Form) -> None:
    """By the interests of its rules, but for commands and outcomes, which name their rule."""
    moment = Moment("shop0" if form.selects else "shop", n=0, turn=0, milliseconds=0)
    measured = {sort(path_of(heard.fact(moment))) for heard in form.facts.values()}
    rules = [one for one in routing_of(name, form, 1).rules.values() if not isinstance(one, LimiterRule)]
    heard = {sort(one.facts) for rule in rules for one in catalog.kind_of(rule).interests(rule)}
    assert heard
    assert heard - measured - {("Rule",)} == set(), f"benchmarks/rules_many.py, KINDS: facts that {name} hears"


def sort(path: Pattern) -> Pattern:
    """Give the sort of the fact, and of its target."""
    return path[: 2 if path[0] == "Observation" else 1]
