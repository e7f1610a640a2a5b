"""What the reactor still does wrong under a fault, each with the defect: such runs may fail, and say so.

The same defects stand in docs/promises.md. A run that passes although it stands here shows as XPASS: then its line is
removed.
"""

from __future__ import annotations

from collections.abc import Mapping

_NOT_PROVEN = "broken before executors asked, and standstills were noticed; kept since, but in few runs"
_LOADED = "broken once on a machine with a load of 24, kept on a quiet one"
_SLOW = "an API server that does not answer: what is decided before it answers is written late, or no longer right"

OPEN: Mapping[str, str] = {
    "kill:executor": _NOT_PROVEN,
    "kill:any": _NOT_PROVEN,
    "rolling-restart": _NOT_PROVEN,
    "nats:freeze": _NOT_PROVEN,
    "pause:2-leases": _NOT_PROVEN,
    "outage:suspended": _NOT_PROVEN,
    "outage:all-down": _NOT_PROVEN,
    "outage:api-away": _NOT_PROVEN,
    "kill:decider": _LOADED,
    "pause:5-leases": _LOADED,
    "nats:disk-full": _LOADED,
    "api:hangs": _SLOW,
    "outage:reactors-killed": "routes whose source tells by the bus are acted on 5 to 13 s after the reactors run",
    "outage:prometheus-killed": "a confirming query right after the start of Prometheus may show samples from before",
    "outage:disk-full": "the harness loses its own connection to the bus",
}
"""Fault: the open defect."""
