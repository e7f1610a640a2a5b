"""Widespread outage: so many clusters are bad at once that the view may be wrong, and its time does not count.

The guards let no workload leave while it lasts. When it ends, clusters return one after the other, and the first would
let the workloads of all others go at once: their tolerations are long over by then. So what was tolerated in an outage
is not counted, and after one of all clusters nothing that was tolerated before it is, either. Source: Kubernetes
pkg/controller/nodelifecycle, handleDisruption: on leaving full disruption all timers begin again. It does so for full
disruption only, and there a zone that is merely disrupted goes on slowly.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from bus.messages import Health
from rules.core.timers import Stopwatch
from rules.core.values import replace
from rules.kinds.workload.model import WorkloadFailover
from rules.kinds.workload.state import ClusterState, Outage
from rules.limits.limiters import CLUSTERS, CLUSTERS_MIN
from rules.limits.rates import PeerHealth, widespread
from rules.rulefile.guards import Guards


def assess(
    rule: WorkloadFailover, outage: Outage | None, clusters: Mapping[str, ClusterState], at: datetime
) -> tuple[Outage | None, Mapping[str, ClusterState]]:
    """Give the outage that goes on now, and the clusters: where one has just ended, with less on their clocks."""
    peers = PeerHealth(
        sum(not one.gone for one in clusters.values()),
        sum(not one.gone and one.status not in (None, Health.HEALTHY) for one in clusters.values()),
    )
    # As with the guard: of one or two clusters it cannot be told which is to blame.
    whole = peers.total >= CLUSTERS_MIN and peers.good == 0
    if whole or _too_many(rule.guards, peers):
        since = outage.since if outage is not None else at
        return Outage(since, whole or (outage is not None and outage.whole)), clusters
    if outage is None:
        return None, clusters
    return None, {name: replace(one, clocks=_less(one.clocks, outage, at)) for name, one in clusters.items()}


def _too_many(guards: Guards | None, peers: PeerHealth) -> bool:
    """By the rule's own limit where it counts clusters, else by the default one."""
    own = guards is not None and (guards.max_unhealthy is not None or guards.min_healthy is not None)
    if guards is not None and own and guards.peers in (None, CLUSTERS.peers):
        return widespread(guards, peers) is not None
    return peers.total >= CLUSTERS_MIN and widespread(CLUSTERS, peers) is not None


def _less(clocks: Mapping[str, Stopwatch], outage: Outage, at: datetime) -> Mapping[str, Stopwatch]:
    return {key: _without(clock, outage, at) for key, clock in clocks.items()}


def _without(clock: Stopwatch, outage: Outage, at: datetime) -> Stopwatch:
    """Give the clock without the time that it ran during the outage; it did not run while it waited."""
    until = min(at, clock.waiting_since or at)
    began = clock.since if outage.whole else max(clock.since, outage.since)
    return replace(clock, since=clock.since + (until - began)) if until > began else clock
