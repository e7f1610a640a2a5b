"""WorkloadWatch: the health of workloads by what their objects say, and which copies there are.

    - name: workloads
      kind: WorkloadWatch
      cluster: member1
      namespace: default                     # default: all
      kinds: [Deployment, {apiVersion: flink.apache.org/v1beta1, kind: FlinkDeployment}]
      selector: app=nginx                    # default: all
      # target: workload/{cluster}/{namespace}/{kind}/{name}; labels of the object may be used as well
      # health: {lua: …} or {cel: …} instead of the built-in rules, where the settings' healthScripts allow it

One watch for each kind: one that is lost, or whose kind is not served, silences no other. Nothing is said before the
whole list has been read and nothing is repeated while the watch is lost: its targets are Unknown after `staleSeconds`.
The health of an object that is deleted is Unknown, said once: whether that is a failure is for rules to know, which
get the copy that is gone. So is a copy that is asked for, and of which the server says that there is none. Several
objects of one target, of whatever kinds: the worst speaks, and while the watch of one of them is lost nothing better
than Unhealthy is said. A target that no object makes any more, as a label has changed, is Unknown, said once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Any

from bus.messages import Health, WorkloadCopy
from reactor.actions.workload.copy_record import record_of
from reactor.clients.changes import (
    ChangeType,
    ObjectChange,
    ObjectKey,
    key_of,
    metadata_of,
    state_of_objects,
    strings_of,
)
from reactor.clients.kubernetes_port import JsonObject
from reactor.clients.reflector import Reflector
from reactor.clients.watching import WatchApi
from reactor.runtime.errors import SettingsError
from reactor.sources.aggregator import TargetAggregator
from reactor.sources.kubernetes.absent_copies import AbsentCopies
from reactor.sources.kubernetes.endpoints_watch import collection
from reactor.sources.kubernetes.retrying import retry_forever
from reactor.sources.kubernetes.scripts import Script
from reactor.sources.kubernetes.workload_health import HealthVerdict, judge
from reactor.sources.kubernetes.workload_kinds import ServedKind, served_kind
from reactor.sources.publisher import HealthPublisher
from reactor.sources.republisher import Republisher, gather
from reactor.sources.source_context import SourceContext
from rules.kinds.workload.preservation import state_of
from rules.rulefile.sources import CustomKind, WorkloadWatch

Judge = Callable[[JsonObject], HealthVerdict | Awaitable[HealthVerdict]]
REPLICAS_MAX = 1_000_000  # what a message takes


async def run(source: WorkloadWatch, world: SourceContext) -> None:
    """Watch until cancelled."""
    async with _script(source, world) as script:
        api = await world.clusters.get(source.cluster)
        opinions = Opinions(source, world)
        async with asyncio.TaskGroup() as group:
            absent = AbsentCopies(source, api, opinions.watches, opinions.say_gone)
            group.create_task(opinions.aggregator.keep(opinions.look_again, world.requests, absent.ask))
            group.create_task(absent.run())
            for kind in source.kinds:
                group.create_task(_watch(source, world, api, kind, script, opinions))


@asynccontextmanager
async def _script(source: WorkloadWatch, world: SourceContext) -> AsyncIterator[Judge | None]:
    """Give the source's own judge. Raises SettingsError where it may not run, or cannot."""
    if source.health is None:
        yield None
        return
    language = "lua" if source.health.lua is not None else "cel"
    if language not in world.health_scripts:
        raise SettingsError(
            f"source {source.name}: health.{language} runs a program of the rule file, and the settings do not allow "
            f"it: add {language} to healthScripts, or remove it from the rule file"
        )
    async with Script(source.name, language, source.health.lua or source.health.cel or "") as script:
        yield script.judge


async def _watch(
    source: WorkloadWatch,
    world: SourceContext,
    api: WatchApi,
    kind: str | CustomKind,
    script: Judge | None,
    opinions: Opinions,
) -> None:
    name = kind if isinstance(kind, str) else f"{kind.api_version} {kind.kind}"
    served = await retry_forever(
        partial(served_kind, api, kind), world.clock, source=source.name, what="kind of workload",
        where={"cluster": source.cluster, "kind": name},
    )  # fmt: skip
    await WorkloadWatcher(source, world, api, served, script, opinions=opinions).run()


class Opinions:
    """Publishes the health of all kinds of one source: objects of several kinds may make one target."""

    def __init__(self, source: WorkloadWatch, world: SourceContext) -> None:
        self.publisher = HealthPublisher(source, world.tell, world.clock, world.on_facts_lost)
        self.watches: dict[ServedKind, Reflector] = {}
        self.watchers: dict[ServedKind, WorkloadWatcher] = {}
        self.aggregator: TargetAggregator[tuple[ServedKind, ObjectKey]] = TargetAggregator(
            self.publisher,
            world.clock,
            lambda one: self.watches[one[0]].seen_of(one[1]),
            lambda one: self.watches[one[0]].proven_of(one[1]),
            doubted=lambda one: one[1] in self.watches[one[0]].doubted,
        )

    async def say_gone(self, kind: ServedKind, key: ObjectKey, target: str) -> None:
        """Tell of an object that was removed while nothing watched it."""
        await gather(
            [
                self.watchers[kind].say_gone(key),
                self.publisher.say_once(target, Health.UNKNOWN, detail=f"the {kind.kind} is gone", gone=True),
            ]
        )

    def look_again(self, not_before: datetime) -> None:
        """Have all kinds listed: any of them may make the targets."""
        for watch in self.watches.values():
            watch.look_again(not_before)


class WorkloadWatcher:
    """The objects of one kind."""

    def __init__(
        self,
        source: WorkloadWatch,
        world: SourceContext,
        api: WatchApi,
        kind: ServedKind,
        script: Judge | None = None,
        *,
        opinions: Opinions,
    ) -> None:
        self._source = source
        self._clock = world.clock
        self._kind = kind
        self._preserved = sorted(world.preserved)
        self._judge = script or partial(judge, kind.group, kind.kind)
        self._opinions = opinions
        self.copies: Republisher[WorkloadCopy] = Republisher(
            world.tell, world.clock, on_facts_lost=world.on_facts_lost, period_seconds=source.refresh_seconds
        )
        namespace = source.namespace if kind.namespaced else None
        self.objects = Reflector(
            api, collection(kind.base, kind.plural, namespace), self._changed, clock=world.clock,
            label_selector=source.selector,
            project=self._project,
        )  # fmt: skip
        opinions.watches[kind], opinions.watchers[kind] = self.objects, self

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.objects.run())
            group.create_task(self.copies.keep(self._copies_seen))

    def _copies_seen(self) -> datetime | None:
        return None if self.objects.doubted else self.objects.seen

    async def _changed(self, changes: Sequence[ObjectChange]) -> None:
        keyed = [(key, change) for change in changes if (key := key_of(change.object)) is not None]
        # Of one object only the last: what came between is over.
        last = dict(keyed)
        copies = [
            self._say_copy(key, found, exists=kind is not ChangeType.DELETED) for key, (kind, found, _) in last.items()
        ]
        for key, (kind, found, unbroken) in last.items():
            if kind is ChangeType.DELETED:
                self._opinions.aggregator.leave((self._kind, key), f"the {self._kind.kind} is gone")
            else:
                self._judged(key, found, unbroken=unbroken)
        await gather([*copies, self._opinions.aggregator.speak()])

    async def _say_copy(self, key: ObjectKey, found: JsonObject, *, exists: bool) -> None:
        copy = self._copy(key, found)
        if not exists:
            await self.copies.say_once(copy.object, copy.model_copy(update={"exists": False, "replicas": None}))
            return
        before = self.copies.get(copy.object)
        changed = before is None or copy.model_copy(update={"observed_at": before.observed_at}) != before
        await self.copies.say(copy.object, copy, changed=changed)

    async def say_gone(self, key: ObjectKey) -> None:
        """Tell that there is no copy of this name, once."""
        kind = self._kind
        copy = WorkloadCopy(
            namespace=key.namespace, kind=kind.kind, name=key.name, api_version=kind.api_version,
            cluster=self._source.cluster, exists=False, observed_at=self._clock.now(),
        )  # fmt: skip
        await self.copies.say_once(copy.object, copy)

    def _judged(self, key: ObjectKey, found: JsonObject, *, unbroken: bool) -> None:
        verdict: HealthVerdict = found["verdict"]
        if verdict.status is Health.UNKNOWN:
            self._opinions.publisher.complain("NoVerdict")
        labels = self._labels(key, found)
        self._opinions.aggregator.note(
            (self._kind, key), verdict.status, labels=labels, look=self.objects.change, detail=verdict.detail,
            version=state_of_objects([found]), unbroken=unbroken,
        )  # fmt: skip

    async def _project(self, found: JsonObject) -> JsonObject:
        """Judge it, and keep the answer instead of the object: ten thousand Deployments are 100 MB."""
        metadata = metadata_of(found)
        judged = {key: value for key, value in metadata.items() if key != "managedFields"}
        verdict = self._judge({"metadata": judged, "spec": found.get("spec"), "status": found.get("status")})
        return {
            "metadata": {key: metadata.get(key) for key in ("namespace", "name", "uid", "resourceVersion", "labels")},
            "record": record_of(metadata.get("creationTimestamp"), strings_of(metadata.get("annotations"))),
            "replicas": _replicas(found),
            "state": state_of(self._preserved, found.get("status")),
            "verdict": verdict if isinstance(verdict, HealthVerdict) else await verdict,
        }

    def _labels(self, key: ObjectKey, found: JsonObject) -> Mapping[str, str]:
        own = strings_of(metadata_of(found).get("labels"))
        return {**own, "cluster": self._source.cluster, "kind": self._kind.kind, **key._asdict()}

    def _copy(self, key: ObjectKey, found: JsonObject) -> WorkloadCopy:
        metadata = metadata_of(found)
        return WorkloadCopy(
            namespace=key.namespace, kind=self._kind.kind, name=key.name, api_version=self._kind.api_version,
            cluster=self._source.cluster, uid=str(metadata.get("uid") or ""), labels=strings_of(metadata.get("labels")),
            replicas=found["replicas"], state=found["state"], record=found["record"], observed_at=self._clock.now(),
        )  # fmt: skip


def _replicas(found: JsonObject) -> int | None:
    """Give what the spec wants, None for a kind without replicas."""
    spec = found.get("spec")
    wanted: Any = spec.get("replicas") if isinstance(spec, dict) else None
    good = isinstance(wanted, int) and not isinstance(wanted, bool) and 0 <= wanted <= REPLICAS_MAX
    return wanted if good else None
