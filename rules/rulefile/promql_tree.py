"""Labels of a PromQL expression, read by the parser of GreptimeDB (promql-parser): the one importer of it.

It reads what Prometheus 3 reads. It is asked only what is certain: whether the text can be read, and which labels a
series of the result can have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import promql_parser as promql

_UNKNOWN_FUNCTION = re.compile(r"unknown function with name '(\w+)'")
_KEEPING = frozenset({"topk", "bottomk", "limitk", "limit_ratio"})
"""Aggregations that choose series, and change none."""
_SET_OPERATORS = frozenset({"and", "or", "unless"})


@dataclass(frozen=True, slots=True)
class Labels:
    """The labels that a series of a result can have: these alone, or all but these."""

    names: frozenset[str] = frozenset()
    all_but: bool = False

    def may_have(self, name: str) -> bool:
        """True if a series can have this label."""
        return (name in self.names) is not self.all_but

    def with_(self, names: Iterable[str]) -> Labels:
        """These labels too."""
        more = frozenset(names)
        return Labels(self.names - more if self.all_but else self.names | more, self.all_but)

    def without(self, names: Iterable[str]) -> Labels:
        """None of these."""
        fewer = frozenset(names)
        return Labels(self.names | fewer if self.all_but else self.names - fewer, self.all_but)


ANY = Labels(all_but=True)
NONE = Labels()


@dataclass(frozen=True, slots=True)
class Query:
    """An expression that was read."""

    problem: str = ""
    """Reason why it cannot be read; empty: it can."""
    function: str = ""
    """The function that is not known, where that is the problem: another version may have it."""
    labels: Labels = ANY


PARTS_MAX = 250
"""Operators, brackets and calls of an expression that is read. The parser is recursive: thousands of them would end the
process, and no person writes them."""
_TEXT = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|`[^`]*`|#[^\n]*|\{[^{}]*\}')
_PART = re.compile(r"[-+*/%^(\[]|[<>!=]=?|\b(?:and|or|unless|atan2|offset|by|without|on|ignoring)\b", re.IGNORECASE)

_ODD_OFFSET = re.compile(r"(?:\boffset\b|@)\s*[-+]?\s*(?:inf|nan)\b", re.IGNORECASE)
"""The parser panics at it, and prints that."""


@lru_cache(maxsize=4096)
def read_promql(text: str) -> Query:
    """Read an expression. One that is larger than people write is not looked at, and has no findings."""
    bare = _TEXT.sub(" x ", text)
    if len(_PART.findall(bare)) > PARTS_MAX:
        return Query()
    if _ODD_OFFSET.search(bare):
        return Query("an offset is a duration")
    try:
        tree = promql.parse(text)
    except BaseException as error:  # a panic of Rust is no Exception; anything else goes on
        if not isinstance(error, ValueError) and type(error).__name__ != "PanicException":
            raise
        message = str(error).strip().partition("\n")[0]
        unknown = _UNKNOWN_FUNCTION.search(message)
        return Query(message, unknown[1] if unknown else "")
    return Query(labels=_labels(tree))


def _labels(tree: object) -> Labels:
    match tree:
        case promql.ParenExpr() | promql.UnaryExpr() | promql.SubqueryExpr():
            return _labels(tree.expr)
        case promql.VectorSelector() | promql.MatrixSelector():
            return ANY
        case promql.NumberLiteral() | promql.StringLiteral():
            return NONE
        case promql.AggregateExpr():
            return _aggregated(tree)
        case promql.BinaryExpr():
            return _joined(tree)
        case promql.Call():
            return _called(tree)
        case _:
            return ANY


def _aggregated(tree: promql.AggregateExpr) -> Labels:
    inner = _labels(tree.expr)
    name = str(tree.op).lower()
    if name in _KEEPING:
        return inner
    counted = [str(tree.param.val)] if name == "count_values" and isinstance(tree.param, promql.StringLiteral) else []
    if tree.modifier is None:
        return NONE.with_(counted)
    names = list(tree.modifier.labels)
    if tree.modifier.type == promql.AggModifierType.Without:
        return inner.without(names).with_(counted)
    return Labels(frozenset(name for name in names if inner.may_have(name))).with_(counted)


def _joined(tree: promql.BinaryExpr) -> Labels:
    """Of two vectors the result has what they are matched on; of one that is many, what that one has."""
    left, right = tree.lhs, tree.rhs
    if _is_scalar(right):
        return _labels(left)
    if _is_scalar(left):
        return _labels(right)
    name = str(tree.op).lower()
    if name in _SET_OPERATORS:
        return ANY if name == "or" else _labels(left)
    modifier = tree.modifier
    if modifier is None or modifier.matching is None:
        return _labels(left)
    card = str(modifier.card)
    if "ManyToOne" in card or "OneToMany" in card:
        return ANY  # the many side's, and what is taken from the other
    names = list(modifier.matching.labels)
    if modifier.matching.type == promql.LabelModifierType.Include:
        return Labels(frozenset(name for name in names if _labels(left).may_have(name)))
    return _labels(left).without(names)


def _is_scalar(tree: object) -> bool:
    match tree:
        case promql.NumberLiteral():
            return True
        case promql.ParenExpr() | promql.UnaryExpr():
            return _is_scalar(tree.expr)
        case promql.Call():
            return tree.func.name in ("scalar", "time", "pi")
        case promql.BinaryExpr():
            return _is_scalar(tree.lhs) and _is_scalar(tree.rhs)
        case _:
            return False


def _called(tree: promql.Call) -> Labels:
    name, arguments = tree.func.name, list(tree.args)
    vectors = [one for one in arguments if not isinstance(one, promql.NumberLiteral | promql.StringLiteral)]
    match name:
        case "label_replace" | "label_join":
            return _labels(arguments[0]).with_([str(arguments[1].val)])
        case "histogram_quantile":
            return _labels(arguments[-1]).without(["le"])
        case "vector" | "scalar" | "time" | "pi":
            return NONE
        case _ if name.startswith("absent") or name == "info" or not vectors:
            return ANY  # from matchers, or from elsewhere
        case _:
            return _labels(vectors[0])
