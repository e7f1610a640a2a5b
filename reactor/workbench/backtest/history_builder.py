"""Builds the history of a rule file: the queries to ask, and the observations that its sources would have made of the
answers."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from bus.messages import Health, Observation
from reactor.workbench.backtest.alert_observations import FIRING, QueriedChunk, ReplayedAlerts
from reactor.workbench.backtest.fetch import Ask, FetchedResults
from reactor.workbench.backtest.grid import Grid
from reactor.workbench.backtest.label_targets import Targets
from reactor.workbench.backtest.prometheus_gaps import NEWEST_SCRAPE, Outages, outages
from reactor.workbench.backtest.query_observations import observations
from reactor.workbench.backtest.value_runs import ChunkResult
from rules.kinds.traffic.model import TrafficFailover
from rules.kinds.traffic.route_interests import explicit_targets, named_ref
from rules.loader import RuleSet
from rules.rehearsal.backtest.playable import needs_no_inventory
from rules.rehearsal.simulation import at
from rules.rulefile.model import Rule
from rules.rulefile.sources import AlertmanagerWebhook, PrometheusQuery, Quorum
from rules.rulefile.targets import matches

ALERTS_SECONDS = 15.0
"""Seconds between two looks at alerts if no option gives another: the shortest evaluation interval in common use."""
STEP_SECONDS_MIN = 0.1

Playable = PrometheusQuery | AlertmanagerWebhook
TimedObservation = tuple[float, Observation]


@dataclass(frozen=True, slots=True)
class BacktestSpan:
    """Span of a backtest: from and to in milliseconds since 1970, and the step; None: each source's own pace."""

    from_ms: int
    to_ms: int
    now_ms: int
    step_ms: int | None = None

    def grid(self, seconds: float) -> Grid:
        """The moments at which a source of this pace is evaluated."""
        own = round(max(seconds, STEP_SECONDS_MIN) * 1000)
        return Grid(self.from_ms, self.to_ms, self.step_ms or own, self.now_ms)


@dataclass(frozen=True, slots=True)
class BacktestPlan:
    """Queries for one rule set, and the way from their answers to a history."""

    rules: RuleSet
    span: BacktestSpan
    servers: tuple[str, ...]
    """The Prometheus endpoints, by name. `FIRING` is asked of all of them."""
    only: str | None = None
    """Name of the Prometheus that is used for every name in the rule files; None: each has its own."""
    scrapes: str = NEWEST_SCRAPE
    """The query that tells when the newest scrape was; empty: it is not asked."""
    assume_healthy: tuple[str, ...] = ()
    """Patterns of targets that count as Healthy from the start, unless a source says otherwise."""
    notes: dict[str, None] = field(default_factory=dict)
    """Notes for a reader of the result, each once, in order."""

    @property
    def sources(self) -> list[Playable]:
        """The sources that Prometheus can speak for."""
        return [source for source in self.rules.sources if isinstance(source, Playable)]

    def asks(self) -> Iterator[Ask]:
        """Give all queries. May hold the same one twice."""
        for source in self.sources:
            yield from self.asks_of(source)
            if self.scrapes:
                for name in self._named(source):
                    yield self._scrapes(name, source)

    def history(self, answers: FetchedResults) -> Iterator[TimedObservation]:
        """Give what the sources would have said, in order. Read from the disk as it goes; may be asked for again."""
        sources = [self._said(source, answers) for source in self.sources]
        return heapq.merge(self._assumed(), *sources, key=lambda event: event[0])

    def _said(self, source: Playable, answers: FetchedResults) -> Iterator[TimedObservation]:
        away = self._away(source, answers)
        targets = Targets(source.target)
        if isinstance(source, PrometheusQuery):
            (ask,) = self.asks_of(source)
            yield from observations(source, answers.of(ask), away, targets)
        else:
            yield from self._alerts(source, answers, away, targets)
        if targets.without:
            self.notes[f"source {source.name}: {targets.without} label sets give no target"] = None

    def _alerts(
        self, source: AlertmanagerWebhook, answers: FetchedResults, away: Outages, targets: Targets
    ) -> Iterator[TimedObservation]:
        *firing, last = self.asks_of(source)
        confirm = source.confirm is not None
        if not confirm:
            firing.append(last)
        states = ReplayedAlerts(source, away, targets)
        yield from states.observations(_together(firing, answers), answers.of(last) if confirm else None)

    def asks_of(self, source: Playable) -> list[Ask]:
        """The queries that make the source's word: its own, or `FIRING` of every server and then the confirmation."""
        if isinstance(source, PrometheusQuery):
            return [Ask(self._server(source.prometheus), source.query, self.span.grid(source.every_seconds))]
        grid = self.span.grid(source.confirm.every_seconds if source.confirm else ALERTS_SECONDS)
        asks = [Ask(name, FIRING, grid) for name in self.servers]
        if source.confirm is not None:
            asks.append(Ask(self._server(source.confirm.prometheus), source.confirm.query, grid))
        return asks

    def _named(self, source: Playable) -> Iterator[str]:
        """The servers whose absence makes the source blind."""
        if isinstance(source, PrometheusQuery):
            yield self._server(source.prometheus)
        elif source.confirm is not None:
            yield self._server(source.confirm.prometheus)

    def _server(self, name: str) -> str:
        return self.only or name

    def _scrapes(self, name: str, source: Playable) -> Ask:
        return Ask(name, self.scrapes, self.asks_of(source)[0].grid)

    def _away(self, source: Playable, answers: FetchedResults) -> Outages:
        for name in self._named(source) if self.scrapes else ():
            found = outages(answers.of(self._scrapes(name, source)), source.stale_seconds)
            if found is None:
                note = f"prometheus {name}: {self.scrapes} gives nothing, so it is not known when Prometheus was away"
                self.notes[note] = None
                return Outages()
            return found
        return Outages()

    def _assumed(self) -> Iterator[TimedObservation]:
        second = self.span.from_ms / 1000
        said: dict[tuple[str, str], None] = {}
        for rule in self.rules.rules:
            for target in _targets(rule):
                if any(matches(pattern, target) for pattern in self.assume_healthy):
                    said[target, self._signal(rule, target)] = None
        for target, signal in sorted(said):
            yield (
                second,
                Observation(
                    target=target, status=Health.HEALTHY, signal=signal, observed_at=at(second), detail="assumed"
                ),
            )

    def _signal(self, rule: Rule, target: str) -> str:
        """The signal of the source that may say otherwise later, so that its word replaces what was assumed."""
        for source in self.sources:
            if source.says in (rule.signals or (source.says,)) and fits(source.target, target):
                return source.says
        return rule.signals[0] if rule.signals else "assumed"


def fits(template: str, target: str) -> bool:
    """True if a template could give this target."""
    pattern, depth = [], 0
    for letter in template:
        depth += (letter == "{") - (letter == "}")
        if letter == "{":
            pattern.append("*")
        elif not depth and letter != "}":
            pattern.append(f"[{letter}]" if letter in "*?[" else letter)
    return fnmatchcase(target, "".join(pattern))


def _targets(rule: Rule) -> Iterable[str]:
    if not isinstance(rule, TrafficFailover):
        return ()
    ref = named_ref(rule)
    return sorted(explicit_targets(rule, ref) or ()) if ref is not None else ()


def unplayable(rules: RuleSet) -> Iterator[str]:
    """Give a sentence for each rule or source that a backtest cannot do justice to."""
    for rule in rules.rules:
        if rule.mode == "Off":
            yield f"rule {rule.name}: mode Off, so nothing happens"
        if needs_no_inventory(rule):
            continue
        if not isinstance(rule, TrafficFailover):
            kind = type(rule).__name__
            yield f"rule {rule.name}: Prometheus knows no inventory of what a {kind} acts on: it does nothing"
        elif named_ref(rule) is None:
            yield f"rule {rule.name}: selects its routes by label, and Prometheus knows no routes: not played"
        elif rule.backends is None:
            yield f"rule {rule.name}: reads its backends from the route, and Prometheus knows none: write backends"
    for source in rules.sources:
        if not isinstance(source, Playable | Quorum):  # a Quorum is decided from what others say
            yield f"source {source.name}: {source.kind} has no Prometheus history; not replayed"


def _together(asks: Sequence[Ask], answers: FetchedResults) -> Iterator[QueriedChunk]:
    """Several servers may have the same alert: a pair that scrapes the same. It fires while it does in any."""
    for parts in zip(*(answers.of(ask) for ask in asks), strict=True):
        chunk, part, _ = parts[0]
        series = tuple(one for _, _, answer in parts for one in answer.series)
        yield chunk, part, ChunkResult(series, sum(answer.samples for _, _, answer in parts))
