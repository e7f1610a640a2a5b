"""Hints about two rules that act on the same thing: routes and workloads, by name or by selector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import TypeVar

from bus.messages import Mode
from rules.core.errors import Problem
from rules.rulefile.model import TrafficFailover
from rules.rulefile.overlap import could_select_both
from rules.rulefile.placement import LabelSelector
from rules.rulefile.selectors import ParsedRequirement, parsed
from rules.rulefile.workload import ResourceSelector, WorkloadFailover
from rules.rulefile.yaml import Document, Path

Traffic = tuple[TrafficFailover, Document, Path]
LocatedWorkload = tuple[WorkloadFailover, Document, Path]


def routes(rules: Sequence[Traffic]) -> Iterator[Problem]:
    """Hints about routes that two rules move."""
    named: dict[tuple[str, ...], list[Traffic]] = {}
    selecting: dict[tuple[str, str], list[Traffic]] = {}
    for entry in rules:
        route = entry[0].route
        if route.selector is not None:
            selecting.setdefault((route.cluster, route.called), []).append(entry)
        elif route.name is not None:
            named.setdefault((route.cluster, route.called, route.namespace or "", route.name), []).append(entry)
    for one, other in _pairs(named.values()):
        rules_of = {one[0].route.rule, other[0].route.rule}
        if len(rules_of) == 1 or None in rules_of:
            yield _hint(other, ("route",), "same-route", f"{_named(one)} moves the same route: keep one of them")
    for one, other in _pairs(selecting.values()):
        namespaces = {one[0].route.namespace, other[0].route.namespace}
        apart = len(namespaces) == 2 and None not in namespaces
        if not apart and could_select_both(*(parsed(two[0].route.selector or "") for two in (one, other))):
            message = f"{_named(one)} could select the same routes: narrow one of them"
            yield _hint(other, ("route", "selector"), "overlapping-selectors", message)


Placed = TypeVar("Placed", Traffic, LocatedWorkload)


def _pairs(groups: Iterable[Sequence[Placed]]) -> Iterator[tuple[Placed, Placed]]:
    """Give the pairs that would undo each other. One of two in DryRun: a new version is rehearsed beside the old."""
    for group in groups:
        for one, other in combinations(group, 2):
            if (one[0].mode is Mode.DRY_RUN) == (other[0].mode is Mode.DRY_RUN):
                yield one, other


def _named(placed: Traffic | LocatedWorkload) -> str:
    rule, document, at = placed
    return f"rule {rule.name!r} ({document.file}:{document.places[at][0]})"


def _hint(placed: Traffic | LocatedWorkload, where: Path, hint: str, message: str) -> Problem:
    _, document, at = placed
    return document.problem((*at, *where), message, severity="hint", hint=hint)


def workloads(rules: Sequence[LocatedWorkload]) -> Iterator[Problem]:
    """Hints about workloads that two rules move."""
    for one, other in _pairs([rules]):
        for index, theirs in enumerate(other[0].resource_selectors):
            if any(_same(ours, theirs) for ours in one[0].resource_selectors):
                message = f"{_named(one)} could select the same workloads: narrow one of them"
                yield _hint(other, ("resourceSelectors", index), "overlapping-selectors", message)


def _same(one: ResourceSelector, other: ResourceSelector) -> bool:
    """Whether some workload is meant by both. Karmada reads no labels beside a name."""
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
