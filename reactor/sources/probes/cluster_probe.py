"""ClusterProbe: does a cluster's API server say that it is ready?

    - {name: api, kind: ClusterProbe, cluster: member1}      # target: cluster/{cluster}

One reading asks `/readyz`, and `/healthz` of servers that are too old for it; four tries, 500 ms apart and each with
what is left of two seconds, have to fail before the reading has. The answer turns only after readings that agreed for
`failureSeconds` or `successSeconds`. After a start nothing is remembered: a good reading is believed at once, a bad one
only after `failureSeconds` of bad ones, and until then nothing is said.

Unhealthy is a server that nothing can reach as well as one that says it is not ready: for Karmada, whose rules these
are, both are Ready=False, and the taint is not-ready. Unknown is said where the fault is ours: credentials that are
refused or cannot be read prove that a server answers, and nothing about the cluster; without a file descriptor it was
not asked at all.

What the settings say of the cluster (labels, region, zone, provider) is told as its inventory along with it. How many
replicas it has room for is not: that needs each workload's requests, and is left unknown.
"""

from __future__ import annotations

import asyncio
import errno
from datetime import timedelta
from typing import NamedTuple

from bus.messages import Cluster, Health
from reactor.clients.changes import ReadInterval
from reactor.clients.kubernetes_port import ApiUnavailable
from reactor.clients.watching import WatchApi
from reactor.runtime.errors import SettingsError, Terminal
from reactor.runtime.shortages import SHORTAGES, descriptors_missing
from reactor.sources.publisher import HealthPublisher
from reactor.sources.republisher import Republisher
from reactor.sources.source_context import SourceContext
from reactor.sources.ticker import Ticker
from rules.kinds.cluster_health import NOT_FOUND, OK, HealthSample, damped, probe_reading
from rules.rulefile.sources import ClusterProbe

TRIES = 4  # Karmada: "retry 4 times within 2 seconds"
APART_SECONDS = 0.5
OURS = (401, 403)
"""Answers that are about our credentials, not about the server."""


class ProbeResult(NamedTuple):
    """Result of one try, or of one reading."""

    status: Health
    detail: str


async def run(source: ClusterProbe, world: SourceContext) -> None:
    """Probe until cancelled."""
    api = await world.clusters.get(source.cluster)
    publisher = HealthPublisher(source, world.tell, world.clock, world.on_facts_lost)
    target = publisher.target({"cluster": source.cluster})
    if target is None:
        raise SettingsError(f"source {source.name}: its target takes the label cluster and no other")
    ready = _Ready(source, world, api, publisher, target)
    pace = Ticker(
        world, ready.read, name=source.name, every_seconds=source.every_seconds, timeout_seconds=TRIES * APART_SECONDS
    )
    inventory = Republisher[Cluster](
        world.tell, world.clock, on_facts_lost=world.on_facts_lost, period_seconds=source.refresh_seconds
    )
    await inventory.say(source.cluster, _described(source.cluster, world), changed=True)
    async with asyncio.TaskGroup() as group:
        group.create_task(pace.run())
        group.create_task(publisher.keep(pace.seen, pace.look_again, world.requests))
        group.create_task(inventory.keep(world.clock.now))  # settings, not sight: they hold while the server is away


def _described(name: str, world: SourceContext) -> Cluster:
    said = world.described.get(name)
    if said is None:
        return Cluster(name=name, observed_at=world.clock.now())
    return Cluster(
        name=name, labels=said.labels, region=said.region, zone=said.zone, provider=said.provider,
        observed_at=world.clock.now(),
    )  # fmt: skip


class _Ready:
    """The damped answer of one API server."""

    def __init__(
        self, source: ClusterProbe, world: SourceContext, api: WatchApi, publisher: HealthPublisher, target: str
    ) -> None:
        self._source = source
        self._clock = world.clock
        self._api = api
        self._publisher = publisher
        self._target = target
        self._sample: HealthSample | None = None
        self._said: Health | None = None

    async def read(self, *, extra: bool = False) -> None:
        """Take one reading and say what the thresholds make of it. An extra one only confirms what is said now.

        One during which this process was stopped says nothing.
        """
        began = self._clock.now()
        found = await answer(self._api)
        if (extra and found.status is not self._said) or self._clock.standstill.ended_at > began:
            return
        # It failed with its last try: until then, one good answer would have saved it.
        last = (TRIES - 1) * APART_SECONDS if found.status is Health.UNHEALTHY else 0
        look = ReadInterval(began + timedelta(seconds=last), self._clock.now())
        if found.status is Health.UNKNOWN:
            self._publisher.complain("Forbidden")
        before = self._said
        if before is None and self._is_too_soon(found.status):
            return
        self._said, self._sample = damped(
            found.status, self._sample, before, self._clock.monotonic(),
            failure_seconds=self._source.failure_seconds, success_seconds=self._source.success_seconds,
        )  # fmt: skip
        detail = found.detail
        if self._said is not found.status:
            detail = f"{detail}, for {self._clock.monotonic() - self._sample.since:.0f} s so far"
        await self._publisher.say(
            self._target, self._said, labels={"cluster": self._source.cluster}, detail=detail, look=look,
            resolution_seconds=self._source.every_seconds + TRIES * APART_SECONDS,
        )  # fmt: skip

    def _is_too_soon(self, status: Health) -> bool:
        """True if it is Unhealthy for less than failureSeconds: after a start nothing is said of that yet."""
        now = self._clock.monotonic()
        if self._sample is None or self._sample.status is not status:
            self._sample = HealthSample(status, now)
        return status is Health.UNHEALTHY and now - self._sample.since < self._source.failure_seconds


async def answer(api: WatchApi) -> ProbeResult:
    """Take one reading: the first try that does not fail, else the last that did."""
    found = ProbeResult(Health.UNHEALTHY, f"ClusterNotReachable: no answer within {TRIES * APART_SECONDS:g} s")
    tries = [asyncio.create_task(_tried(api, number)) for number in range(TRIES)]
    try:
        for ended in asyncio.as_completed(tries, timeout=TRIES * APART_SECONDS):
            found = await ended
            if found.status is not Health.UNHEALTHY:
                break
    except TimeoutError:
        pass  # what has not answered by now has not answered: what was found so far counts
    finally:
        for one in tries:
            one.cancel()
        await asyncio.gather(*tries, return_exceptions=True)
    return found


async def _tried(api: WatchApi, number: int) -> ProbeResult:
    await asyncio.sleep(number * APART_SECONDS)
    seconds = (TRIES - number) * APART_SECONDS
    try:
        readyz, healthz = await api.status("/readyz", seconds=seconds), None
        if readyz == NOT_FOUND:
            healthz = await api.status("/healthz", seconds=seconds)
    except ApiUnavailable as error:
        if (lacking := descriptors_missing(error)) is not None:
            return ProbeResult(Health.UNKNOWN, SHORTAGES[lacking.errno or errno.EMFILE])
        return ProbeResult(Health.UNHEALTHY, f"ClusterNotReachable: {error}")
    except Terminal as error:
        return ProbeResult(Health.UNKNOWN, str(error))
    if readyz in OURS:
        return ProbeResult(Health.UNKNOWN, f"/readyz was answered {readyz}: our credentials may not ask it")
    path, status = ("/healthz", healthz) if readyz == NOT_FOUND else ("/readyz", readyz)
    reading = probe_reading(readyz, healthz)
    if reading.healthy:
        return ProbeResult(Health.HEALTHY, f"{path} was answered {OK}")
    reason = "ClusterNotReady" if reading.online else "ClusterNotReachable"
    return ProbeResult(Health.UNHEALTHY, f"{reason}: {path} was answered {status}")
