"""Readiness of a cluster: reading of its health endpoints, damping of the answer, and the age at which it is Unknown.

The rules are Karmada's (pkg/controllers/status/cluster_status_controller.go, cluster_condition_cache.go and
pkg/controllers/cluster/cluster_controller.go), with its three words said as ours: Ready True is Healthy, False is
Unhealthy, Unknown is Unknown. Moments are seconds on any one clock.
"""

from __future__ import annotations

from typing import NamedTuple

from bus.messages import Health

OK, NOT_FOUND, REFUSED_FROM = 200, 404, 400


class HealthReading(NamedTuple):
    """Result of one look at an API server's health endpoints."""

    online: bool
    """True if it was reached."""
    healthy: bool
    """True if it reports that it is ready."""


class HealthSample(NamedTuple):
    """The newest reading, and since when all readings have been the same."""

    status: Health
    since: float


def probe_reading(readyz: int | None, healthz: int | None = None) -> HealthReading:
    """Read the HTTP status of `/readyz`, and that of `/healthz` where readyz answered 404; None is no answer.

    A status of 400 or more counts as not reached: a proxy before a dead server answers like that. Reached and not ready
    is only an odd success such as 202.
    """
    status = healthz if readyz == NOT_FOUND else readyz
    online = status is not None and status < REFUSED_FROM
    return HealthReading(online, healthy=online and status == OK)


def damped(
    observed: Health,
    before: HealthSample | None,
    current: Health | None,
    now: float,
    *,
    failure_seconds: float,
    success_seconds: float,
) -> tuple[Health, HealthSample]:
    """Give the status to publish, and the sample to remember, from a reading and from what is published now.

    Only the step between Healthy and not Healthy waits, for the threshold of the side that was observed; a sample
    exactly as old as the threshold is old enough. The first reading of all is taken as it is.
    """
    sample = before if before is not None and before.status is observed else HealthSample(observed, now)
    threshold = success_seconds if observed is Health.HEALTHY else failure_seconds
    young = now - sample.since < threshold
    if before is None or current is None or not young:
        return observed, sample
    steps_over = (observed is Health.HEALTHY) is not (current is Health.HEALTHY)
    return (current if steps_over else observed), sample


def heartbeat(
    current: Health | None,
    *,
    first_seen: float,
    last_beat: float | None,
    now: float,
    grace_seconds: float,
    startup_grace_seconds: float,
) -> Health | None:
    """Give the status of one whose heartbeats are watched; None: it was never observed, and has time left.

    Silence longer than the grace is Unknown; exactly as long is not yet. One that has never reported has the startup
    grace, from when it was first seen or from its last beat.
    """
    grace = startup_grace_seconds if current is None else grace_seconds
    silent = now - (first_seen if last_beat is None else last_beat)
    return Health.UNKNOWN if silent > grace else current
