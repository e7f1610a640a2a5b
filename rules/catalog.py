"""The kinds of rules that there are. A new kind is a folder in rules/kinds/ and a line here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Field

from bus.messages import Fact
from rules.core.group import Group
from rules.core.kind import RuleKind
from rules.kinds.quorum.kind import QUORUM, QuorumRule
from rules.limits import limiter
from rules.limits.limiter import LimiterRule
from rules.limits.limiters import limiters
from rules.rulefile.guards import FileGuard
from rules.rulefile.model import Rule
from rules.rulefile.sources import Quorum, Source

_FOLDERS = (
    "traffic",
    "workload",
    "cluster_taint",
    "zone",
    "notification",
    "quorum",
)
"""Those in rules/kinds/, each with its `KIND` in kind.py."""
_KINDS: tuple[RuleKind[Any, Any], ...] = (
    *(import_module(f"rules.kinds.{folder}.kind").KIND for folder in _FOLDERS),
    limiter.KIND,
)
KINDS: Mapping[type[Rule], RuleKind[Any, Any]] = {kind.model: kind for kind in _KINDS}
"""Any: each takes rules of its own model only, which is its key."""
_BY_STATE: Mapping[type[Any], RuleKind[Any, Any]] = {kind.state: kind for kind in KINDS.values()}
SUBSCRIBING: tuple[type[Fact], ...] = tuple({fact for kind in KINDS.values() for fact in kind.subscribing})
"""Facts by which a group may come to hear of more targets than before."""
INTERNAL: frozenset[type[Rule]] = frozenset({QuorumRule, LimiterRule})
"""No rule file has rules of these kinds: they follow from what rule files say."""
MODELS: tuple[type[Rule], ...] = tuple(model for model in KINDS if model not in INTERNAL)
"""Those of the kinds that a rule file may name."""
if TYPE_CHECKING:
    AnyRule = Rule
else:
    AnyRule = Annotated[Union[MODELS], Field(discriminator="kind")]  # noqa: UP007 - made of a tuple


def kind_of(rule: Rule) -> RuleKind[Any, Any]:
    """Give the functions of this rule's kind."""
    return KINDS[type(rule)]


def new_group(rule: Rule, object_: str) -> Group:
    """Give a group of this rule as it begins."""
    return Group(rule.name, object_, kind_of(rule).state())


def is_kept(group: Group) -> bool:
    """Whether a group is stored although no rule speaks of it: what it has done stands, and must stay known."""
    kind = _BY_STATE.get(type(group.state))
    return kind is not None and kind.keeps(group)


def is_of(rule: Rule, group: Group) -> bool:
    """Whether the group is one of this rule's kind: a rule file may give the name of a rule to one of another kind."""
    return type(group.state) is kind_of(rule).state


def actors(
    rules: Iterable[Rule], file_guards: Sequence[FileGuard] = (), sources: Iterable[Source] = ()
) -> list[LimiterRule | QuorumRule]:
    """Give the actors that these rules and sources need, as rules of internal kinds, to be routed like all others."""
    return [
        *limiters(rules, file_guards),
        *(
            QuorumRule(name=f"{QUORUM}{source.name}", source=source)
            for source in sources
            if isinstance(source, Quorum)
        ),
    ]  # fmt: skip
