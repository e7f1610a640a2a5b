"""Findings about PromQL: what cannot be read, and targets made of labels that the result cannot have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rules.core.errors import Problem
from rules.rulefile.sources import AlertmanagerWebhook, PrometheusQuery
from rules.rulefile.targets import check_template
from rules.rulefile.yaml import Document, Path

if TYPE_CHECKING:
    from rules.rulefile.sources import LoadedSource


def source(item: LoadedSource, document: Document, at: Path) -> Iterator[Problem]:
    """Findings about one source."""
    if isinstance(item, AlertmanagerWebhook) and item.confirm is not None:
        yield from query(item.confirm.query, document, (*at, "confirm", "query"))
    if not isinstance(item, PrometheusQuery):
        return
    from rules.rulefile.promql_tree import read_promql  # 2 MB of parser: only for who has queries

    yield from query(item.query, document, (*at, "query"))
    labels = read_promql(item.query).labels
    if item.unhealthy_when != "Absent" and (missing := sorted(
        name for name in check_template(item.target) if not labels.may_have(name)
    )):  # fmt: skip
        has = ", ".join(sorted(labels.names)) or "none"
        what = "has all labels but" if labels.all_but else "has only the labels"
        message = f"takes {{{missing[0]}}}, which no series has: the result of the query {what} {has}"
        yield document.problem((*at, "target"), message)


def query(text: str, document: Document, at: Path) -> Iterator[Problem]:
    """Findings about one expression. A function that is not known here may be one of another version."""
    from rules.rulefile.promql_tree import read_promql

    found = read_promql(text)
    if found.function:
        message = f"Prometheus 3 has no function {found.function!r}: a slip, or is the server another one?"
        yield document.problem(at, message, severity="warning")
    elif found.problem:
        yield document.problem(at, f"no PromQL: {found.problem}")
