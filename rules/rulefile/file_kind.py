"""Interface of a rule kind to the loader and the hints, which know no kind by name.

No field has a default: a kind that forgets one is refused by the type checker and does not start. What a kind has
nothing to say to, it fills with one of the functions of `rules.core.kind` or below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from rules.core.errors import Problem
from rules.rulefile.feeds import Consumer, FeedNeed, Producer, Producers, ToleratedTime
from rules.rulefile.model import Rule
from rules.rulefile.readings import Readings
from rules.rulefile.sources import LoadedSource
from rules.rulefile.yaml import Document, Path

R = TypeVar("R", bound=Rule)
"""The model of the kind's rules."""
Located: TypeAlias = tuple[R, Document, Path]
"""A rule, with its place in its file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKind(Generic[R]):
    """The functions of one kind that rule files have."""

    model: type[R]
    """Model of its rules in a rule file; its `kind` is the word for it."""
    plain: Callable[[R], R]
    """(rule): the rule without words that mean the same as others, as it is checked and used."""
    beside: Callable[[R, Mapping[str, Readings]], R]
    """(rule, how signals read): the rule as it is used beside these sources."""

    # Errors and warnings.
    checks: Callable[[R, Document, Path], Iterable[Problem]]
    """(rule, document, place): findings about one rule by itself."""
    checks_together: Callable[[Sequence[Located[R]], Sequence[LoadedSource]], Iterable[Problem]]
    """(all rules of the kind, sources): findings that need the others, or the sources."""

    # Which targets its rules need, and which they read.
    needs: Callable[[R], Iterable[FeedNeed]]
    """(rule): the targets that it needs observations of before it ever acts."""
    consumers: Callable[[R], Iterable[Consumer]]
    """(rule): all targets of which it uses observations, besides the peers that its guards count."""
    inventory: Callable[[R], Iterable[Producer]]
    """(rule): the observations that it brings along, without a source."""
    reads: Callable[[R], Iterable[object]]
    """(rule): what an observer reads for it besides sources: a selection of routes, a `KarmadaPlane`, workloads to be
    remembered. `reactor/process/observer_jobs.py` has a reader for each type of them."""
    lists: Callable[[R, LoadedSource], bool]
    """(rule, source): whether it needs what the source tells besides health."""

    # Hints.
    tolerates: Callable[[R], Iterable[ToleratedTime]]
    """(rule): how long it tolerates what."""
    goes_back_at_once: bool
    """True if without recoverySeconds its rules go back with the first Healthy."""
    hints: Callable[[R, Document, Path, Producers], Iterable[Problem]]
    """(rule, document, place, producers): what seldom is meant beside these sources. Not asked without sources."""
    conflicts: Callable[[Sequence[Located[R]]], Iterable[Problem]]
    """(all rules of the kind that are not Off): those that act on the same thing."""

    phrases: tuple[str, str]
    """Words of pages for what a rule does to a target when its toleration is over, and when its recovery is."""


def as_written(rule: R, *_: Any) -> R:
    """The rule as it is."""
    return rule


def needed(needs: Callable[[R], Iterable[FeedNeed]]) -> Callable[[R], Iterable[Consumer]]:
    """Give the `consumers` of a kind that reads the targets that it needs, and no others."""
    return lambda rule: (Consumer(target, rule.signals) for need in needs(rule) for target in need.targets)


def tolerated(needs: Callable[[R], Iterable[FeedNeed]]) -> Callable[[R], Iterable[ToleratedTime]]:
    """Give the `tolerates` of a kind that tolerates all targets that it needs for tolerationSeconds."""

    def tolerates(rule: R) -> Iterable[ToleratedTime]:
        targets = [target for need in needs(rule) for target in need.targets]
        written = "toleration_seconds" in rule.model_fields_set
        yield ToleratedTime(rule.toleration_seconds, ("tolerationSeconds",), targets, written)

    return tolerates


def peers_needed(rule: Rule) -> Iterable[FeedNeed]:
    """Give the `needs` of a kind that uses the targets that its guards count."""
    yield FeedNeed((), dict.fromkeys(rule.default_peers, ()))
