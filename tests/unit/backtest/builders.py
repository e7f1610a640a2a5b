"""Answers and rule files of these tests, with time as points from zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reactor.workbench.backtest.grid import Chunk
from reactor.workbench.backtest.value_runs import ChunkResult, series_of
from rules import loader
from rules.loader import RuleSet

STEP = 30

Values = Sequence[float | None]
"""One value for each point; None: there was no series."""


def chunk(points: int, *, first: int = 0) -> Chunk:
    """A chunk of this many points of STEP seconds; `first` is a point."""
    return Chunk(first * STEP * 1000, STEP * 1000, points)


def text(value: float) -> str:
    """A number as Prometheus writes it."""
    return {"nan": "NaN", "inf": "+Inf"}.get(str(value), repr(value))


def answer(of: Mapping[str, Values], at: Chunk) -> ChunkResult:
    """Give the answer for series that are told apart by their label `service`, or by `service/instance`."""
    series = []
    for name, values in of.items():
        service, _, instance = name.partition("/")
        labels = {"service": service} | ({"instance": instance} if instance else {})
        pairs = [[at.second(index), text(value)] for index, value in enumerate(values) if value is not None]
        if pairs:
            series.append(series_of(labels, pairs, at))
    return ChunkResult(tuple(series), sum(map(len, of.values())))


SOURCE = """
  - name: errors
    kind: PrometheusQuery
    prometheus: main
    query: errors
    everySeconds: 30
    target: service/east/shop/SERVICE
"""

RULE = """
  - name: checkout
    kind: TrafficFailover
    mode: Enforce
    route: {cluster: east, kind: TrafficSplit, namespace: shop, name: checkout}
    primary: checkout
    backends: [{service: checkout}, {service: fallback}]
"""


def rules(*, source: str = "", rule: str = "", more: str = "", service: str = "{service}") -> RuleSet:
    """One source and one rule, with these keys besides; `more`: further rules."""
    parts = ["apiVersion: reactor/v1\nsources:", SOURCE.replace("SERVICE", service), source, "rules:", RULE, rule, more]
    return loader.load_rules([("shop.yaml", "".join(parts))])
