"""Checks of an entry as a whole, and of all entries together, beyond those of single fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rules.core.errors import Problem
from rules.rulefile.checks import query_checks as query_checks
from rules.rulefile.checks import source_checks as source_checks
from rules.rulefile.feeds import Producer
from rules.rulefile.guards import FileGuard
from rules.rulefile.overlap import may_overlap
from rules.rulefile.sources import AlertmanagerWebhook, Bound, Probe, PrometheusQuery
from rules.rulefile.targets import check_template, matches
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


def guards(found: Iterable[tuple[FileGuard, Document, Path]], rules: LocatedRules) -> Iterator[Problem]:
    """A pattern that matches no rule limits nothing: it is a mistake."""
    rule_names = [item.name for item, _, _ in rules]
    for guard, document, at in found:
        for index, pattern in enumerate(guard.rules):
            if not any(matches(pattern, name) for name in rule_names):
                message = f"no rule is called {pattern!r}: the guard limits nothing"
                yield document.problem((*at, "rules", index), message, severity="warning")


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


def together(rules: LocatedRules, sources: Sources, inventories: Iterable[Producer]) -> Iterator[Problem]:
    """Findings that need all entries. `inventories`: what the rules bring along, without a source."""
    said = {item.says for item, _, _ in sources} | {one.signal for one in inventories}
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


def _unconfirmed(origin: AlertmanagerWebhook, rules: LocatedRules, sources: Sources) -> bool:
    """True if a rule that counts this signal counts no other that could report the same target Healthy."""
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
