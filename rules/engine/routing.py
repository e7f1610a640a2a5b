"""Addresses of facts: the groups that a fact concerns, found from the rules alone.

An address is a rule and a scope: the thing itself where the rule names it, else the neighbourhood (`cluster/namespace`)
in which its things are found. All groups of an address live in one partition, so their facts are in one order. Its home
decides which partition that is; several addresses may have one home, and then a fact is stored once for all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import cached_property, lru_cache

from bus.messages import (
    AcquireReply,
    Approve,
    Command,
    Fact,
    Observation,
    Outcome,
    Pause,
    Reject,
    Resume,
)
from rules.core.index import Index, Path, pattern_of
from rules.core.interests import labels_of, path_of
from rules.engine.known_kinds import implied, kind_of
from rules.limits.limiters import GuardsByRule
from rules.rulefile.guards import FileGuard
from rules.rulefile.model import Rule
from rules.rulefile.rule_set import RuleSet
from rules.rulefile.sources import Source
from rules.rulefile.targets import matches

Address = tuple[str, str]
"""Rule and scope."""
Home = tuple[str, str]
"""Key from which a partition is computed: a rule and a scope, or a scope that several rules share."""
ScopeOf = Callable[[Path], str | None]
PATHS_MAX = 65_536
"""Cached targets: for so many, which rules they concern is not computed again."""


def scope_of(rule: Rule, object_: str) -> str:
    """Give the scope in which this group of the rule lives."""
    return kind_of(rule).scope(rule, object_)


class Routing:
    """The addresses of facts. Built once for a rule set; asked for every fact."""

    def __init__(self, rules: Iterable[Rule], guards: Sequence[FileGuard] = (), sources: Iterable[Source] = ()) -> None:
        """`guards`: those of the rule files. `sources`: some are carried out by deciders."""
        own = list(rules)
        self.rules: dict[str, Rule] = {rule.name: rule for rule in (*own, *implied(own, guards, list(sources)))}
        self.file_guards = guards
        self._guards = GuardsByRule(guards)
        self._digests: dict[str, str] = {}
        taken = [taken for rule in own if (taken := kind_of(rule).takes(rule)) is not None]
        self._taken = lru_cache(PATHS_MAX)(Index((pattern_of(one[0]), one) for one in taken).find)
        addresses: Index[tuple[str, ScopeOf | None]] = Index()
        homes: Index[tuple[str, ScopeOf | None]] = Index()
        concerned: Index[str] = Index()
        labelled: Index[str] = Index()
        self._by_label: set[str] = set()
        """Rules that facts with a certain label concern, and others only where a group is there."""
        for rule in self.rules.values():
            shared = kind_of(rule).shares_home(rule)
            for one in kind_of(rule).interests(rule):
                addresses.add(one.facts, (rule.name, one.scope))
                if one.label is not None:
                    labelled.add((*one.label, *one.facts), rule.name)
                    self._by_label.add(rule.name)
                elif not one.subscribed:
                    concerned.add(one.facts, rule.name)
                homes.add(one.facts, ("" if shared and one.scope is not None else rule.name, one.scope))
        self._addressed = lru_cache(PATHS_MAX)(addresses.find)
        self._concerned = lru_cache(PATHS_MAX)(concerned.find)
        self._labelled = labelled.find
        self._at_home = lru_cache(PATHS_MAX)(homes.find)

    @classmethod
    def of(cls, rules: RuleSet) -> Routing:
        """The routing of all that some rule files say."""
        return cls(rules.rules, rules.guards, rules.sources)

    def guards_of(self, name: str) -> Sequence[FileGuard]:
        """Give the guards of rule files that mean the rule of this name."""
        return self._guards.of(name)

    def digest(self, name: str) -> str:
        """Give ten hex digits that are others where the rule, or a guard that means it, says something else."""
        if name not in self._digests:
            text = "\n".join(one.model_dump_json() for one in (self.rules[name], *self.guards_of(name)))
            self._digests[name] = hashlib.sha256(text.encode()).hexdigest()[:10]
        return self._digests[name]

    @cached_property
    def rule_set(self) -> str:
        """Ten hex digits that are others where any rule says something else: facts may concern other groups then."""
        text = "\n".join(f"{name} {self.digest(name)}" for name in sorted(self.rules))
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    @cached_property
    def named(self) -> Sequence[tuple[str, str, str]]:
        """Rule, object and scope of each group that is there from the start, as its rule names its object."""
        return [
            (rule.name, one, scope_of(rule, one)) for rule in self.rules.values() for one in kind_of(rule).first(rule)
        ]

    def addresses(self, fact: Fact) -> Sequence[Address]:
        """Give each address that the fact concerns, once. A pause or a resume concerns all groups: none is given."""
        match fact:
            case Pause() | Resume():
                return []
            case Outcome() | AcquireReply() | Approve() | Reject():
                return [] if fact.rule not in self.rules else [self._address(fact.rule, fact.object)]
            case _:
                return list(dict.fromkeys(self._found(fact, self._addressed)))

    def homes(self, fact: Fact) -> Iterator[Home]:
        """Give the homes of all addresses that the fact concerns, in a time that does not grow with rules that share
        one; some may come twice."""
        if isinstance(fact, Pause | Resume | Outcome | AcquireReply | Approve | Reject):
            return (self.home(*address) for address in self.addresses(fact))
        return (self._home(*found) for found in self._found(fact, self._at_home))

    def home(self, rule: str, scope: str) -> Home:
        """Give the home of an address."""
        known = self.rules.get(rule)
        return ("" if known is not None and kind_of(known).shares_home(known) else rule), scope

    def _home(self, rule: str, scope: str) -> Home:
        return self.home(rule, scope) if rule else ("", scope)

    def concerned(self, fact: Fact, there: Set[str] = frozenset()) -> Iterator[tuple[Rule, Iterable[str]]]:
        """Give the rules whose kinds name the objects that a fact concerns, and these objects.

        `there`: rules that have a group of this object; those go by its labels no more.
        """
        path = path_of(fact)
        names = self._concerned(path)
        if self._by_label:
            found = {name for label in labels_of(fact).items() for name in self._labelled((*label, *path))}
            names = (*names, *sorted(found | (there & self._by_label)))
        for name in names:
            rule = self.rules[name]
            if not self.is_skipped(rule, fact):
                yield rule, kind_of(rule).objects(rule, fact)

    def _found(self, fact: Fact, find: Callable[[Path], Iterable[tuple[str, ScopeOf | None]]]) -> Iterator[Address]:
        path = path_of(fact)
        for name, scope in find(path):
            if scope is not None:
                if (found := scope(path)) is not None:
                    yield name, found
            elif not self.is_skipped(rule := self.rules[name], fact):
                for object_ in kind_of(rule).objects(rule, fact):
                    yield name, scope_of(rule, object_)

    def is_skipped(self, rule: Rule, fact: Fact) -> bool:
        """True if the rule ignores the fact because another rule makes observations from it: `is_taken`."""
        return isinstance(fact, Observation) and self.is_taken(rule, fact.target, fact.signal)

    def is_taken(self, rule: Rule, target: str, signal: str) -> bool:
        """True if another rule consumes this signal of the target and publishes an observation that this rule uses in
        its place."""
        if not kind_of(rule).skips_taken(rule):
            return False
        found = self._taken(tuple(target.split("/")))
        return any(signal in signals and matches(match, target) for match, signals in found)

    def is_in_force(self, name: str, cluster: str) -> bool:
        """True if an earlier statement of the rule `name` about a cluster is still valid under the current rules."""
        rule = self.rules.get(name)
        return rule is not None and kind_of(rule).is_in_force(rule, cluster)

    def _address(self, name: str, object_: str) -> Address:
        rule = self.rules[name]
        return name, scope_of(rule, kind_of(rule).owner(rule, object_))

    def everywhere(self, fact: Fact) -> bool:
        """True if the fact concerns groups that only their partitions know."""
        if isinstance(fact, Pause | Resume):
            return True
        rule = self.rules.get(fact.rule) if isinstance(fact, Command) else None
        return rule is not None and kind_of(rule).everywhere(rule, fact)
