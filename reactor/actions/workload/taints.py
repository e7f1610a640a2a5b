"""SetTaints on plain clusters: they have no object of their own, so their taints live on the bus."""

from __future__ import annotations

from bus.messages import ClusterTaints, Outcome, SetTaints
from reactor.actions.workload.reports import Report, enforced, outcome
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError


def carry_out(action: SetTaints, clock: Clock) -> Outcome:
    """Give the outcome: Done, because nothing outside the bus has to change. The executor publishes `fact_of` first."""
    try:
        enforced(action)
    except ReactorError as error:
        return outcome(action, clock, [Report("", [], error)])
    return outcome(action, clock, [Report(action.cluster)])


def fact_of(action: SetTaints) -> ClusterTaints:
    """Give what is to be remembered: all taints of the rule on this cluster, since the moment of the decision.

    That moment and not the present one: the same action carried out again must give the same fact.
    """
    since = action.decided_at
    dated = (one if one.time_added else one.model_copy(update={"time_added": since}) for one in action.taints)
    return ClusterTaints(cluster=action.cluster, rule=action.rule, taints=tuple(dated), observed_at=since)
