"""Label and field selectors: which objects a list, a watch or a disruption budget means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reactor.demo.kube.errors import bad_request
from reactor.demo.kube.objects import JsonObject, lookup
from reactor.demo.kube.resources import Resource

_BETWEEN_TERMS = re.compile(r",(?![^()]*\))")  # commas inside `in (a,b)` part values, not terms
_SET_TERM = re.compile(r"([^\s!=<>,()]+)\s+(in|notin)\s*\(([^()]*)\)")
_EQUAL_TERM = re.compile(r"([^\s!=<>,()]+)\s*(==|=|!=)\s*([^\s!=<>,()]*)")
_EXISTS_TERM = re.compile(r"(!?)\s*([^\s!=<>,()]+)")


@dataclass(frozen=True, slots=True)
class Term:
    """One condition: the value of `name` is (or is not, when `negated`) among `values`; None means any value."""

    name: str
    values: frozenset[str] | None
    negated: bool = False

    def holds(self, actual: str | None) -> bool:
        # `!=` and `notin` also select objects that lack the label: upstream, and often a surprise.
        found = actual is not None if self.values is None else actual in self.values
        return found is not self.negated


@dataclass(frozen=True, slots=True)
class Filter:
    """Everything that narrows a list or a watch."""

    namespace: str = ""
    name: str = ""
    labels: tuple[Term, ...] = ()
    fields: tuple[Term, ...] = ()

    def matches(self, value: JsonObject) -> bool:
        metadata = value["metadata"]
        if self.namespace and metadata.get("namespace") != self.namespace:
            return False
        if self.name and metadata["name"] != self.name:
            return False
        if self.labels:
            labels = metadata.get("labels") or {}
            for term in self.labels:
                if not term.holds(labels.get(term.name)):
                    return False
        return not self.fields or all(term.holds(_field(value, term.name)) for term in self.fields)


def _field(value: JsonObject, name: str) -> str:
    found = lookup(value, name.split("."))
    if isinstance(found, bool):
        return "true" if found else "false"
    return "" if found is None else str(found)


def parse_labels(text: str) -> tuple[Term, ...]:
    """Read `app=shop,tier in (a,b),!canary`; 400 for anything else."""
    return tuple(_label_term(part.strip()) for part in _BETWEEN_TERMS.split(text) if part.strip())


def _label_term(text: str) -> Term:
    if found := _SET_TERM.fullmatch(text):
        values = frozenset(value.strip() for value in found[3].split(","))
        return Term(found[1], values, negated=found[2] == "notin")
    if found := _EQUAL_TERM.fullmatch(text):
        return Term(found[1], frozenset((found[3],)), negated=found[2] == "!=")
    if found := _EXISTS_TERM.fullmatch(text):
        return Term(found[2], None, negated=found[1] == "!")
    raise bad_request(f"unable to parse requirement: found '{text}', expected: a label selector")


def parse_fields(text: str, resource: Resource) -> tuple[Term, ...]:
    """Read `metadata.name=x,status.phase!=Running`; 400 for a field this kind cannot be selected by."""
    known = {"metadata.name", "metadata.namespace", *resource.fields}
    terms = []
    for part in filter(None, text.split(",")):
        found = _EQUAL_TERM.fullmatch(part.strip())
        if found is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        if found[1] not in known:
            # Upstream has two sentences for this, and the kind decides which.
            if resource.fields:
                raise bad_request(f"field label not supported: {found[1]}")
            raise bad_request(f'"{found[1]}" is not a known field selector: only "metadata.name", "metadata.namespace"')
        terms.append(Term(found[1], frozenset((found[3],)), negated=found[2] == "!="))
    return tuple(terms)


def parse_filter(resource: Resource, namespace: str, name: str, query: Mapping[str, str]) -> Filter:
    """Read what a request narrows its list or watch to."""
    labels = parse_labels(query.get("labelSelector", ""))
    return Filter(namespace, name, labels, parse_fields(query.get("fieldSelector", ""), resource))


def selects(selector: JsonObject | None, labels: Mapping[str, str]) -> bool:
    """Tell whether a `metav1.LabelSelector` object selects these labels; an empty one selects all, None nothing."""
    if selector is None:
        return False
    if any(labels.get(name) != value for name, value in (selector.get("matchLabels") or {}).items()):
        return False
    expressions: Sequence[Mapping[str, Any]] = selector.get("matchExpressions") or ()
    return all(_expression(one).holds(labels.get(one["key"])) for one in expressions)


def _expression(expression: Mapping[str, Any]) -> Term:
    operator = expression["operator"]
    if operator in ("Exists", "DoesNotExist"):
        return Term(expression["key"], None, negated=operator == "DoesNotExist")
    return Term(expression["key"], frozenset(expression.get("values") or ()), negated=operator == "NotIn")
