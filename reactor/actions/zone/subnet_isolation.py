"""SubnetIsolation (GEP-21): the resource in a Shoot's seed namespace that says a zone's subnets are to be cut.

A provider extension fulfils it; where the rule's network provider is AwsNetworkAcl we do, and write its status.
Deleting it opens the network again, so it goes before anything else on the way back.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from bus.messages import iso
from reactor.actions.conditional_write import ConditionalChange, conditional_write_object
from reactor.actions.outcomes import Declined, NotAsAsked
from reactor.actions.zone import aws_acl
from reactor.actions.zone.isolation_context import InProgress, IsolationContext, StepResult
from reactor.clients.kubernetes_port import Conflict, JsonObject, KubeApi, NotFound

_GROUP = "extensions.gardener.cloud"
_FAILED = frozenset({"Error", "Failed"})


async def cut(isolation: IsolationContext) -> StepResult:
    """Make the resource, and fulfil it or wait until a controller has. Raises InProgress, NotAsAsked."""
    api, path = await _place(isolation)
    obj, made = await _made(api, path, isolation)
    if isolation.settings.network.provider != "AwsNetworkAcl":
        return StepResult(made, _fulfilled(obj, isolation))
    result = await aws_acl.cut(isolation)
    said = await _say(api, path, isolation, result)
    return StepResult(made or result.wrote or said, result.detail)


async def restore(isolation: IsolationContext) -> StepResult:
    """Open the network, then let the resource go; wait for the controller that fulfils it. Raises InProgress."""
    api, path = await _place(isolation)
    ours = isolation.settings.network.provider == "AwsNetworkAcl"
    result = await aws_acl.restore(isolation) if ours else StepResult(wrote=False, detail="the network is open")
    try:
        obj = await api.get(path)
        if "deletionTimestamp" not in obj["metadata"]:
            await api.delete(path, uid=obj["metadata"]["uid"])
        obj = await api.get(path)
    except NotFound:
        return result
    held = ", ".join(obj["metadata"].get("finalizers") or [])
    raise InProgress(f"SubnetIsolation {obj['metadata']['name']} is still held by {held or 'its deletion'}")


async def _place(isolation: IsolationContext) -> tuple[KubeApi, str]:
    seed = isolation.settings.seed
    if seed is None or not isolation.action.zone_id:
        raise Declined("SettingMissing", "a SubnetIsolation needs seed, and the zone's id, in the rule")
    base = f"/apis/{_GROUP}/v1alpha1/namespaces/{quote(seed.namespace, safe='')}/subnetisolations"
    return await isolation.world.clusters(seed.cluster), f"{base}/isolate-{quote(isolation.mark.lower(), safe='')}"


async def _made(api: KubeApi, path: str, isolation: IsolationContext) -> tuple[JsonObject, bool]:
    base, _, name = path.rpartition("/")
    try:
        return await api.get(path), False
    except NotFound:
        pass  # to be made now
    body: dict[str, Any] = {
        "apiVersion": f"{_GROUP}/v1alpha1", "kind": "SubnetIsolation",
        "metadata": {"name": name}, "spec": {"isolatedZoneID": isolation.mark},
    }  # fmt: skip
    try:
        return await api.create(base, body), True
    except Conflict:
        return await api.get(path), False  # another process was quicker


def _fulfilled(obj: JsonObject, isolation: IsolationContext) -> str:
    status = obj.get("status") or {}
    operation = status.get("lastOperation") or {}
    provider = status.get("providerStatus") or {}
    name, code = obj["metadata"]["name"], provider.get("isolatedZoneCode")
    if "deletionTimestamp" in obj["metadata"]:
        raise InProgress(f"SubnetIsolation {name} is being deleted; it is created again when it is gone")
    seen = status.get("observedGeneration", 0) >= obj["metadata"].get("generation", 0)
    state = operation.get("state", "Pending")
    if seen and state in _FAILED:
        words = (status.get("lastError") or {}).get("description") or operation.get("description")
        raise NotAsAsked(f"SubnetIsolation {name} is {state}: {words}")
    if not seen or state != "Succeeded":
        raise InProgress(f"SubnetIsolation {name} is {state}: {operation.get('description') or 'not yet seen'}")
    if code and code != isolation.zone:
        raise Declined("ZoneMismatch", f"the rule says that {isolation.mark} is {isolation.zone}, {name} says {code}")
    return f"SubnetIsolation {name} has cut {isolation.mark} ({code})"


async def _say(api: KubeApi, path: str, isolation: IsolationContext, result: StepResult) -> bool:
    """Write the status of a resource that we fulfil: which ID and which code, and which ACL."""

    def wanted(obj: JsonObject) -> JsonObject:
        before = (obj.get("status") or {}).get("lastOperation") or {}
        at = before.get("lastUpdateTime") or iso(isolation.clock.now().replace(microsecond=0))
        operation = {"type": "Create", "state": "Succeeded", "progress": 100, "description": result.detail}
        return {
            "observedGeneration": obj["metadata"].get("generation", 0), "state": "Isolated",
            "lastOperation": {**operation, "lastUpdateTime": at},
            "providerStatus": {
                "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1", "kind": "SubnetIsolationStatus",
                "isolatedZoneCode": isolation.zone, "aclStatus": "created",
            },
        }  # fmt: skip

    def plan(obj: JsonObject) -> list[JsonObject] | None:
        if obj.get("status") == wanted(obj):
            return None
        test = {"op": "test", "path": "/metadata/resourceVersion", "value": obj["metadata"]["resourceVersion"]}
        return [test, {"op": "add", "path": "/status", "value": wanted(obj)}]

    async def read() -> tuple[str, JsonObject]:
        return f"{path}/status", await api.get(path)

    change = ConditionalChange(plan=plan, as_asked=lambda obj: plan(obj) is None, written_by_us=lambda _: True)
    return await conditional_write_object(api, path, read, change) is not None
