"""One cluster that a workload is placed in: what has to be written there is, and no more.

What is not there is applied. What we applied before is brought up to date, by force, because it is ours. What another
writer put there is a copy as good as ours: only its number of replicas is set, and a dependency is left as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bus.messages import Place, WorkloadRef
from reactor.actions.conditional_write import attempts
from reactor.actions.outcomes import Declined
from reactor.actions.patches import patch
from reactor.actions.workload.copy import annotated, contains, labelled, scaled
from reactor.actions.workload.copy_sources import Dependency
from reactor.actions.workload.marks import (
    EVICTING_ANNOTATIONS,
    PLACED_FOR_ANNOTATION,
    follows,
    is_marked,
    is_ours,
    refuse_if_stale,
    stamps,
)
from reactor.actions.workload.paths import base, path_of
from reactor.actions.workload.refusals import MISSING_NAMESPACE
from reactor.clients.changes import metadata_of, strings_of, version_of
from reactor.clients.kubernetes_port import ApiUnavailable, JsonObject, KubeApi, NotFound
from reactor.runtime.errors import ReactorError


@dataclass(slots=True)
class WriteTarget:
    """Cluster to write to for one decision, and what was written so far."""

    api: KubeApi
    action: Place
    create_namespaces: bool
    """True if a missing namespace is made; else it is a refusal (NamespaceMissing)."""
    written: list[str] = field(default_factory=list)
    """`ConfigMap/shop`, in the order of writing."""
    standing: list[str] = field(default_factory=list)
    """Objects that an earlier try of the same decision has written: they are not undone, so they are reported again."""
    _unanswered: set[str] = field(default_factory=set)

    async def dependency(self, one: Dependency) -> None:
        """Let the cluster have this object. Raises as KubeApi does, and why there is no copy where one is needed."""
        async for attempt in attempts():
            with attempt:
                path = await path_of(self.api, one.ref)
                live = await self._live(path)
                if isinstance(one.copy, ReactorError):
                    if live is None and not one.need.optional:
                        raise one.copy
                elif live is None or (is_ours(live) and not contains(live, one.copy)):
                    await self._apply(one.need.object, path, one.copy, live)
                else:
                    self._found(one.need.object, live)

    async def workload(self, copy: JsonObject, replicas: int) -> None:
        """Let the cluster have the workload with so many replicas. Raises Declined (Stale, CopyTerminating)."""
        ref, wanted = self.action.workload, labelled(scaled(copy, replicas), self.action.labels)
        name = f"{ref.kind}/{ref.name}"
        async for attempt in attempts():
            with attempt:
                path = await path_of(self.api, ref)
                live = await self._live(path)
                if live is None:
                    await self._apply(name, path, self._new(wanted), None)
                    continue
                self._may_be_written(live)
                if is_ours(live) and not contains(live, wanted):
                    # Labels that came with an earlier placement are ours: unsaid, they would go. So would the note.
                    kept = labelled(wanted, {**strings_of(metadata_of(live).get("labels")), **self.action.labels})
                    notes = strings_of(metadata_of(live).get("annotations"))
                    kept = annotated(kept, {key: notes[key] for key in (PLACED_FOR_ANNOTATION,) if key in notes})
                    live = await self._apply(name, path, kept, live)
                if operations := self._adjustment(live, wanted):
                    await self._patch(name, path, operations)
                else:
                    self._found(name, live)

    def _new(self, wanted: JsonObject) -> JsonObject:
        """Give the workload with a note of which copies it is made for."""
        leaving = ",".join(self.action.leaving)
        return annotated(wanted, {PLACED_FOR_ANNOTATION: leaving}) if leaving else wanted

    def _may_be_written(self, live: JsonObject) -> None:
        refuse_if_stale(live, self.action)
        if "deletionTimestamp" in metadata_of(live):
            held = ", ".join(metadata_of(live).get("finalizers") or ()) or "none"
            raise Declined("CopyTerminating", f"the copy there is being deleted; finalizers that hold it: {held}")

    def _adjustment(self, live: JsonObject, wanted: JsonObject) -> list[JsonObject]:
        """Give the patch that brings a copy that is there to its size, and takes it back from eviction."""
        has, wants = (live.get("spec") or {}), (wanted.get("spec") or {})
        operations: list[JsonObject] = []
        if "replicas" in wants and has.get("replicas") != wants["replicas"]:
            operation = "replace" if "replicas" in has else "add"
            operations = [{"op": operation, "path": "/spec/replicas", "value": wants["replicas"]}]
        if not operations and not is_marked(live):
            return []
        return patch(live, operations, write=stamps(self.action), remove=EVICTING_ANNOTATIONS)

    async def _live(self, path: str) -> JsonObject | None:
        try:
            return await self.api.get(path)
        except NotFound:
            return None

    async def _apply(self, name: str, path: str, wanted: JsonObject, live: JsonObject | None) -> JsonObject:
        body = annotated(wanted, stamps(self.action))
        if live is not None:
            body["metadata"]["resourceVersion"] = version_of(live)
        try:
            answer = await self.api.apply(path, body, force=live is not None)
        except ApiUnavailable:
            self._unanswered.add(name)
            raise
        except NotFound as error:
            if not (self.create_namespaces and MISSING_NAMESPACE.search(str(error))):
                raise
            await self._make_namespace()
            answer = await self.api.apply(path, body)
        self._wrote(name)
        return answer

    async def _make_namespace(self) -> None:
        name = self.action.workload.namespace
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        ref = WorkloadRef(kind="Namespace", name=name, api_version="v1")
        await self.api.apply(f"{base('v1')}/namespaces/{name}", annotated(body, stamps(self.action)))
        self._wrote(ref.object)

    async def _patch(self, name: str, path: str, operations: list[JsonObject]) -> None:
        try:
            await self.api.json_patch(path, operations)
        except ApiUnavailable:
            self._unanswered.add(name)
            raise
        self._wrote(name)

    def _found(self, name: str, live: JsonObject) -> None:
        """The object is as asked: by our own write, if that was the one without an answer, or by an earlier try."""
        if name in self._unanswered:
            self._wrote(name)
        elif follows(live, self.action) and name not in self.standing:
            self.standing.append(name)

    def _wrote(self, name: str) -> None:
        self._unanswered.discard(name)
        if name not in self.written:
            self.written.append(name)
