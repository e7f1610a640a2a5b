"""Copies of unknown health that are waited for, and the time of the next decision."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from bus.messages import Health
from rules.core.reasons import Held
from rules.kinds.workload import copy_backoff
from rules.kinds.workload.eviction import tolerated_until
from rules.kinds.workload.placement_inputs import HoldReason, Inputs
from rules.kinds.workload.state import UNHEARD


def unsure(view: Inputs) -> Iterator[HoldReason]:
    """Copies that may have to move, but their health is unknown."""
    failover = view.policy.failover
    for name, copy in view.state.copies.items():
        cluster = view.clusters.get(name, UNHEARD)
        if failover is None or name in view.state.moves:
            continue
        if failover.cluster is not None and cluster.status is Health.UNKNOWN and not cluster.clocks:
            yield Held.TARGET_UNKNOWN, f"cluster/{name}: its health is not known yet"
        if failover.application is None or copy.bad is None:
            continue
        if copy.bad.waiting_since is not None and copy.bad.healthy_since is None:
            yield Held.TARGET_UNKNOWN, f"{name}: the copy is Unknown, and was bad before"
        until = tolerated_until(view.rule.window, failover.application, copy)
        if not failover.application.decision_conditions.toleration_seconds and until is not None and until > view.now:
            yield Held.BACKING_OFF, copy_backoff.why(name, copy, until)
        if until is not None and until <= view.now and not view.due(name):
            yield Held.PRECONDITIONS_NOT_MET, f"{name}: bad since {copy.bad.since.isoformat()}"


def turns(view: Inputs) -> Iterator[datetime]:
    """Times at which `desire` may change with no new fact: toleration ends, recovery completes."""
    application = view.policy.failover.application if view.policy.failover is not None else None
    for copy in view.state.copies.values():
        if copy.bad is None:
            continue
        if application is not None and (until := tolerated_until(view.rule.window, application, copy)) is not None:
            yield until
        if copy.bad.healthy_since is not None:
            yield copy.bad.healthy_since + view.rule.window(view.rule.recovery_seconds)
