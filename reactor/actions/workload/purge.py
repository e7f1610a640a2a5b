"""Purge on plain clusters: the old copy goes, its pods first, each step only onto what was just read.

What the copy needed (ConfigMaps, Secrets, claims and their data) stays: others may need it, and data is not ours.
"""

from __future__ import annotations

import asyncio
from datetime import datetime

from bus.messages import Evict, Outcome, Purge
from reactor.actions.conditional_write import SETTLE_SECONDS, attempts
from reactor.actions.outcomes import Declined
from reactor.actions.workload.copy_pods import evict_all, pods_of
from reactor.actions.workload.copy_sources import ClusterLookup
from reactor.actions.workload.marks import refuse_if_stale
from reactor.actions.workload.paths import path_of
from reactor.actions.workload.refusals import TOO_MANY
from reactor.actions.workload.reports import Report, connected, enforced, outcome
from reactor.clients.changes import metadata_of, version_of
from reactor.clients.kubernetes_port import ApiUnavailable, JsonObject, KubeApi, ObjectNotFound
from reactor.runtime.clock import Clock
from reactor.runtime.errors import ReactorError


async def carry_out(action: Purge | Evict, clusters: ClusterLookup, clock: Clock) -> Outcome:
    """Remove the workload's copy in the cluster that it leaves; Done where none is there.

    Never raises for what the world does. Failed: ClusterUnreachable (it stays owed, and is done when the cluster is
    back), DisruptionBudget, EvictionRefused, Terminating (finalizers hold it), Forbidden, Conflict. Refused: DryRun,
    Stale (a newer decision put the copy there, or another writer has since this was decided).
    """
    removal = _Removal(action, clock)
    error: ReactorError | None = None
    try:
        enforced(action)
        async with asyncio.timeout(SETTLE_SECONDS):
            await removal.run(await connected(clusters, action.from_))
    except TimeoutError:
        error = ApiUnavailable(f"{action.from_}: not removed within {SETTLE_SECONDS:g} s")
    except ApiUnavailable as stopped:
        # It has just shown the copy, and answers: a purge must not wait until such a cluster is Healthy. An Evict that
        # removes goes on without it, and so does the workload.
        answered = isinstance(action, Purge) and removal.evicting and stopped.status not in (None, TOO_MANY)
        error = Declined("EvictionRefused", str(stopped)) if answered else stopped
    except ReactorError as stopped:
        error = stopped
    return outcome(action, clock, [Report(action.from_, removal.written, error)])


class _Removal:
    """One try, and what it has written so far."""

    def __init__(self, action: Purge | Evict, clock: Clock) -> None:
        self._action = action
        self._clock = clock
        self.written: list[str] = []
        self.evicting = False
        """True while pods are asked to leave."""

    async def run(self, api: KubeApi) -> None:
        """Remove pods and object. Raises Declined, and as KubeApi does."""
        path = await path_of(api, self._action.workload)
        async for attempt in attempts():
            with attempt:
                self.evicting = False
                obj = await _read(api, path)
                if obj is None:
                    return
                self._may_go(obj)
                await self._evict(api, obj)
                await self._delete(api, path)

    def _may_go(self, obj: JsonObject) -> None:
        refuse_if_stale(obj, self._action)
        made = metadata_of(obj)["creationTimestamp"]
        if datetime.fromisoformat(made) > self._action.decided_at:
            raise Declined("Stale", f"the copy was made at {made}, after this was decided: it is another one")

    async def _evict(self, api: KubeApi, obj: JsonObject) -> None:
        pods = await pods_of(api, obj)
        self.evicting = True
        count = await evict_all(api, pods, before=self._action.decided_at, clock=self._clock)
        self.evicting = False
        if count:
            self.written.append(f"{count} evictions")

    async def _delete(self, api: KubeApi, path: str) -> None:
        # Read again: while pods left, the controller has written the status, and the version is another one.
        obj = await _read(api, path)
        if obj is None:
            return
        self._may_go(obj)
        metadata, ref = metadata_of(obj), self._action.workload
        if "deletionTimestamp" not in metadata:
            try:
                await api.delete(path, uid=metadata["uid"], resource_version=version_of(obj))
            except ObjectNotFound:
                return
            self.written.append(f"removal of {ref.kind}/{ref.name}")
            obj = await _read(api, path)
        if obj is not None and metadata_of(obj).get("uid") == metadata["uid"]:
            held = ", ".join(metadata_of(obj).get("finalizers") or ()) or "the cluster's own garbage collection"
            raise Declined("Terminating", f"{ref.object} is deleted and not gone: held by {held}")


async def _read(api: KubeApi, path: str) -> JsonObject | None:
    try:
        return await api.get(path)
    except ObjectNotFound:
        return None
