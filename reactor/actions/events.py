"""The Kubernetes Event on a route whose weights we moved: what `kubectl describe` shows as the reason.

Written only after the write it tells of, and never a reason for an action to fail.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from prometheus_client import Counter

from reactor.actions.guarded import connection_of
from reactor.actions.outcomes import reason_of
from reactor.clients.kubernetes_port import Conflict, JsonObject, KubeApi, NotFound
from reactor.runtime.errors import ReactorError
from reactor.runtime.telemetry import REGISTRY
from rules.core.reasons import Because

CONTROLLER = "alert-reactor"
EVENT_SECONDS = 2.0
"""Seconds that telling may take: the next action waits for this one's place."""
_NOTE_BYTES_MAX = 1024  # events.k8s.io/v1 refuses a longer note
_INSTANCE_MAX = 128  # and a longer reportingInstance

_log = logging.getLogger(__name__)
untold = Counter(
    "reactor_kubernetes_event_failures", "Kubernetes Events that could not be written.", ["reason"], registry=REGISTRY
)

REASONS: Mapping[str, str] = {
    Because.PRIMARY_UNHEALTHY: "Failover",
    Because.PRIMARY_HEALTHY: "Failback",
    Because.RETURNING: "Failback",
    Because.SECONDARIES_CHANGED: "Redistribute",
}
"""linkerd-failover's word for what it does, and the field's for the way back; else the rule's own reason."""


@dataclass(frozen=True, slots=True)
class News:
    """Event about one write."""

    id: str
    """Id of the action. The event's name follows from it, so that a repeat is no second event."""
    reason: str
    note: str
    at: datetime
    instance: str
    """Name of the process that wrote."""

    def name(self, route: str) -> str:
        """Give a name that is legal and always the same."""
        return f"{route[:200].rstrip('.-')}.{hashlib.sha256(self.id.encode()).hexdigest()[:16]}"

    @property
    def text(self) -> str:
        """The note, cut to what the API takes."""
        return self.note.encode()[:_NOTE_BYTES_MAX].decode(errors="ignore")


async def tell(api: KubeApi, obj: JsonObject, news: News) -> None:
    """Write the event beside its object; a failure is counted and logged."""
    api = connection_of(api)  # it tells of a write that was made, so nothing more is asked
    namespace = obj["metadata"]["namespace"]
    try:
        async with asyncio.timeout(EVENT_SECONDS):
            try:
                await api.create(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", _event(obj, news))
            except NotFound:  # Kubernetes before 1.19
                await api.create(f"/api/v1/namespaces/{namespace}/events", _core_event(obj, news))
    except Conflict:
        return  # already told: the same action was carried out twice
    except (ReactorError, TimeoutError) as error:
        reason = reason_of(error) if isinstance(error, ReactorError) else "ApiUnavailable"
        untold.labels(reason).inc()
        words = str(error) or f"no answer within {EVENT_SECONDS:g} s"
        _log.warning("no Kubernetes Event: %s", words, extra={"cluster": api.cluster, "reason": reason})


def _event(obj: JsonObject, news: News) -> JsonObject:
    return {
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": _metadata(obj, news),
        "eventTime": news.at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"), "type": "Normal", "reason": news.reason,
        "action": "SetWeights", "note": news.text, "regarding": _reference(obj),
        "reportingController": CONTROLLER, "reportingInstance": news.instance[:_INSTANCE_MAX],
    }  # fmt: skip


def _core_event(obj: JsonObject, news: News) -> JsonObject:
    at = news.at.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1", "kind": "Event", "metadata": _metadata(obj, news), "type": "Normal",
        "reason": news.reason, "message": news.text, "involvedObject": _reference(obj),
        "firstTimestamp": at, "lastTimestamp": at, "count": 1,
        "source": {"component": CONTROLLER, "host": news.instance[:_INSTANCE_MAX]},
        "reportingComponent": CONTROLLER, "reportingInstance": news.instance[:_INSTANCE_MAX],
    }  # fmt: skip


def _metadata(obj: JsonObject, news: News) -> JsonObject:
    return {"name": news.name(obj["metadata"]["name"]), "namespace": obj["metadata"]["namespace"]}


def _reference(obj: JsonObject) -> JsonObject:
    metadata = obj["metadata"]
    known = {field: metadata[field] for field in ("namespace", "name", "uid", "resourceVersion") if field in metadata}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], **known}
