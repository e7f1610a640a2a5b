"""What a single field cannot know: findings about an entry as a whole, and about all entries together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rules.core.errors import Problem
from rules.rulefile.checks import query_checks as query_checks
from rules.rulefile.checks import route_checks as route_checks
from rules.rulefile.checks import source_checks as source_checks
from rules.rulefile.checks import workload_checks as workload_checks
from rules.rulefile.checks import zone_checks as zone_checks
from rules.rulefile.failback_policy import FailbackMode
from rules.rulefile.guards import FileGuard
from rules.rulefile.isolation import ZoneIsolation
from rules.rulefile.lint.coverage import KARMADA
from rules.rulefile.model import BackendRule, Notification, TrafficFailover
from rules.rulefile.overlap import may_overlap
from rules.rulefile.route_fleet import PLACES
from rules.rulefile.sources import AlertmanagerWebhook, Bound, Probe, PrometheusQuery
from rules.rulefile.targets import BadTarget, check_target, check_template, matches
from rules.rulefile.workload import ClusterTaint, WorkloadFailover
from rules.rulefile.yaml import Document, Path

if TYPE_CHECKING:
    from rules.rulefile.model import Rule
    from rules.rulefile.sources import LoadedSource

LocatedRules = Sequence[tuple["Rule", Document, Path]]
Sources = Sequence[tuple["LoadedSource", Document, Path]]


def names(entries: Iterable[tuple[Document, Path]], what: str) -> Iterator[Problem]:
    """A name that is given twice, in one file or in two; also of entries that are wrong otherwise."""
    first: dict[str, str] = {}
    for document, at in entries:
        if (*at, "name") not in document.places:
            continue
        name = document.at(at)["name"]
        if not isinstance(name, str):
            continue
        line = document.places[*at, "name"][0]
        if name in first:
            message = f"{what} {name!r} is given twice; first at {first[name]}"
            yield document.problem((*at, "name"), message)
        first.setdefault(name, f"{document.file}:{line}")


def rule(item: Rule, document: Document, at: Path) -> Iterator[Problem]:
    """Findings about one rule."""
    if isinstance(item, TrafficFailover):
        yield from _route(item, document, at)
        yield from _backends(item, document, at)
        yield from _steps(item, document, at)
        yield from _overflow(item, document, at)
        yield from _way_back(item, document, at)
    if isinstance(item, ZoneIsolation):
        yield from zone_checks.rule(item, document, at)
    if isinstance(item, WorkloadFailover | ClusterTaint):
        yield from workload_checks.rule(item, document, at)


def guards(found: Iterable[tuple[FileGuard, Document, Path]], rules: LocatedRules) -> Iterator[Problem]:
    """A pattern that matches no rule limits nothing: it is a mistake."""
    rule_names = [item.name for item, _, _ in rules]
    for guard, document, at in found:
        for index, pattern in enumerate(guard.rules):
            if not any(matches(pattern, name) for name in rule_names):
                message = f"no rule is called {pattern!r}: the guard limits nothing"
                yield document.problem((*at, "rules", index), message, severity="warning")


def _route(item: TrafficFailover, document: Document, at: Path) -> Iterator[Problem]:
    yield from route_checks.route(item, document, at)
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
    """What each tier bears says how much the primary gets: nothing else may say it, too."""
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


def source(item: LoadedSource, document: Document, at: Path) -> Iterator[Problem]:
    """Findings about one source."""
    if item.refresh_seconds >= item.stale_seconds:
        message = f"must be more than refreshSeconds ({item.refresh_seconds:g}), or its targets go stale between"
        yield document.problem((*at, "staleSeconds"), message)
    yield from query_checks.source(item, document, at)
    if isinstance(item, Probe):
        if labels := check_template(item.target):
            message = f"a probe has no labels to put into {{{min(labels)}}}: write the target out"
            yield document.problem((*at, "target"), message)
        if item.timeout_seconds > item.every_seconds:
            message = f"must not be more than everySeconds ({item.every_seconds:g})"
            yield document.problem((*at, "timeoutSeconds"), message)
    if isinstance(item, PrometheusQuery):
        bound = item.unhealthy_when
        if isinstance(bound, Bound) and (bound.above is None) == (bound.below is None):
            yield document.problem((*at, "unhealthyWhen"), "needs either above or below")
        if bound == "Absent" and (labels := check_template(item.target)):
            message = f"Absent has no series, so no labels to put into {{{min(labels)}}}: write the target out"
            yield document.problem((*at, "target"), message)
    yield from source_checks.source(item, document, at)


def together(rules: LocatedRules, sources: Sources) -> Iterator[Problem]:
    """Findings that need all entries."""
    yield from zone_checks.together([(item, doc, at) for item, doc, at in rules if isinstance(item, ZoneIsolation)])
    said = {item.says for item, _, _ in sources}
    carried = (item for item, _, _ in rules if isinstance(item, WorkloadFailover | ClusterTaint))
    if any(item.carrier == "Karmada" for item in carried):
        said.add(KARMADA)  # the control plane's own inventory, which needs no source
    for item, document, at in rules:
        for index, signal in enumerate(item.signals or ()):
            if sources and signal not in said:
                message = f"no source here has the signal {signal!r}"
                yield document.problem((*at, "signals", index), message, severity="warning")
    for origin, document, at in sources:
        if isinstance(origin, AlertmanagerWebhook) and not origin.recovers and _unconfirmed(origin, rules, sources):
            message = (
                "nothing could confirm that a resolved alert's target has recovered, so no rule will go back: add "
                "confirm, or another source for the same target that fails with it, or onResolved: Healthy"
            )
            yield document.problem(at, message, severity="warning")
    for item, document, at in rules:
        if isinstance(item, Notification) and item.match.split("/")[0] not in _KINDS:
            message = f"no target starts with {item.match.split('/')[0]!r}"
            yield document.problem((*at, "match"), message, severity="warning")


def _unconfirmed(origin: AlertmanagerWebhook, rules: LocatedRules, sources: Sources) -> bool:
    """Whether a rule that counts this signal counts no other that could say that the same target is Healthy."""
    others = {
        item.says
        for item, _, _ in sources
        if item is not origin
        and (not isinstance(item, AlertmanagerWebhook) or item.recovers)
        and may_overlap(item.target, origin.target)
    }
    return not others or any(
        rule.signals is not None and origin.says in rule.signals and not others & set(rule.signals)
        for rule, _, _ in rules
    )


_KINDS = ("cluster", "zone", "node", "service", "workload", "custom", "*", "**")
