"""The inventory of a Karmada control plane: its workloads, its member clusters, and how healthy it finds both.

Bindings become Workload facts and one Observation for each copy, Cluster objects become Cluster facts and an
Observation of their Ready condition (signal `karmada`). With `policies`, the spec of the PropagationPolicy or
ClusterPropagationPolicy that governs a binding goes along, where a rule's selector chooses it.

Nothing is said before the whole list has been read, nothing of bindings before the policies are known, and nothing is
repeated while the watch is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias, TypeVar

from bus.messages import Cluster, Health, Message, Observation, Workload
from reactor.clients.changes import (
    ChangeType,
    ObjectChange,
    ReadInterval,
    dict_of,
    key_of,
    list_of,
    metadata_of,
    state_of_objects,
    strings_of,
    text_of,
)
from reactor.clients.kubernetes_port import JsonObject
from reactor.clients.reflector import Reflector
from reactor.clients.watching import WatchApi
from reactor.sources.kubernetes.karmada_projection import (
    PolicyKey,
    cluster_of,
    health_of,
    key_of_policy,
    policy_of,
    project_binding,
    project_cluster,
    project_policy,
    ready_of,
    workload_of,
)
from reactor.sources.refresh import answer_requests
from reactor.sources.republisher import Republisher, SeenEach, gather
from reactor.sources.source_context import SourceContext
from rules.rulefile.selectors import matches

NAME = "karmada"
"""Name of this source in metrics and logs."""
REFRESH_SECONDS = 30.0
_WORK = "/apis/work.karmada.io/v1alpha2"
_POLICY = "/apis/policy.karmada.io/v1alpha1"
_CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"
Said = TypeVar("Said", bound=Message)
Saying: TypeAlias = Coroutine[Any, Any, None]
"""A fact that is to be told. The facts that one look has found are told together, so that all are dated then."""


async def run(cluster: str, policies: Sequence[str], world: SourceContext) -> None:
    """Watch until cancelled. `cluster`: the control plane, by its name in the settings; `policies`: label selectors."""
    await KarmadaInventory(await world.clusters.get(cluster), policies, world).run()


class KarmadaInventory:
    """One control plane, and what is told of it."""

    def __init__(self, api: WatchApi, policies: Sequence[str], world: SourceContext) -> None:
        self._clock = world.clock
        self._selectors = policies
        self._preserved = world.preserved
        self._policies: dict[PolicyKey, JsonObject] = {}
        self._bindings: dict[tuple[str, str, str], JsonObject] = {}
        """Bindings that were told, by collection, namespace and name."""
        self._copies: dict[str, set[str]] = {}
        """Workload to the targets that its copies are."""
        self._requests = world.requests
        tell, clock, lost = world.tell, world.clock, world.on_facts_lost
        self.workloads: Republisher[Workload] = Republisher(
            tell, clock, on_facts_lost=lost, period_seconds=REFRESH_SECONDS
        )
        self.clusters: Republisher[Cluster] = Republisher(
            tell, clock, on_facts_lost=lost, period_seconds=REFRESH_SECONDS
        )
        self.copies: Republisher[Observation] = Republisher(
            tell, clock, on_facts_lost=lost, period_seconds=REFRESH_SECONDS
        )
        self.ready: Republisher[Observation] = Republisher(
            tell, clock, on_facts_lost=lost, period_seconds=REFRESH_SECONDS
        )
        self._cluster_watch = Reflector(api, _CLUSTERS, self._clusters_changed, clock=clock, project=project_cluster)
        self._binding_watches = {
            plural: Reflector(
                api,
                f"{_WORK}/{plural}",
                partial(self._bindings_changed, plural),
                clock=clock,
                project=self._projected,
            )
            for plural in ("resourcebindings", "clusterresourcebindings")
        }
        self._policy_watches = [
            Reflector(api, f"{_POLICY}/{plural}", self._policies_changed, clock=clock, project=project_policy)
            for plural in ("propagationpolicies", "clusterpropagationpolicies")
            if policies
        ]

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._cluster_watch.run())
            for standing in (self.clusters, self.ready):
                group.create_task(standing.keep_each(self._cluster_seen, self._cluster_proven))
            group.create_task(self._answer(self.ready, self._cluster_proven, [self._cluster_watch]))
            for watch in self._policy_watches:
                group.create_task(watch.run())
            for watch in self._policy_watches:
                await watch.synced.wait()
            for watch in self._binding_watches.values():
                group.create_task(watch.run())
            for kept in (self.workloads, self.copies):
                group.create_task(kept.keep_each(self._binding_seen, self._binding_proven))
            group.create_task(self._answer(self.copies, self._binding_proven, [*self._binding_watches.values()]))

    def _projected(self, binding: JsonObject) -> JsonObject:
        """Keep what is read, and of each copy's status what its rule or its policy wants carried over."""
        return project_binding(binding, {*self._preserved, *_paths(self._policy(binding))})

    def _answer(
        self, standing: Republisher[Observation], proven: SeenEach, watches: Sequence[Reflector]
    ) -> Coroutine[Any, Any, None]:
        def look_again(not_before: datetime) -> None:
            for watch in watches:
                watch.look_again(not_before)

        return answer_requests(NAME, standing, proven, look_again, self._requests, self._clock)

    def _cluster_seen(self, _: str) -> datetime | None:
        return _first_of([self._cluster_watch], [self._cluster_watch.seen])

    def _cluster_proven(self, _: str) -> datetime | None:
        return _first_of([self._cluster_watch], [self._cluster_watch.proven])

    def _binding_seen(self, _: str) -> datetime | None:
        watches = [*self._binding_watches.values()]
        return _first_of(watches, [watch.seen for watch in watches])

    def _binding_proven(self, _: str) -> datetime | None:
        watches = [*self._binding_watches.values()]
        return _first_of(watches, [watch.proven for watch in watches])

    async def _clusters_changed(self, changes: Sequence[ObjectChange]) -> None:
        await gather([saying for one in changes for saying in self._of_cluster(one)])
        await self.ready.answer(self._cluster_proven)

    def _of_cluster(self, change: ObjectChange) -> list[Saying]:
        kind, found, unbroken = change
        now = self._clock.now()
        cluster = cluster_of(found, at=now, exists=kind is not ChangeType.DELETED)
        if cluster is None:
            return []
        ready = ready_of(found, cluster.name, at=now)
        if kind is ChangeType.DELETED:
            gone = {"status": Health.UNKNOWN, "detail": "the cluster is no member any more"}
            last = self.ready.say_once(ready.target, ready.model_copy(update=gone))
            return [self.clusters.say_once(cluster.about, cluster), last]
        ready = _with_source(ready, found)
        health = _say_health(self.ready, ready, self._cluster_watch.change, unbroken=unbroken)
        return [_say(self.clusters, cluster.about, cluster), health]

    async def _bindings_changed(self, plural: str, changes: Sequence[ObjectChange]) -> None:
        await gather([saying for one in changes for saying in self._of_change(plural, one)])
        await self.copies.answer(self._binding_proven)

    def _of_change(self, plural: str, change: ObjectChange) -> list[Saying]:
        key = key_of(change.object)
        if key is None:
            return []
        exists = change.kind is not ChangeType.DELETED
        if exists:
            self._bindings[plural, *key] = change.object
        else:
            self._bindings.pop((plural, *key), None)
        look = self._binding_watches[plural].change
        return self._of_binding(change.object, look, exists=exists, unbroken=change.unbroken)

    def _of_binding(
        self, binding: JsonObject, look: ReadInterval, *, exists: bool = True, unbroken: bool = True
    ) -> list[Saying]:
        now = self._clock.now()
        workload = workload_of(binding, self._policy(binding), at=now, exists=exists)
        if workload is None:
            return []
        heard = {one.target: one for one in health_of(binding, workload, at=now)} if exists else {}
        left = self._copies.pop(workload.object, set()) - heard.keys()
        if not exists:
            return [self.workloads.say_once(workload.object, workload), *self._last_words(left)]
        self._copies[workload.object] = {*heard}
        health = [
            _say_health(self.copies, _with_source(one, binding), look, unbroken=unbroken) for one in heard.values()
        ]
        return [_say(self.workloads, workload.object, workload), *health, *self._last_words(left)]

    def _last_words(self, targets: set[str]) -> list[Saying]:
        """Say once that these are Unknown: their copies are gone."""
        last = {"status": Health.UNKNOWN, "detail": "no status of it is collected any more"}
        before = {target: self.copies.get(target) for target in sorted(targets)}
        return [
            self.copies.say_once(target, one.model_copy(update=last))
            for target, one in before.items()
            if one is not None
        ]

    def _policy(self, binding: JsonObject) -> JsonObject | None:
        key = policy_of(binding)
        return self._policies.get(key) if key is not None else None

    async def _policies_changed(self, changes: Sequence[ObjectChange]) -> None:
        touched: set[PolicyKey] = set()
        for kind, found, _ in changes:
            key = key_of(found)
            if key is None:
                continue
            policy = key_of_policy(key)
            labels = strings_of(metadata_of(found).get("labels"))
            chosen = kind is not ChangeType.DELETED and any(matches(selector, labels) for selector in self._selectors)
            if chosen:
                self._policies[policy] = found["spec"]
                touched.add(policy)
            elif self._policies.pop(policy, None) is not None:
                touched.add(policy)
        governed = [(plural, one) for (plural, *_), one in self._bindings.items() if policy_of(one) in touched]
        await gather([
            saying for plural, one in governed for saying in self._of_binding(one, self._binding_watches[plural].change)
        ])  # fmt: skip


def _paths(policy: JsonObject | None) -> Iterator[str]:
    """Give what a policy wants carried over, as far as it can be read."""
    for behaviour in dict_of(dict_of(policy).get("failover")).values():
        for one in list_of(dict_of(dict_of(behaviour).get("statePreservation")).get("rules")):
            if path := text_of(one.get("jsonPath")):
                yield path


def _first_of(watches: Sequence[Reflector], moments: Sequence[datetime | None]) -> datetime | None:
    """Give the earliest of these moments, one of each watch; None: one of the copies is not believed now."""
    known = [moment for moment in moments if moment is not None]
    return min(known) if len(known) == len(moments) and not any(watch.doubted for watch in watches) else None


def _with_source(health: Observation, found: JsonObject) -> Observation:
    return health.model_copy(update={"source": NAME, "version": state_of_objects([found])})


async def _say_health(
    standing: Republisher[Observation], health: Observation, look: ReadInterval, *, unbroken: bool
) -> None:
    before = standing.get(health.target)
    changed = before is None or before.status is not health.status
    await standing.say(health.target, health, changed=changed, look=look, unbroken=unbroken)


def _by_anything(before: Message, after: Message) -> bool:
    ignored = {"observed_at"}
    return before.model_dump(exclude=ignored) != after.model_dump(exclude=ignored)


async def _say(standing: Republisher[Said], key: str, fact: Said) -> None:
    before = standing.get(key)
    await standing.say(key, fact, changed=before is None or _by_anything(before, fact))
