"""Hints about two rules that move the same workloads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rules.core.errors import Problem
from rules.kinds.workload.model import ResourceSelector, WorkloadFailover
from rules.kinds.workload.placement import LabelSelector
from rules.rulefile.file_kind import Located
from rules.rulefile.overlap import could_select_both
from rules.rulefile.pairs import conflict, named, pairs
from rules.rulefile.selectors import ParsedRequirement


def workloads(rules: Sequence[Located[WorkloadFailover]]) -> Iterator[Problem]:
    """Hints about workloads that two rules move."""
    for one, other in pairs([rules]):
        for index, theirs in enumerate(other[0].resource_selectors):
            if any(_same(ours, theirs) for ours in one[0].resource_selectors):
                message = f"{named(one)} could select the same workloads: narrow one of them"
                yield conflict(other, ("resourceSelectors", index), "overlapping-selectors", message)


def _same(one: ResourceSelector, other: ResourceSelector) -> bool:
    """True if both selectors mean some workload. Karmada reads no labels beside a name."""
    pairs = ((one.namespace, other.namespace), (one.name, other.name))
    if (one.api_version, one.kind) != (other.api_version, other.kind):
        return False
    if any(a is not None and b is not None and a != b for a, b in pairs):
        return False
    labels = [_requirements(two.label_selector) for two in (one, other) if two.name is None]
    return len(labels) < 2 or could_select_both(*labels)


def _requirements(selector: LabelSelector | None) -> list[ParsedRequirement]:
    if selector is None:
        return []
    wanted = [(key, "in", frozenset({value})) for key, value in selector.match_labels.items()]
    more = [one.parsed for one in selector.match_expressions]
    return [*wanted, *more]
