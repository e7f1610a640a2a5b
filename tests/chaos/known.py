"""Under which faults an act may still come later than promised, with the reason.

Only that: what is early, needless, blind or doubled fails under every fault. The same stand in docs/promises.md. A
line whose fault is kept in all runs is removed.
"""

from __future__ import annotations

from collections.abc import Mapping

_LOADED = "late once on a machine with a load of 24, kept on a quiet one"

LATE: Mapping[str, str] = {
    "pause:5-leases": _LOADED,
    "nats:disk-full": _LOADED,
    "api:hangs": "an API server that does not answer: what is decided before it answers is written late",
}
"""Fault: why."""
