"""The kinds of rules that there are. A new kind is a folder in rules/kinds/ and a line here.

Processes that decide import this: it hands the kinds to the engine, which knows none.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Field

from rules.engine.known_kinds import hand_in, is_kept, is_of, kind_of, kinds, new_group
from rules.limits import kind as limits
from rules.rulefile.file_kind import FileKind
from rules.rulefile.model import Rule

__all__ = ["FILE_KINDS", "INTERNAL", "KINDS", "MODELS", "AnyRule", "is_kept", "is_of", "kind_of", "new_group"]

_FOLDERS = (
    "traffic",
    "workload",
    "cluster_taint",
    "zone",
    "notification",
    "quorum",
)
"""Those in rules/kinds/, each with its `KIND` and its `FILE_KIND` in kind.py."""
_MODULES = [import_module(f"rules.kinds.{folder}.kind") for folder in _FOLDERS]
hand_in([limits.KIND, *(module.KIND for module in _MODULES)])
KINDS = kinds()
FILE_KINDS: Mapping[type[Rule], FileKind[Any]] = {
    kind.model: kind for kind in (module.FILE_KIND for module in _MODULES) if kind is not None
}
"""The kinds that a rule file may name. Rules of all others follow from what rule files say."""
MODELS: tuple[type[Rule], ...] = tuple(FILE_KINDS)
INTERNAL: frozenset[type[Rule]] = frozenset(KINDS) - frozenset(FILE_KINDS)
if TYPE_CHECKING:
    AnyRule = Rule
else:
    AnyRule = Annotated[Union[MODELS], Field(discriminator="kind")]  # noqa: UP007 - made of a tuple


def file_kind_of(rule: Rule) -> FileKind[Any]:
    """Give what this rule's kind says of rule files. Raises KeyError for one that no rule file has."""
    return FILE_KINDS[type(rule)]
