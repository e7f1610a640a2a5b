"""Premises of taints: a cluster that gets some is bad, and one that loses them is healthy."""

from __future__ import annotations

from collections.abc import Iterator

from bus.messages import Action, SetTaints
from rules.core.premises import Alternatives, DecisionContext, Premise
from rules.kinds.cluster_taint.model import ClusterTaint
from rules.kinds.cluster_taint.state import TaintState
from rules.rulefile.model import UnknownAs


def premises(rule: ClusterTaint, action: Action, _context: DecisionContext[TaintState]) -> Iterator[Alternatives]:
    """Give what the taints rest on: without them the cluster is open to copies again, so that needs its health too."""
    if not isinstance(action, SetTaints):
        return
    target = f"cluster/{action.cluster}"
    if not action.taints:
        yield (Premise(target, healthy=True, signals=rule.signals),)
        return
    bad = rule.treat_unknown_as is UnknownAs.UNHEALTHY
    tolerated = rule.window(rule.toleration_seconds)
    yield (Premise(target, healthy=False, unknown=bad, silence=bad, signals=rule.signals, toleration=tolerated),)
