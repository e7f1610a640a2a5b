"""Bodies of Alertmanager's webhook, with times around now: what a test posts itself."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from reactor.runtime.clock import Clock

NEVER = "0001-01-01T00:00:00Z"
"""Go's zero time: how a firing alert says that it has no end."""
_clock = Clock()


def ago(seconds: float) -> str:
    """Give the moment so long before now, as Alertmanager writes it."""
    return _text(_clock.now() - timedelta(seconds=seconds))


def firing(service: str, *, since: float = 1, **more: Any) -> dict[str, Any]:
    """An alert that fires, since so many seconds."""
    labels = {"alertname": "ShopDown", "service": service, "severity": "critical"}
    fingerprint = hashlib.sha256(service.encode()).hexdigest()[:16]
    return {
        "status": "firing", "labels": labels, "annotations": {"summary": f"{service} is down"},
        "startsAt": ago(since), "endsAt": NEVER, "generatorURL": "http://prometheus.invalid/graph",
        "fingerprint": fingerprint, **more,
    }  # fmt: skip


def resolved(service: str, *, since: float = 60, ended: float = 0, **more: Any) -> dict[str, Any]:
    """An alert that ended so many seconds ago."""
    return firing(service, since=since) | {"status": "resolved", "endsAt": ago(ended), **more}


def body(*alerts: object, **keys: Any) -> bytes:
    """A whole body; the group is firing, as it is if any of its alerts fires."""
    top = {
        "version": "4", "groupKey": '{}:{alertname="ShopDown"}', "truncatedAlerts": 0, "status": "firing",
        "receiver": "reactor", "groupLabels": {}, "commonLabels": {}, "commonAnnotations": {},
        "externalURL": "http://am-0.invalid:9093", "alerts": list(alerts),
    }  # fmt: skip
    return json.dumps(top | keys).encode()


def parsed(text: str) -> datetime:
    """Read a moment as Alertmanager writes it."""
    return datetime.fromisoformat(text).astimezone(UTC)


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
