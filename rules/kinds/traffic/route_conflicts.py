"""Hints about two rules that move the same routes, by name or by selector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rules.core.errors import Problem
from rules.kinds.traffic.model import TrafficFailover
from rules.rulefile.file_kind import Located
from rules.rulefile.overlap import could_select_both
from rules.rulefile.pairs import conflict, named, pairs
from rules.rulefile.selectors import parsed


def routes(rules: Sequence[Located[TrafficFailover]]) -> Iterator[Problem]:
    """Hints about routes that two rules move."""
    by_name: dict[tuple[str, ...], list[Located[TrafficFailover]]] = {}
    selecting: dict[tuple[str, str], list[Located[TrafficFailover]]] = {}
    for entry in rules:
        route = entry[0].route
        if route.selector is not None:
            selecting.setdefault((route.cluster, route.called), []).append(entry)
        elif route.name is not None:
            by_name.setdefault((route.cluster, route.called, route.namespace or "", route.name), []).append(entry)
    for one, other in pairs(by_name.values()):
        rules_of = {one[0].route.rule, other[0].route.rule}
        if len(rules_of) == 1 or None in rules_of:
            yield conflict(other, ("route",), "same-route", f"{named(one)} moves the same route: keep one of them")
    for one, other in pairs(selecting.values()):
        namespaces = {one[0].route.namespace, other[0].route.namespace}
        apart = len(namespaces) == 2 and None not in namespaces
        if not apart and could_select_both(*(parsed(two[0].route.selector or "") for two in (one, other))):
            message = f"{named(one)} could select the same routes: narrow one of them"
            yield conflict(other, ("route", "selector"), "overlapping-selectors", message)
