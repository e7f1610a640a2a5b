"""Workloads in histories and rule tests: what they leave out because the rules say it."""

from __future__ import annotations

from collections.abc import Iterable

from bus.messages import Fact, Workload, WorkloadCopy
from rules.kinds.workload.model import WorkloadFailover
from rules.rulefile.model import Rule


def completed(history: Iterable[tuple[float, Fact]], rules: Iterable[Rule]) -> list[tuple[float, Fact]]:
    """Give the history with the apiVersion of workloads that are named by their kind alone: that of the first rule
    that selects this kind."""
    versions: dict[str, str] = {}
    for rule in rules:
        for selector in rule.resource_selectors if isinstance(rule, WorkloadFailover) else ():
            versions.setdefault(selector.kind, selector.api_version)
    return [(when, _completed(fact, versions)) for when, fact in history]


def _completed(fact: Fact, versions: dict[str, str]) -> Fact:
    if not isinstance(fact, Workload | WorkloadCopy) or "api_version" in fact.model_fields_set:
        return fact
    return fact.model_copy(update={"api_version": versions.get(fact.kind, fact.api_version)})
