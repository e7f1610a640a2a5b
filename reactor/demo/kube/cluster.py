"""One emulated cluster: its objects, its kinds, its faults, and ways to arrange its world in process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from reactor.demo.kube import controllers, patching, reads, writes
from reactor.demo.kube.call import ApiRequest
from reactor.demo.kube.cluster_state import WORLD, EmulatedState
from reactor.demo.kube.dispatch import perform
from reactor.demo.kube.errors import StatusError
from reactor.demo.kube.faults import CutWatch, WatchEffect
from reactor.demo.kube.objects import JsonObject, clone
from reactor.demo.kube.writelog import WriteLog

_FIRST_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


class EmulatedCluster(EmulatedState):
    """An API server's state and behaviour, without its HTTP."""

    def __init__(
        self,
        name: str,
        *,
        now: Callable[[], datetime],
        log: WriteLog,
        crds: Sequence[JsonObject],
        version: str,
        token: str,
        history: int,
        bookmark_seconds: float,
    ) -> None:
        super().__init__(
            name, now=now, log=log, version=version, token=token, history=history, bookmark_seconds=bookmark_seconds
        )
        for namespace in _FIRST_NAMESPACES:
            self.ensure_namespace(namespace)
        for definition in crds:
            self.install(definition)

    @property
    def resource_version(self) -> int:
        """The newest resource version of the cluster."""
        return self.store.version

    # What a test or the demo does to the world. Each takes and gives whole objects, apiVersion and kind included.

    def create(self, obj: JsonObject) -> JsonObject:
        """Create an object with its status; its namespace is made if it is missing."""
        call = self._call("create", obj)
        return self._answer(perform(self, call, obj, seed=True), call)

    def get(self, resource: str, name: str, namespace: str = "") -> JsonObject:
        """Give an object; 404 is an ApiError. `resource` is a plural, with its group where two share it."""
        call = ApiRequest("get", self.catalog.named(resource), namespace, name)
        return call.resource.to_served(clone(reads.get(self, call).value))

    def find(self, resource: str, name: str, namespace: str = "") -> JsonObject | None:
        """Give an object, or None."""
        try:
            return self.get(resource, name, namespace)
        except StatusError as refusal:
            if refusal.code == 404:
                return None
            raise

    def list(self, resource: str, namespace: str = "", *, labels: str = "") -> list[JsonObject]:
        """Give all objects of a kind that a label selector selects."""
        call = ApiRequest("list", self.catalog.named(resource), namespace, query={"labelSelector": labels})
        return [call.resource.to_served(clone(one.value)) for one in reads.list_page(self, call).items]

    def apply(self, obj: JsonObject, *, manager: str = WORLD, status: bool = False) -> JsonObject:
        """Apply an object server-side and by force; `status`: apply its status instead."""
        call = self._call("patch", obj, manager=manager, force="true")
        if not status and call.resource.namespaced:
            self.ensure_namespace(call.namespace)
        return self._answer(perform(self, _patching(call, patching.APPLY, status=status), obj), call)

    def patch(
        self, resource: str, name: str, patch: Any, namespace: str = "", *, manager: str = WORLD, status: bool = False
    ) -> JsonObject:
        """Merge a patch (a dict) into an object or its status, or carry out a JSON patch (a list)."""
        call = ApiRequest("patch", self.catalog.named(resource), namespace, name, query={"fieldManager": manager})
        media_type = patching.JSON_PATCH if isinstance(patch, list) else patching.MERGE_PATCH
        return self._answer(perform(self, _patching(call, media_type, status=status), patch), call)

    def delete(self, resource: str, name: str, namespace: str = "") -> None:
        """Delete an object; with finalizers it is only marked."""
        call = ApiRequest("delete", self.catalog.named(resource), namespace, name, query={"fieldManager": WORLD})
        perform(self, call, None)

    def install(self, definition: JsonObject) -> None:
        """Serve the kinds of a CustomResourceDefinition, in the place of an older one of that name."""
        name = definition["metadata"]["name"]
        if self.find("customresourcedefinitions", name) is not None:
            self.delete("customresourcedefinitions", name)
        resource = self.catalog.named("customresourcedefinitions")
        writes.create(self, ApiRequest("create", resource, query={"fieldManager": WORLD}), definition, seed=True)

    def set_endpoints(
        self, namespace: str, service: str, *, ready: int, not_ready: int = 0, port: int = 8080
    ) -> JsonObject:
        """Let a service have this many ready and not ready endpoints (one EndpointSlice), and give the slice."""
        return controllers.set_endpoints(self, namespace, service, ready=ready, not_ready=not_ready, port=port)

    def set_condition(
        self,
        resource: str,
        name: str,
        namespace: str = "",
        *,
        kind: str,
        status: str,
        reason: str = "Demo",
        message: str = "",
    ) -> JsonObject:
        """Set one condition of an object, such as a node's Ready to Unknown."""
        return controllers.set_condition(self, resource, name, namespace, kind, status, reason=reason, message=message)

    def settle_budgets(self, namespace: str = "") -> None:
        """Compute the status of disruption budgets from the pods there are; evictions go by that status."""
        controllers.settle_budgets(self, namespace)

    def compact(self) -> None:
        """Forget the history: a client that missed a change gets 410."""
        self.store.compact()

    def restore(self, version: int) -> None:
        """Come back as from a backup: all objects as they are, at this resource version, and no history of them.

        A watch that goes on from before is told nothing of what has changed meanwhile, whether the version is higher
        or lower than the one it knows: that is what etcd does where its revisions are not marked as compacted.
        """
        self.store.restore(version)
        for watch in self.watches:
            watch.forget()
        self.cut_watches()

    def cut_watches(self, how: WatchEffect | None = None, *, resource: str = "") -> int:
        """End all running watches, or those of one plural; by default with a reset. Gives their number."""
        met = [watch for watch in self.watches if resource in ("", watch.call.resource.plural)]
        for watch in met:
            watch.interrupt(how or CutWatch())
        return len(met)

    # What the write path needs.

    def ensure_namespace(self, name: str) -> None:
        namespaces = self.catalog.at("", "v1", "namespaces")
        if ("", name) not in self.store.collection(namespaces).objects:
            body = {"metadata": {"name": name}}
            writes.create(self, ApiRequest("create", namespaces, query={"fieldManager": WORLD}), body, seed=True)

    def empty_namespace(self, name: str) -> None:
        """Take everything in a namespace away with it; the real server does the same, only later."""
        for resource in self.catalog.stored():
            if resource.namespaced:
                for key in [key for key in self.store.collection(resource).objects if key[0] == name]:
                    self.store.remove(resource, key)

    def withdraw(self, definition: JsonObject) -> None:
        """Stop serving a definition's kinds, and forget their objects."""
        group, plural = definition["spec"]["group"], definition["spec"]["names"]["plural"]
        for resource in [one for one in self.catalog.stored() if (one.group, one.plural) == (group, plural)]:
            for key in list(self.store.collection(resource).objects):
                self.store.remove(resource, key)
        self.catalog.forget(definition)

    def _call(self, verb: str, obj: JsonObject, *, manager: str = WORLD, **query: str) -> ApiRequest:
        resource = self.catalog.of_kind(obj["apiVersion"], obj["kind"])
        metadata = obj["metadata"]
        namespace = metadata.get("namespace", "default") if resource.namespaced else ""
        name = metadata.get("name", "") if verb == "patch" else ""
        return ApiRequest(verb, resource, namespace, name, query={"fieldManager": manager, **query})

    def _answer(self, outcome: writes.WriteResult, call: ApiRequest) -> JsonObject:
        if outcome.revision is None:
            raise AssertionError("create and patch answer with the object")
        return call.resource.to_served(clone(outcome.revision.value))


def _patching(call: ApiRequest, media_type: str, *, status: bool) -> ApiRequest:
    subresource = "status" if status else ""
    return ApiRequest("patch", call.resource, call.namespace, call.name, subresource, call.query, media_type)
