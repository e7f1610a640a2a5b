"""Checks of a ClusterTaint as a whole, beyond those of single fields."""

from __future__ import annotations

from collections.abc import Iterator

from rules.core.errors import Problem
from rules.kinds.cluster_taint.model import ClusterTaint
from rules.rulefile.yaml import Document, Path


def rule(item: ClusterTaint, document: Document, at: Path) -> Iterator[Problem]:
    """Findings about one rule."""
    if not item.match.startswith(("cluster/", "*/", "**")):
        yield document.problem((*at, "match"), "only clusters have taints: must begin with cluster/")
    seen = [(taint.key, taint.effect) for taint in item.taints]
    for index, taint in enumerate(item.taints):
        if (taint.key, taint.effect) in seen[index + 1 :]:
            yield document.problem((*at, "taints", index), f"{taint.key}:{taint.effect} is given twice")
