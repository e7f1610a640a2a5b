"""The promise of the backtest: it decides as the live service does, though it is told only what changes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.messages import Action, Hold, Observation, SetWeights
from reactor.clients.instant_queries import QueryFailed, Sample
from reactor.sources.prometheus.prometheus_query import _QueryPoll
from reactor.sources.republisher import no_facts_lost
from reactor.sources.source_context import SourceContext
from reactor.workbench.backtest.label_targets import Targets
from reactor.workbench.backtest.prometheus_gaps import Outages
from reactor.workbench.backtest.query_observations import observations
from rules.loader import RuleSet
from rules.rehearsal.backtest.backtester import backtest
from rules.rehearsal.simulation import START, Emitted, play, second
from rules.rulefile.sources import PrometheusQuery
from tests.clock import HandClock
from tests.examples import many
from tests.unit.backtest.builders import STEP, Values, answer, chunk, rules, text

Past = Mapping[str, Values]
Doing = tuple[float, str, str, str, str]


class Recorded:
    """A Prometheus that answers with the past, or not at all."""

    def __init__(self, past: Past, away: frozenset[int], clock: HandClock) -> None:
        self._past, self._away, self._clock = past, away, clock

    async def query(self, promql: str, *, at: datetime | None = None) -> Sequence[Sample]:  # noqa: ARG002 - the port's
        index = int(self._clock.seconds) // STEP
        if index in self._away:
            raise QueryFailed("connection refused")
        return [
            Sample({"service": name.partition("/")[0]}, float(text(value)), self._clock.seconds)
            for name, values in sorted(self._past.items())
            if (value := values[index]) is not None
        ]


def live(of: RuleSet, past: Past, away: frozenset[int], points: int) -> list[tuple[float, Observation]]:
    """Observations of the live source, evaluation by evaluation."""
    (source,) = of.sources
    assert isinstance(source, PrometheusQuery)
    clock = HandClock(start=START)
    heard: list[tuple[float, Observation]] = []

    async def tell(fact: Any) -> None:
        # In a rehearsal no source is asked to look again: what it said holds until it says otherwise.
        heard.append((second(fact.observed_at), fact.model_copy(update={"source": ""})))

    world: Any = SourceContext.__new__(SourceContext)
    object.__setattr__(world, "tell", tell)
    object.__setattr__(world, "clock", clock)
    object.__setattr__(world, "on_facts_lost", no_facts_lost)

    async def read() -> None:
        reader = _QueryPoll(source, world, Recorded(past, away, clock))
        for index in range(points):
            clock.seconds = index * STEP
            await reader.read()

    asyncio.run(read())
    return heard


def rehearsed(
    of: RuleSet, past: Past, away: frozenset[int], points: int, cuts: Iterable[int] = ()
) -> list[tuple[float, Observation]]:
    """Observations that the backtest makes of the same past, fetched in chunks that begin at these points."""
    (source,) = of.sources
    assert isinstance(source, PrometheusQuery)
    borders = [0, *sorted({cut for cut in cuts if 0 < cut < points}), points]
    parts = []
    for begin, end in pairwise(borders):
        part = chunk(end - begin, first=begin)
        parts.append((part, range(part.points), answer({n: v[begin:end] for n, v in past.items()}, part)))
    spans = [(float(index * STEP), float((index + 1) * STEP)) for index in sorted(away)]
    return list(observations(source, parts, Outages(spans), Targets(source.target)))


def doings(said: Iterable[Emitted]) -> list[Doing]:
    return [_doing(one.at, one.what) for one in said]


def _doing(when: float, what: Action | Hold) -> Doing:
    if isinstance(what, Hold):
        return when, what.rule, what.object, what.held, ""
    does = str(what.weights) if isinstance(what, SetWeights) else what.summary.partition(" (")[0]
    return when, what.rule, what.object, what.because, does


ABSENT = "    unhealthyWhen: Absent\n"
"""A source of one target, which the file names."""
VALUES = st.sampled_from([None, 0.0, 0.01, 0.2, 0.2, float("nan"), 1.0])
POINTS = 30
PASTS = st.fixed_dictionaries(
    {}, optional={n: st.lists(VALUES, min_size=POINTS, max_size=POINTS) for n in ("checkout", "fallback", "fallback/b")}
)
SOURCES = ["", "    unhealthyWhen: {above: 0.1}\n", "    unhealthyWhen: {below: 0.1}\n", ABSENT]
TOLERATIONS = st.sampled_from([0, 10, 30, 45, 90])
PEOPLE = "\n  - {name: people, kind: Notification, mode: Enforce, match: service/**, tolerationSeconds: 40}\n"


@many(80)  # each plays the past four times
@given(
    PASTS, st.frozensets(st.integers(0, POINTS - 1), max_size=6), st.lists(st.integers(0, POINTS), max_size=4),
    st.sampled_from(SOURCES), TOLERATIONS, TOLERATIONS, st.sampled_from(["Hold", "Unhealthy"]),
    st.sampled_from(["Enforce", "DryRun"]), st.sampled_from(["", "    steps: [{percent: 10, pauseSeconds: 45}]\n"]),
)  # fmt: skip
def test_only_the_changes_lead_to_what_every_single_evaluation_leads_to(
    past: Past, away: frozenset[int], cuts: list[int], source: str, toleration: float, recovery: float, unknown: str,
    mode: str, steps: str,
) -> None:  # fmt: skip
    rule = (
        f"    tolerationSeconds: {toleration}\n    recoverySeconds: {recovery}\n    treatUnknownAs: {unknown}\n{steps}"
    )
    of = rules(source=source, rule=rule, more=PEOPLE, service="checkout" if source is ABSENT else "{service}")
    of = RuleSet(tuple(one.model_copy(update={"mode": type(one.mode)(mode)}) for one in of.rules), of.sources)
    until = (POINTS - 1) * STEP
    everything = live(of, past, away, POINTS)
    changes = rehearsed(of, past, away, POINTS, cuts)
    assert len(changes) <= len(everything)
    expected = list(play(of.rules, everything, until=until))
    assert doings(play(of.rules, changes, until=until)) == doings(expected)

    told = backtest(of, changes, first=0, until=until)
    acts = sorted(_doing(act.at, act.action) for story in told.stories.values() for act in story.acts)
    assert acts == sorted(_doing(one.at, one.what) for one in expected if not isinstance(one.what, Hold))
    waits = sum(len(story.waits) for story in told.stories.values())
    assert waits == sum(isinstance(one.what, Hold) for one in expected)


def test_a_month_of_the_same_value_is_one_observation() -> None:
    of = rules(source="    unhealthyWhen: {above: 0.1}\n")
    assert len(rehearsed(of, {"checkout": [0.0, 0.05] * 1000}, frozenset(), 2000, [700, 1400])) == 1


@pytest.mark.parametrize(("source", "status"), [("", "Healthy"), ("    unhealthyWhen: {above: 0.1}\n", "Unknown")])
def test_a_series_that_leaves_says_what_the_live_source_says(source: str, status: str) -> None:
    of = rules(source=source)
    past = {"checkout": [1.0, 1.0, None, None]}
    assert [word.status for _, word in rehearsed(of, past, frozenset(), 4)] == ["Unhealthy", status]


def test_while_prometheus_is_away_health_is_unknown() -> None:
    of = rules()
    words = rehearsed(of, {"checkout": [1.0, 1.0, 1.0, None, None]}, frozenset({2, 3}), 5)
    assert [(when, word.status) for when, word in words] == [(0, "Unhealthy"), (60, "Unknown"), (120, "Healthy")]
