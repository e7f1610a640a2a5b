"""Checks of a TrafficFailover as a whole, beyond those of single fields."""

from __future__ import annotations

from collections.abc import Iterator

from rules.core.errors import Problem
from rules.kinds.traffic import route_checks
from rules.kinds.traffic.failback_policy import FailbackMode
from rules.kinds.traffic.model import BackendRule, TrafficFailover
from rules.kinds.traffic.route_fleet import PLACES
from rules.rulefile.targets import BadTarget, check_target, check_template
from rules.rulefile.yaml import Document, Path


def rule(item: TrafficFailover, document: Document, at: Path) -> Iterator[Problem]:
    """Findings about one rule."""
    yield from route_checks.route(item, document, at)
    yield from _targets(item, document, at)
    yield from _backends(item, document, at)
    yield from _steps(item, document, at)
    yield from _overflow(item, document, at)
    yield from _way_back(item, document, at)


def _targets(item: TrafficFailover, document: Document, at: Path) -> Iterator[Problem]:
    for index, backend in enumerate(item.backends or ()):
        yield from _template(item, backend, document, (*at, "backends", index))


def _template(item: TrafficFailover, backend: BackendRule, document: Document, at: Path) -> Iterator[Problem]:
    target, route = backend.target, item.route
    if target is None:
        return
    places = check_template(target)
    if route.selector is None:
        try:
            check_target(target)
        except BadTarget as error:
            yield document.problem((*at, "target"), str(error))
        if places:
            message = f"{{{min(places)}}} only goes with a selector: write the target out"
            yield document.problem((*at, "target"), message)
    elif unknown := places - set(PLACES):
        message = f"{{{min(unknown)}}} is nothing of a route: there are {{name}}, {{namespace}} and {{cluster}}"
        yield document.problem((*at, "target"), message)
    elif "namespace" not in places and route.namespace is None:
        message = (
            "needs {namespace} as a segment, or a namespace of the route: else it is not known whose backend it is"
        )
        yield document.problem((*at, "target"), message)


def _backends(item: TrafficFailover, document: Document, at: Path) -> Iterator[Problem]:
    if item.backends is None:
        return
    services = [backend.service for backend in item.backends]
    for index, service in enumerate(services):
        if service in services[:index]:
            yield document.problem((*at, "backends", index, "service"), f"{service!r} is given twice")
    if item.primary is not None and item.primary not in services:
        # No error: the route may be changed before the rule. The rule holds with this reason until then.
        message = f"{item.primary!r} is none of the backends: the rule will hold with UnknownPrimary and write nothing"
        yield document.problem((*at, "primary"), message, severity="warning")
    if len(services) == 1:
        message = "only one backend: there is nowhere to go when it fails"
        yield document.problem((*at, "backends"), message, severity="warning")


def _overflow(item: TrafficFailover, document: Document, at: Path) -> Iterator[Problem]:
    """Check keys beside `overflow`: the load of the tiers decides the primary's share, and no other key may."""
    if item.overflow is None:
        return
    if item.steps:
        yield document.problem((*at, "overflow"), "not together with steps: what the primary bears is its share")
    if item.failback.mode is FailbackMode.TRIAL:
        yield document.problem((*at, "overflow"), "not together with failback.mode Trial")


def _steps(item: TrafficFailover, document: Document, at: Path) -> Iterator[Problem]:
    for index, (before, after) in enumerate(zip(item.steps, item.steps[1:], strict=False), start=1):
        if after.percent <= before.percent:
            message = f"must be more than the step before it ({before.percent})"
            yield document.problem((*at, "steps", index, "percent"), message)


def _way_back(item: TrafficFailover, document: Document, at: Path) -> Iterator[Problem]:
    way = item.failback
    if way.mode is not FailbackMode.TRIAL and "trial" in way.model_fields_set:
        yield document.problem((*at, "failback", "trial"), "only goes with mode: Trial", severity="warning")
    if way.mode is FailbackMode.MANUAL and way.signals is not None:
        message = "mode: Manual asks no signal: a person does"
        yield document.problem((*at, "failback", "signals"), message, severity="warning")
