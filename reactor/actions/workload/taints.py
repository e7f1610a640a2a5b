"""SetTaints on plain clusters: they have no object of their own, so their taints live on the bus."""

from __future__ import annotations

from bus.messages import Outcome, SetTaints
from reactor.actions.workload.reports import Report, enforced, outcome
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError


def carry_out(action: SetTaints, clock: Clock) -> Outcome:
    """Give the outcome: Done, for nothing outside the bus changes. The rule's kind publishes `ClusterTaints`."""
    try:
        enforced(action)
    except ReactorError as error:
        return outcome(action, clock, [Report("", [], error)])
    return outcome(action, clock, [Report(action.cluster)])
