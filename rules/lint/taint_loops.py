"""Signals that put taints on clusters, beside rules that go by the health of the same clusters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rules.core.errors import Problem
from rules.kinds.cluster_taint.model import ClusterTaint
from rules.kinds.workload.model import WorkloadFailover
from rules.rulefile.yaml import Document, Path

if TYPE_CHECKING:
    from rules.rulefile.model import Rule


def signals(rules: Sequence[tuple[Rule, Document, Path]]) -> Iterator[Problem]:
    """Say of each taint rule which workloads do not go by its signals."""
    moving = [rule.name for rule, _, _ in rules if isinstance(rule, WorkloadFailover) and rule.signals is None]
    for rule, document, at in rules:
        if moving and isinstance(rule, ClusterTaint) and rule.signals is not None:
            message = (
                f"{', '.join(rule.signals)} puts taints on {rule.match}, and is no word about the cluster's own health "
                f"for {', '.join(moving[:3])}{', …' if moving[3:] else ''}: list it in their signals where it should be"
            )
            yield document.problem((*at, "signals"), message, severity="hint", hint="taint-signal")
