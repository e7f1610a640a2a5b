"""Readings of signals that are made of queries: their range and period."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rules.rulefile.promql import range_seconds
from rules.rulefile.sources import AlertmanagerWebhook, LoadedSource, PrometheusQuery


class Readings(NamedTuple):
    """Range and period of a query."""

    range_seconds: float
    """Seconds back from a reading that it covers."""
    every_seconds: float
    """The time between two readings; 0: not known."""


def readings_of(sources: Iterable[LoadedSource]) -> Mapping[str, Readings]:
    """Give how signals read that are made of queries: of several sources of one signal the slowest."""
    found: dict[str, Readings] = {}
    for source in sources:
        if isinstance(source, PrometheusQuery):
            one = Readings(range_seconds(source.query), source.every_seconds)
        elif isinstance(source, AlertmanagerWebhook) and source.confirm is not None:
            one = Readings(range_seconds(source.confirm.query), 0)
        else:
            continue
        known = found.get(source.says, one)
        found[source.says] = Readings(*map(max, zip(known, one, strict=True)))
    return found
