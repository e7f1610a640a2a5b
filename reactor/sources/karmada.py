"""The inventory of a Karmada control plane: its workloads, its member clusters, and how healthy it finds both.

Bindings become Workload facts and one Observation for each copy, Cluster objects become Cluster facts and an
Observation of their Ready condition (signal `karmada`). With `policies`, the spec of the PropagationPolicy or
ClusterPropagationPolicy that governs a binding goes along, where a rule's selector chooses it.

Nothing is said before the whole list has been read, nothing of bindings before the policies are known, and nothing is
repeated while the watch is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

from bus.messages import Cluster, Health, Message, Observation, Workload
from reactor.clients.changes import Change, Kind, dict_of, key_of, list_of, metadata_of, strings_of, text_of
from reactor.clients.port import JsonObject
from reactor.clients.reflector import Reflector
from reactor.clients.watching import WatchApi
from reactor.sources.karmada_projection import (
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
from reactor.sources.standing import Standing, together
from reactor.sources.world import World
from rules.language.selectors import matches

NAME = "karmada"
"""This source's name in metrics and logs."""
REFRESH_SECONDS = 30.0
_WORK = "/apis/work.karmada.io/v1alpha2"
_POLICY = "/apis/policy.karmada.io/v1alpha1"
_CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"
Said = TypeVar("Said", bound=Message)
Saying: TypeAlias = Coroutine[Any, Any, None]
"""What is to be told. What one look has found is told together, so that all of it is dated then."""


async def run(cluster: str, policies: Sequence[str], world: World) -> None:
    """Watch until cancelled. `cluster`: the control plane, by its name in the settings; `policies`: label selectors."""
    await Inventory(await world.clusters.get(cluster), policies, world).run()


class Inventory:
    """One control plane, and what is told of it."""

    def __init__(self, api: WatchApi, policies: Sequence[str], world: World) -> None:
        self._clock = world.clock
        self._selectors = policies
        self._preserved = world.preserved
        self._policies: dict[PolicyKey, JsonObject] = {}
        self._bindings: dict[tuple[str, str, str], JsonObject] = {}
        """By collection, namespace and name: those that were told."""
        self._copies: dict[str, set[str]] = {}
        """Workload to the targets that its copies are."""
        tell, clock = world.tell, world.clock
        self.workloads: Standing[Workload] = Standing(tell, clock, period_seconds=REFRESH_SECONDS)
        self.clusters: Standing[Cluster] = Standing(tell, clock, period_seconds=REFRESH_SECONDS)
        self.copies: Standing[Observation] = Standing(tell, clock, period_seconds=REFRESH_SECONDS)
        self.ready: Standing[Observation] = Standing(tell, clock, period_seconds=REFRESH_SECONDS)
        self._cluster_watch = Reflector(api, _CLUSTERS, self._clusters_changed, project=project_cluster)
        self._binding_watches = [
            Reflector(api, f"{_WORK}/{plural}", partial(self._bindings_changed, plural), project=self._projected)
            for plural in ("resourcebindings", "clusterresourcebindings")
        ]
        self._policy_watches = [
            Reflector(api, f"{_POLICY}/{plural}", self._policies_changed, project=project_policy)
            for plural in ("propagationpolicies", "clusterpropagationpolicies")
            if policies
        ]

    async def run(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._cluster_watch.run())
            for standing in (self.clusters, self.ready):
                group.create_task(standing.keep(lambda: self._cluster_watch.vouched))
            for watch in self._policy_watches:
                group.create_task(watch.run())
            for watch in self._policy_watches:
                await watch.synced.wait()
            for watch in self._binding_watches:
                group.create_task(watch.run())
            for kept in (self.workloads, self.copies):
                group.create_task(kept.keep(self._bindings_vouched))

    def _projected(self, binding: JsonObject) -> JsonObject:
        """Keep what is read, and of each copy's status what its rule or its policy wants carried over."""
        return project_binding(binding, {*self._preserved, *_paths(self._policy(binding))})

    def _bindings_vouched(self) -> float | None:
        ages = [watch.vouched for watch in self._binding_watches]
        return None if None in ages else max(age for age in ages if age is not None)

    async def _clusters_changed(self, changes: Sequence[Change]) -> None:
        await together([saying for kind, found in changes for saying in self._of_cluster(kind, found)])

    def _of_cluster(self, kind: Kind, found: JsonObject) -> list[Saying]:
        now = self._clock.now()
        cluster = cluster_of(found, at=now, exists=kind is not Kind.DELETED)
        if cluster is None:
            return []
        ready = ready_of(found, cluster.name, at=now)
        if kind is Kind.DELETED:
            gone = {"status": Health.UNKNOWN, "detail": "the cluster is no member any more"}
            last = self.ready.say_once(ready.target, ready.model_copy(update=gone))
            return [self.clusters.say_once(cluster.about, cluster), last]
        health = _say(self.ready, ready.target, ready, differs=_by_status)
        return [_say(self.clusters, cluster.about, cluster), health]

    async def _bindings_changed(self, plural: str, changes: Sequence[Change]) -> None:
        await together([saying for one in changes for saying in self._of_change(plural, one)])

    def _of_change(self, plural: str, change: Change) -> list[Saying]:
        key = key_of(change.object)
        if key is None:
            return []
        exists = change.kind is not Kind.DELETED
        if exists:
            self._bindings[plural, *key] = change.object
        else:
            self._bindings.pop((plural, *key), None)
        return self._of_binding(change.object, exists=exists)

    def _of_binding(self, binding: JsonObject, *, exists: bool = True) -> list[Saying]:
        now = self._clock.now()
        workload = workload_of(binding, self._policy(binding), at=now, exists=exists)
        if workload is None:
            return []
        heard = {one.target: one for one in health_of(binding, workload, at=now)} if exists else {}
        left = self._copies.pop(workload.object, set()) - heard.keys()
        if not exists:
            return [self.workloads.say_once(workload.object, workload), *self._last_words(left)]
        self._copies[workload.object] = {*heard}
        health = [_say(self.copies, target, one, differs=_by_status) for target, one in heard.items()]
        return [_say(self.workloads, workload.object, workload), *health, *self._last_words(left)]

    def _last_words(self, targets: set[str]) -> list[Saying]:
        """Say once that nobody knows of these any more: their copies are gone."""
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

    async def _policies_changed(self, changes: Sequence[Change]) -> None:
        touched: set[PolicyKey] = set()
        for kind, found in changes:
            key = key_of(found)
            if key is None:
                continue
            policy = key_of_policy(key)
            labels = strings_of(metadata_of(found).get("labels"))
            chosen = kind is not Kind.DELETED and any(matches(selector, labels) for selector in self._selectors)
            if chosen:
                self._policies[policy] = found["spec"]
                touched.add(policy)
            elif self._policies.pop(policy, None) is not None:
                touched.add(policy)
        governed = [one for one in self._bindings.values() if policy_of(one) in touched]
        await together([saying for binding in governed for saying in self._of_binding(binding)])


def _paths(policy: JsonObject | None) -> Iterator[str]:
    """Give what a policy wants carried over, as far as it can be read."""
    for behaviour in dict_of(dict_of(policy).get("failover")).values():
        for one in list_of(dict_of(dict_of(behaviour).get("statePreservation")).get("rules")):
            if path := text_of(one.get("jsonPath")):
                yield path


def _by_status(before: Observation, after: Observation) -> bool:
    return before.status is not after.status


def _by_anything(before: Message, after: Message) -> bool:
    ignored = {"observed_at"}
    return before.model_dump(exclude=ignored) != after.model_dump(exclude=ignored)


async def _say(
    standing: Standing[Said], key: str, fact: Said, *, differs: Callable[[Said, Said], bool] = _by_anything
) -> None:
    before = standing.get(key)
    await standing.say(key, fact, changed=before is None or differs(before, fact))
