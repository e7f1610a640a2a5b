"""A gauge of Prometheus with series by rule, which are made when they are scraped.

A `Gauge` keeps an object of 0.7 kB for each series, and a rule has ten of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

LabelValues = tuple[str, ...]


class RuleSeries(Collector):
    """A gauge whose first label is a rule: its series are those that were last given for each rule, and no other."""

    def __init__(self, name: str, documentation: str, labels: Sequence[str], *, registry: CollectorRegistry) -> None:
        self._name, self._documentation, self._labels = name, documentation, labels
        self._shown: dict[str, Mapping[LabelValues, int]] = {}
        registry.register(self)

    def show(self, rule: str, values: Mapping[LabelValues, int]) -> None:
        """Let the gauge have these series of the rule. `values`: by the labels behind the rule."""
        if values:
            self._shown[rule] = values
        else:
            self._shown.pop(rule, None)

    def clear(self) -> None:
        """Let it have no series."""
        self._shown.clear()

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Give the gauge without its series."""
        yield GaugeMetricFamily(self._name, self._documentation, labels=self._labels)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Give the gauge with its series."""
        for family in self.describe():
            for rule, values in self._shown.copy().items():  # a scrape is in a thread of its own
                for labels, value in values.items():
                    family.add_metric((rule, *labels), value)
            yield family
