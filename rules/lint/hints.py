"""Hints: what is allowed, and still seldom meant. They never stop anything.

A comment `# reactor: ignore <hint>` on the line of a finding, or alone on the line before it, silences a hint there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from bus.messages import Mode
from rules.catalog import FILE_KINDS, file_kind_of
from rules.core.errors import Problem
from rules.lint import taint_loops
from rules.lint.coverage import feeds, lists_for, readers, wants
from rules.rulefile.feeds import Consumer, Producers, ToleratedTime
from rules.rulefile.sources import ClusterProbe, LeaseWatch, Probe, PrometheusQuery
from rules.rulefile.yaml import Document, Path

if TYPE_CHECKING:
    from rules.rulefile.guards import FileGuard
    from rules.rulefile.model import Rule
    from rules.rulefile.sources import LoadedSource

HINTS: Mapping[str, str] = {
    "no-recovery": "The rule goes back with the first Healthy observation: a target that flaps takes it along.",
    "toleration-below-source": "The source takes longer to notice than the rule tolerates: the toleration says little.",
    "not-fed": "No source of these files matches the target.",
    "one-witness": "Fewer than two signals are about a zone: it is opened by a person, not by proof of two.",
    "not-read": "No rule, guard or Quorum of these files listens to the source.",
    "taint-signal": "A signal by which a rule puts taints on a cluster is no word about that cluster's own health.",
    "same-route": "Two rules move the weights of one route: each undoes what the other does.",
    "overlapping-selectors": "One object could be selected by two rules.",
}
"""All hints, each with what it means."""
FLAPS_SECONDS = 60
"""Seconds that are proposed for recoverySeconds."""
LocatedRules = Sequence[tuple["Rule", Document, Path]]
Sources = Sequence[tuple["LoadedSource", Document, Path]]


def hints(rules: LocatedRules, sources: Sources, guards: Sequence[FileGuard]) -> Iterator[Problem]:
    """Give the hints that no comment silences, and a warning for a comment that names no hint."""
    documents = {document.file: document for _, document, _ in (*rules, *sources)}
    for document in documents.values():
        for line, names in document.ignored.items():
            for name in sorted(names - HINTS.keys()):
                message = f"no hint is called {name}; there are {', '.join(HINTS)}"
                yield Problem(document.file, line, 1, "", message, "warning")
    for problem in _all(rules, sources, guards):
        if problem.hint not in documents[problem.file].ignored.get(problem.line, ()):
            yield problem


def _all(rules: LocatedRules, sources: Sources, guards: Sequence[FileGuard]) -> Iterator[Problem]:
    said = Producers(feeds([source for source, _, _ in sources], [rule for rule, _, _ in rules]))
    acting = [(rule, document, at) for rule, document, at in rules if rule.mode is not Mode.OFF]
    for rule, document, at in acting:
        yield from _recovery(rule, document, at)
        if sources:
            yield from _fed(rule, document, at, said)
            yield from _tolerations(rule, document, at, said)
            yield from file_kind_of(rule).hints(rule, document, at, said)
    if rules:
        yield from _read(rules, sources, guards, said)
    yield from taint_loops.signals(acting)
    for model, kind in FILE_KINDS.items():
        yield from kind.conflicts([one for one in acting if isinstance(one[0], model)])


def _recovery(rule: Rule, document: Document, at: Path) -> Iterator[Problem]:
    """A 0 that is written is meant."""
    if file_kind_of(rule).goes_back_at_once and "recovery_seconds" not in rule.model_fields_set:
        message = (
            f"no recoverySeconds: it goes back with the first Healthy and will flap with its targets; write "
            f"recoverySeconds: {FLAPS_SECONDS}, or 0 where that is meant"
        )
        yield document.problem(at, message, severity="hint", hint="no-recovery")


def _fed(rule: Rule, document: Document, at: Path, said: Producers) -> Iterator[Problem]:
    with_signals = f" with a signal that it reads ({', '.join(rule.signals)})" if rule.signals else ""
    for want in wants(rule):
        missing = [
            (target, path) for target, path in want.targets.items() if not said.heard(Consumer(target, rule.signals))
        ]
        if missing and len(missing) == len(want.targets):
            message = f"no source matches {missing[0][0]}{with_signals}"
            yield document.problem((*at, *want.at), message, severity="hint", hint="not-fed")
        elif want.each:
            for target, path in missing:
                message = f"no source here matches {target}{with_signals}, so {want.so}"
                yield document.problem((*at, *path), message, severity="hint", hint="not-fed")


def _read(rules: LocatedRules, sources: Sources, guards: Sequence[FileGuard], said: Producers) -> Iterator[Problem]:
    their_rules = [rule for rule, _, _ in rules]
    listening = set(readers(their_rules, [source for source, _, _ in sources], guards))
    heard = {feed.source.name for reader in listening for feed in said.heard(reader) if feed.source}
    for source, document, at in sources:
        if source.name not in heard and not lists_for(source, their_rules):
            message = f"nothing reads it: no rule here looks at {source.target} with the signal {source.says!r}"
            yield document.problem(at, message, severity="hint", hint="not-read")


def _tolerations(rule: Rule, document: Document, at: Path, said: Producers) -> Iterator[Problem]:
    for window in file_kind_of(rule).tolerates(rule):
        slow: list[tuple[float, str, str]] = []
        listening = (Consumer(target, rule.signals) for target in window.targets)
        heard = {feed.source.name: feed.source for one in listening for feed in said.heard(one) if feed.source}
        for source in heard.values():
            for seconds, why in _notices(source):
                if window.seconds < seconds and _counts(window, source):
                    slow.append((seconds, why, source.name))
        if slow:
            seconds, why, name = max(slow)
            message = (
                f"{window.seconds:g} s is shorter than the {seconds:g} s that source {name!r} takes to notice ({why}), "
                f"which come on top: tolerate at least {seconds:g} s, or let the source look more often"
            )
            yield document.problem((*at, *window.at), message, severity="hint", hint="toleration-below-source")


def _counts(window: ToleratedTime, source: LoadedSource) -> bool:
    """Without a toleration the source's own threshold decides, which is fine. A query has none but what is written."""
    return window.seconds > 0 or (isinstance(source, PrometheusQuery) and not window.written)


def _notices(source: LoadedSource) -> Iterator[tuple[float, str]]:
    """Seconds until a source reports that something is bad, and the key that they follow from."""
    match source:
        case Probe():
            threshold, every = source.failure_threshold, source.every_seconds
            yield threshold * every, f"failureThreshold {threshold} × everySeconds {every:g}"
        case ClusterProbe():
            yield source.failure_seconds, "failureSeconds"
        case LeaseWatch():
            yield source.grace_seconds, "graceSeconds"
        case PrometheusQuery():
            yield source.every_seconds, "everySeconds"
