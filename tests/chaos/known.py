"""Under which faults an act may still come later than promised, with the reason.

Only that: what is early, needless, blind or doubled fails under every fault. The same stand in docs/promises.md. A
line whose fault is kept in all runs is removed.
"""

from __future__ import annotations

from collections.abc import Mapping

_FEW_RUNS = "late before executors asked, and standstills were noticed; kept since, but in few runs"
_LOADED = "late once on a machine with a load of 24, kept on a quiet one"

LATE: Mapping[str, str] = {
    "outage:suspended": _FEW_RUNS,
    "outage:all-down": _FEW_RUNS,
    "outage:api-away": _FEW_RUNS,
    "outage:frozen": "13.2 s once, before the lease was 6 s",
    "pause:5-leases": _LOADED,
    "nats:disk-full": _LOADED,
    "api:hangs": "an API server that does not answer: what is decided before it answers is written late",
    "outage:disk-full": "the harness loses its own connection to the bus",
}
"""Fault: why."""
