"""Rules, sources and guards of all rule files together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rules.core.errors import Problem
from rules.rulefile.guards import FileGuard
from rules.rulefile.model import Rule
from rules.rulefile.sources import LoadedSource


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Content of all rule files together."""

    rules: tuple[Rule, ...] = ()
    sources: tuple[LoadedSource, ...] = ()
    guards: tuple[FileGuard, ...] = ()
    """Limits that several rules share."""
    warnings: tuple[Problem, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)
    """The place of each rule: its name to `file:line`."""
    removed: frozenset[str] = frozenset()
    """Rules that are in no file any more: they only bring back what they have done."""

    def rule(self, name: str) -> Rule:
        """Give the rule of this name. Raises KeyError."""
        return next(rule for rule in self.rules if rule.name == name)
