"""The kinds of rules that there are. A new kind is a folder in rules/kinds/ and a line here.

Processes that decide import this: it hands the kinds to the engine, which knows none.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Field

from rules.core.kind import RuleKind
from rules.engine.known_kinds import hand_in, is_kept, is_of, kind_of, kinds, new_group
from rules.kinds.quorum.kind import QuorumRule
from rules.limits import kind as limits
from rules.limits.limiter import LimiterRule
from rules.rulefile.model import Rule

__all__ = ["INTERNAL", "KINDS", "MODELS", "AnyRule", "is_kept", "is_of", "kind_of", "new_group"]

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
    limits.KIND,
    *(import_module(f"rules.kinds.{folder}.kind").KIND for folder in _FOLDERS),
)
hand_in(_KINDS)
KINDS = kinds()
INTERNAL: frozenset[type[Rule]] = frozenset({QuorumRule, LimiterRule})
"""No rule file has rules of these kinds: they follow from what rule files say."""
MODELS: tuple[type[Rule], ...] = tuple(model for model in KINDS if model not in INTERNAL)
"""Those of the kinds that a rule file may name."""
if TYPE_CHECKING:
    AnyRule = Rule
else:
    AnyRule = Annotated[Union[MODELS], Field(discriminator="kind")]  # noqa: UP007 - made of a tuple
