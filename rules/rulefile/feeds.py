"""Targets that sources observe and targets that rules ask for, and the match of the two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from rules.rulefile.overlap import is_plain, may_overlap
from rules.rulefile.yaml import Path

if TYPE_CHECKING:
    from rules.rulefile.sources import LoadedSource

KARMADA = "karmada"
"""The signal of a control plane's own inventory."""


class Producer(NamedTuple):
    """The targets that a source publishes."""

    target: str
    """A template; labels that are known beforehand are filled in."""
    signal: str
    source: LoadedSource | None = None
    """None: the inventory of a Karmada control plane."""


class FeedNeed(NamedTuple):
    """The targets that a rule needs observations of. One of `targets` is enough, unless each is needed."""

    at: Path
    """Within the rule."""
    targets: Mapping[str, Path]
    """Targets or patterns, each with its place within the rule."""
    each: bool = False
    so: str = "it is never ready"
    """Consequence for one without a source, where each is needed."""


class Consumer(NamedTuple):
    """A rule, guard or Quorum that uses observations."""

    target: str
    """A target or a pattern."""
    signals: tuple[str, ...] | None = None
    """None: all."""


class ToleratedTime(NamedTuple):
    """Seconds for which a rule tolerates that targets are bad."""

    seconds: float
    at: Path
    """The place of that within the rule."""
    targets: Iterable[str]
    written: bool = True
    """False: it is the default."""


class Producers:
    """All producers, so that thousands of consumers find theirs among thousands."""

    def __init__(self, producers: Iterable[Producer]) -> None:
        self._all = list(producers)
        self._open = [one for one in self._all if not is_plain(one.target)]
        self._named: dict[str, list[Producer]] = {}
        for one in self._all:
            if is_plain(one.target):
                self._named.setdefault(one.target, []).append(one)

    def heard(self, reader: Consumer) -> list[Producer]:
        """Give those that could say something to it."""
        near = [*self._named.get(reader.target, ()), *self._open] if is_plain(reader.target) else self._all
        return [
            one
            for one in near
            if (reader.signals is None or one.signal in reader.signals) and may_overlap(reader.target, one.target)
        ]


class KarmadaPlane(NamedTuple):
    """The inventory of the Karmada control plane of the settings."""

    policies: str | None = None
    """Label selector of the policies that the rule honours there."""


def karmada_inventory(carrier: str) -> Iterator[Producer]:
    """Give what the inventory of a Karmada control plane says, to rules with this carrier; none with another."""
    if carrier == "Karmada":
        yield Producer("cluster/{name}", KARMADA)
        yield Producer("workload/{cluster}/{namespace}/{kind}/{name}", KARMADA)
