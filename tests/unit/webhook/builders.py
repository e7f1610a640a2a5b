"""Alerts, posts and keepers for tests. Time is said in seconds from zero."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from bus.errors import Unavailable
from bus.messages import Observation, WebhookPost
from bus.testing.memory import MemoryBus
from bus.topology import ALERTS
from reactor.alerts.lifecycle import AlertLifecycle
from reactor.alerts.states import AlertOpinion
from reactor.runtime.errors import Retryable
from reactor.runtime.telemetry import REGISTRY
from rules.rulefile.sources import AlertmanagerWebhook
from tests.clock import HandClock

ZERO = datetime(2026, 1, 1, tzinfo=UTC)
NEVER = "0001-01-01T00:00:00Z"
SHOP = AlertOpinion("am", "am", "service/east/shop/checkout")


def moment(seconds: float) -> datetime:
    return ZERO + timedelta(seconds=seconds)


def alert(
    fingerprint: str = "f1", *, firing: bool = True, starts: float = 0, ends: float | None = None, **labels: str
) -> dict[str, Any]:
    """One alert as Alertmanager 0.25 posts it."""
    return {
        "status": "firing" if firing else "resolved",
        "labels": {"alertname": "Down", "service": "checkout", **labels},
        "annotations": {"summary": "checkout is down"},
        "startsAt": moment(starts).isoformat().replace("+00:00", "Z"),
        "endsAt": NEVER if ends is None else moment(ends).isoformat().replace("+00:00", "Z"),
        "generatorURL": "http://prometheus/graph?g0.expr=up",
        "fingerprint": fingerprint,
    }


def labelled(labels: dict[str, str], fingerprint: str = "f1") -> dict[str, Any]:
    """A firing alert with these labels besides its own."""
    raw = alert(fingerprint)
    return raw | {"labels": raw["labels"] | labels}


def resolved(fingerprint: str = "f1", *, starts: float = 0, ends: float = 100, **labels: str) -> dict[str, Any]:
    return alert(fingerprint, firing=False, starts=starts, ends=ends, **labels)


def body(*alerts: Any, **keys: Any) -> bytes:
    """A whole body; the group is firing if any of its alerts is."""
    top = {
        "version": "4", "groupKey": '{}:{alertname="Down"}', "truncatedAlerts": 0, "status": "firing",
        "receiver": r"team\.ops", "groupLabels": {}, "commonLabels": {}, "commonAnnotations": {},
        "externalURL": "http://am-0:9093", "alerts": list(alerts),
    }  # fmt: skip
    return json.dumps(top | keys).encode()


def source(name: str = "am", **keys: Any) -> AlertmanagerWebhook:
    return AlertmanagerWebhook.model_validate(
        {"kind": "AlertmanagerWebhook", "name": name, "target": "service/east/shop/{service}"} | keys
    )


CONFIRM = {"prometheus": "main", "query": "up == 1", "everySeconds": 15}


class Api:
    """An Alertmanager's API that lists what it is told to."""

    def __init__(self) -> None:
        self.listed: list[dict[str, Any]] = []
        self.up = True
        self.polls = 0

    def lists(self, *alerts: dict[str, Any], state: str = "active", updated: float | None = None) -> None:
        for one in alerts:
            more = {} if updated is None else {"updatedAt": moment(updated).isoformat()}
            self.listed.append(one | {"status": {"state": state}, "endsAt": "2036-01-01T00:00:00Z", **more})

    async def alerts(self) -> Sequence[Mapping[str, Any]]:
        self.polls += 1
        await asyncio.sleep(0)
        if not self.up:
            raise Retryable("connection refused")
        return self.listed


class World:
    """A bus, a clock, a Prometheus and Alertmanagers, and what keepers have told."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.bus = MemoryBus(self.clock.now)
        self.told: list[Observation] = []
        self.series: list[dict[str, str]] | None = []
        """Series that Prometheus gives; None: it does not answer."""
        self.queries: list[tuple[str, str]] = []
        self.apis: dict[str, Api] = {}
        self.receiving_since: datetime | None = None
        """Since when receivers have taken each POST; None: not known."""
        self.away = False
        """The bus does not answer who asks for that."""
        self.slow = False
        """The bus takes some turns of the loop for what it is told of the service `cart`."""

    async def tell(self, observations: Sequence[Observation]) -> None:
        for _ in range(20 if self.slow and any(said.target.endswith("/cart") for said in observations) else 0):
            await asyncio.sleep(0)
        self.told.extend(observations)

    async def query(self, endpoint: str, promql: str) -> list[dict[str, str]]:
        self.queries.append((endpoint, promql))
        if self.series is None:
            raise Retryable("connection refused")
        return self.series

    @asynccontextmanager
    async def lifecycle(self, *sources: AlertmanagerWebhook) -> AsyncIterator[AlertLifecycle]:
        async with AlertLifecycle(
            sources=sources or [source()], store=self.bus.store(ALERTS), clock=self.clock, tell=self.tell,
            query=self.query, alertmanagers=self.apis, receiving_since=self._receiving_since,
        ) as lifecycle:  # fmt: skip
            yield lifecycle

    async def _receiving_since(self) -> datetime | None:
        if self.away:
            raise Unavailable("no answer")
        return self.receiving_since

    async def post(
        self, lifecycle: AlertLifecycle, *alerts: dict[str, Any], at: float | None = None, to: str = "am"
    ) -> None:
        """Give a journaled post to a keeper, received `at`, or now."""
        if at is not None and at > self.clock.seconds:
            self.clock.seconds = at
        received = self.clock.now() if at is None else moment(at)
        await lifecycle.take_post(WebhookPost(source=to, post="0" * 64, alerts=alerts, observed_at=received))

    async def pass_time(self, lifecycle: AlertLifecycle, until: float, *, step: float = 1) -> None:
        """Sweep every `step` seconds until then."""
        while self.clock.seconds < until:
            self.clock.seconds = min(until, self.clock.seconds + step)
            await lifecycle.sweep()

    def statuses(self) -> list[str]:
        """Reported statuses, without repetitions."""
        said = [f"{one.status}{' resolved' if one.resolved else ''}" for one in self.told]
        return [word for index, word in enumerate(said) if index == 0 or said[index - 1] != word]

    def last(self) -> str:
        return self.statuses()[-1] if self.told else ""


def counted(metric: str, **labels: str) -> float:
    """A counter's value; tests compare before and after."""
    return REGISTRY.get_sample_value(metric, labels) or 0.0
