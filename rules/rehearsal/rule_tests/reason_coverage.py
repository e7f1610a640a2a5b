"""Coverage of rule tests: rules and their possible reasons that tests have seen, and those they never have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bus.messages import Hold, Mode, Notify
from rules.catalog import kind_of
from rules.rehearsal.rule_tests.possible import possible
from rules.rehearsal.rule_tests.suite_loader import RuleTestSuite
from rules.rehearsal.rule_tests.tester import RuleTestResult
from rules.rehearsal.simulation import Emitted
from rules.rulefile.guards import FileGuard
from rules.rulefile.model import Rule


@dataclass(frozen=True, slots=True)
class Covered:
    """Coverage of one rule."""

    rule: str
    kind: str
    place: str
    """`file:line`."""
    because: Mapping[str, int]
    """Number of actions by reason."""
    held: Mapping[str, int]
    """Number of holds by reason."""
    never_because: tuple[str, ...]
    never_held: tuple[str, ...]

    @property
    def seen(self) -> int:
        """Number of reasons that were seen."""
        return len(self.because) + len(self.held)

    @property
    def possible(self) -> int:
        """Number of reasons that the rule can have."""
        return self.seen + len(self.never_because) + len(self.never_held)


def coverage(suites: Sequence[tuple[RuleTestSuite, Sequence[RuleTestResult]]]) -> Iterator[Covered]:
    """Give what the results of these suites have seen, rule by rule, in the order of the files.

    A rule that is off is left out. One that several test files are about is told once.
    """
    tallies: dict[str, _RuleCounts] = {}
    for suite, results in suites:
        places = suite.rules.places
        for rule in suite.rules.rules:
            if rule.mode is not Mode.OFF:
                tallies.setdefault(places[rule.name], _RuleCounts(rule, suite.rules.guards))
        for said in (said for result in results for said in result.said):
            tallies[places[said.what.rule]].count(said)
    for place, tally in tallies.items():
        because, held = possible(tally.rule, tally.guards)
        yield Covered(
            tally.rule.name, type(tally.rule).__name__, place, _counted(tally.because), _counted(tally.held),
            _never(because, tally.because), _never(held, tally.held),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _RuleCounts:
    """Counts of one rule while the results are read."""

    rule: Rule
    guards: Sequence[FileGuard]
    because: Counter[str] = field(default_factory=Counter)
    held: Counter[str] = field(default_factory=Counter)

    def count(self, said: Emitted) -> None:
        what = said.what
        if isinstance(what, Hold):
            self.held[what.held] += 1
        elif not isinstance(what, Notify) or kind_of(self.rule).tells:  # its words tell what it did
            self.because[what.because] += 1


def _counted(seen: Counter[str]) -> dict[str, int]:
    return {str(reason): seen[reason] for reason in sorted(seen)}


def _never(possible: Iterable[str], seen: Counter[str]) -> tuple[str, ...]:
    return tuple(sorted(str(reason) for reason in possible if reason not in seen))
