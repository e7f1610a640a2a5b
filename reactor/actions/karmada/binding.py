"""Finds the binding of a workload on a Karmada control plane, and the words that its definition takes."""

from __future__ import annotations

from collections.abc import MutableMapping
from urllib.parse import quote
from weakref import WeakKeyDictionary

from bus.messages import WorkloadRef
from reactor.actions.guarded import connection_of
from reactor.actions.karmada.tasks import Dialect
from reactor.actions.outcomes import Declined
from reactor.clients.kubernetes_port import Forbidden, JsonObject, KubeApi, NotFound

API = "/apis/work.karmada.io/v1alpha2"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_VERSION = "v1alpha2"
_dialects: WeakKeyDictionary[KubeApi, MutableMapping[str, Dialect]] = WeakKeyDictionary()


def plural_of(ref: WorkloadRef) -> str:
    """Objects of a namespace have ResourceBindings, all others ClusterResourceBindings."""
    return "resourcebindings" if ref.namespace else "clusterresourcebindings"


def name_of(ref: WorkloadRef) -> str:
    """Give the name that Karmada gives the binding. Source: pkg/util/names/names.go, GenerateBindingName."""
    return f"{ref.name.replace(':', '.')}-{ref.kind}".lower()


async def read_binding(api: KubeApi, ref: WorkloadRef) -> tuple[str, JsonObject]:
    """Give the workload's binding and its path: by its usual name, else by what it says it is about.

    Raises Declined (BindingMissing), and as KubeApi does.
    """
    namespace = f"/namespaces/{quote(ref.namespace, safe='')}" if ref.namespace else ""
    collection = f"{API}{namespace}/{plural_of(ref)}"
    path = f"{collection}/{quote(name_of(ref), safe='')}"
    try:
        found = await api.get(path)
    except NotFound:
        found = {}
    if _is_about(found, ref):
        return path, found
    for one in await api.list(collection):
        if _is_about(one, ref):
            return f"{collection}/{quote(one['metadata']['name'], safe='')}", one
    raise Declined("BindingMissing", f"{api.cluster}: {ref.object} has no binding: no policy of Karmada selects it")


def _is_about(binding: JsonObject, ref: WorkloadRef) -> bool:
    resource = (binding.get("spec") or {}).get("resource") or {}
    found = (resource.get("namespace") or "", resource.get("kind"), resource.get("name"))
    return found == (ref.namespace, ref.kind, ref.name)


async def dialect_of(api: KubeApi, ref: WorkloadRef) -> Dialect:
    """Give what the served definition takes; today's words where we may not read definitions. Asked once."""
    plural = plural_of(ref)
    known = _dialects.setdefault(connection_of(api), {})
    if plural not in known:
        try:
            known[plural] = dialect_in(await api.get(f"{DEFINITIONS}/{plural}.work.karmada.io"))
        except (Forbidden, NotFound):
            return Dialect()
    return known[plural]


def forget(api: KubeApi) -> None:
    """Ask again: the control plane may have been upgraded."""
    _dialects.pop(connection_of(api), None)


def dialect_in(definition: JsonObject) -> Dialect:
    """Read a CustomResourceDefinition of bindings."""
    for version in (definition.get("spec") or {}).get("versions") or []:
        if version.get("name") != _VERSION:
            continue
        node = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        for step in ("spec", "gracefulEvictionTasks"):
            node = (node.get("properties") or {}).get(step) or {}
        fields = (node.get("items") or {}).get("properties")
        if not fields:
            return Dialect()  # it says nothing of tasks: then it takes anything
        modes = frozenset((fields.get("purgeMode") or {}).get("enum") or ()) or Dialect().modes
        return Dialect(
            modes if "purgeMode" in fields else None, suppresses="suppressDeletion" in fields,
            preserves="preservedLabelState" in fields,
        )  # fmt: skip
    return Dialect()
