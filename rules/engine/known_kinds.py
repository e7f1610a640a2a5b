"""The kinds of rules that there are, as `rules.catalog` hands them in: the engine imports none of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from bus.messages import Fact
from rules.core.group import Group
from rules.core.kind import RuleKind
from rules.rulefile.guards import FileGuard
from rules.rulefile.model import Rule
from rules.rulefile.sources import Source

Kinds = Mapping[type[Rule], RuleKind[Any, Any]]
"""Any: each takes rules of its own model only, which is its key."""
_kinds: dict[type[Rule], RuleKind[Any, Any]] = {}


def hand_in(given: Iterable[RuleKind[Any, Any]]) -> None:
    """Take the kinds that there are. Called once, before anything is decided."""
    _kinds.update({kind.model: kind for kind in given})
    kinds.cache_clear()
    subscribing.cache_clear()


@cache
def kinds() -> Kinds:
    """Give all kinds by the model of their rules. Raises LookupError where none were handed in."""
    if not _kinds:
        raise LookupError("the engine has no kinds of rules: import rules.catalog, which hands them in")
    return dict(_kinds)


def kind_of(rule: Rule) -> RuleKind[Any, Any]:
    """Give the functions of this rule's kind. Raises LookupError where none is handed in for it."""
    return _kinds.get(type(rule)) or kinds()[type(rule)]


@cache
def subscribing() -> frozenset[type[Fact]]:
    """Give the facts by which a group may come to get more targets than before."""
    return frozenset(fact for kind in kinds().values() for fact in kind.subscribing)


def new_group(rule: Rule, object_: str) -> Group:
    """Give a group of this rule as it begins."""
    return Group(rule.name, object_, kind_of(rule).state())


def is_kept(group: Group) -> bool:
    """True if a group is stored although no rule matches it: its changes are in place and must stay known."""
    kind = next((one for one in kinds().values() if one.state is type(group.state)), None)
    return kind is not None and kind.keeps(group)


def is_of(rule: Rule, group: Group) -> bool:
    """True if the group is of this rule's kind: a new rule of another kind may reuse the name."""
    return type(group.state) is kind_of(rule).state


def implied(rules: Sequence[Rule], guards: Sequence[FileGuard], sources: Sequence[Source]) -> list[Rule]:
    """Give the rules of internal kinds that these rules, guards and sources need, to be indexed like all others."""
    return [rule for kind in kinds().values() for rule in kind.implied(rules, guards, sources)]
