"""Carrier Gardener: the Shoot is asked to isolate its zone, as GEP-21 has it.

Two ways. A Gardener that knows GEP-21 does everything after the Shoot's annotation, and the steps wait for its status.
With `seed` in the rule we write Worker and SubnetIsolation ourselves, in GEP-21's order: for a Gardener whose provider
extension knows them but whose gardenlet does not. Way back: the network first, the machines last. A Shoot that is
being deleted gets its network back at once, as GEP-21 has it: subnets in use would keep its infrastructure without end.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import quote

from reactor.actions.annotations import notes_of
from reactor.actions.conditional_write import ConditionalChange, Plan, conditional_write_object
from reactor.actions.outcomes import Declined, NotAsAsked
from reactor.actions.zone import shift_traffic, shoot, subnet_isolation
from reactor.actions.zone.isolation_context import InProgress, IsolationContext, StepResult
from reactor.actions.zone.step_settings import Reference
from reactor.actions.zone.zone_marks import GARDENER_OPERATION, SHOOT_ISOLATED
from reactor.actions.zone.zone_nodes import drop, put_note
from reactor.clients.kubernetes_port import JsonObject, KubeApi, NotFound
from rules.kinds.zone.plan import ANNOTATION_REMOVED

TakeGardenStep = Callable[[IsolationContext], Awaitable[StepResult]]


async def ask(isolation: IsolationContext) -> StepResult:
    """Fence: ask for the isolation, on the Shoot and, with a seed, on its Worker."""
    wrote = await _on_shoot(isolation, lambda obj: shoot.asking(obj, isolation.mark))
    if isolation.settings.seed is not None:
        wrote = await _on_worker(isolation, isolation.mark) or wrote
    return StepResult(wrote, f"the Shoot is asked to isolate {isolation.mark} ({isolation.zone})")


async def end(isolation: IsolationContext) -> StepResult:
    """Fence undone: nothing asks for the isolation any more, and the machines are back."""
    try:
        wrote = await _on_shoot(isolation, shoot.ending)
    except NotFound:
        return StepResult(wrote=False, detail="the Shoot is gone, and with it whatever asked for the isolation")
    if isolation.settings.seed is None:
        return StepResult(wrote, shoot.returned(await _shoot(isolation), isolation))
    wrote = await _on_worker(isolation, None) or wrote
    return StepResult(wrote, f"{_settled(await _worker(isolation))}: its machines of {isolation.zone} are back")


async def empty(isolation: IsolationContext) -> StepResult:
    """Evacuate: wait until the machines of the zone are drained and gone."""
    if isolation.settings.seed is None:
        return StepResult(wrote=False, detail=shoot.isolated(await _shoot(isolation), isolation))
    worker = await _worker(isolation)
    done = _settled(worker)
    code = (worker.get("status") or {}).get("isolatedZoneCode")
    if code is None:
        raise InProgress(f"{done}, but its status does not name the isolated zone yet")
    if code != isolation.zone:
        raise Declined(
            "ZoneMismatch", f"the rule says that {isolation.mark} is {isolation.zone}, the Worker says {code}"
        )
    return StepResult(wrote=False, detail=f"{done}: no machines in {isolation.mark} ({code})")


async def cut(isolation: IsolationContext) -> StepResult:
    """CutNetwork: the SubnetIsolation is in effect; without a seed the Shoot says that Gardener has made it so."""
    if isolation.settings.seed is None:
        return StepResult(wrote=False, detail=shoot.isolated(await _shoot(isolation), isolation))
    return await subnet_isolation.cut(isolation)


async def reopen(isolation: IsolationContext) -> StepResult:
    """CutNetwork undone: without a seed that is the end of the isolation, whose order is Gardener's."""
    if isolation.settings.seed is None:
        return await end(isolation)
    return await subnet_isolation.restore(isolation)


async def verify(isolation: IsolationContext) -> StepResult:
    """Verify: all of it is in effect, and no other writer has taken the annotation away."""
    asked = notes_of(await _shoot(isolation)).get(SHOOT_ISOLATED)
    if asked != isolation.mark:
        raise NotAsAsked(f"the Shoot's annotation {SHOOT_ISOLATED} says {asked}, not {isolation.mark}")
    results = [await empty(isolation)]
    if "CutNetwork" in isolation.settings.steps and isolation.settings.seed is not None:
        results.append(await cut(isolation))
    return StepResult(any(one.wrote for one in results), "; ".join(one.detail for one in results))


async def _shift(isolation: IsolationContext) -> StepResult:
    return await shift_traffic.shift(await isolation.world.clusters(isolation.action.cluster), isolation)


async def _give_back(isolation: IsolationContext) -> StepResult:
    return await shift_traffic.give_back(await isolation.world.clusters(isolation.action.cluster), isolation)


def _while_asked(step: TakeGardenStep) -> TakeGardenStep:
    """The step, unless the Shoot is being deleted (then what is cut is opened), or a person took the annotation away.

    Raises Declined (ShootDeleted, AnnotationRemoved): nothing more is isolated.
    """

    async def checked(isolation: IsolationContext) -> StepResult:
        obj = await _shoot(isolation)
        if "deletionTimestamp" not in obj["metadata"]:
            first = isolation.action.step == "Fence" and not isolation.standing  # it is this one that asks
            if not first and SHOOT_ISOLATED not in notes_of(obj):
                raise Declined(ANNOTATION_REMOVED, f"another writer has taken {SHOOT_ISOLATED} off the Shoot")
            return await step(isolation)
        words = "the Shoot is being deleted, so its zone is isolated no further"
        if isolation.settings.seed is not None:
            words += f"; {(await subnet_isolation.restore(isolation)).detail}"
        raise Declined("ShootDeleted", words)

    return checked


async def _nothing(isolation: IsolationContext) -> StepResult:
    return StepResult(wrote=False, detail=f"{isolation.action.step} leaves nothing to undo: pods are never moved back")


STEPS: Mapping[tuple[str, bool], TakeGardenStep] = {
    ("Fence", False): _while_asked(ask), ("Fence", True): end,
    ("ShiftTraffic", False): _while_asked(_shift), ("ShiftTraffic", True): _give_back,
    ("Evacuate", False): _while_asked(empty), ("Evacuate", True): _nothing,
    ("CutNetwork", False): _while_asked(cut), ("CutNetwork", True): reopen,
    ("Verify", False): _while_asked(verify), ("Verify", True): _nothing,
}  # fmt: skip
"""Functions of the steps, by step and undo."""


def _where(reference: Reference | None, key: str) -> Reference:
    if reference is None:
        raise Declined("SettingMissing", f"carrier Gardener needs {key} in the rule")
    return reference


async def _place(isolation: IsolationContext) -> tuple[KubeApi, str]:
    where = _where(isolation.settings.shoot, "shoot")
    namespace, name = quote(where.namespace, safe=""), quote(where.name, safe="")
    api = await isolation.world.clusters(where.cluster or "garden")
    return api, f"/apis/core.gardener.cloud/v1beta1/namespaces/{namespace}/shoots/{name}"


async def _shoot(isolation: IsolationContext) -> JsonObject:
    if not isolation.action.zone_id:
        raise Declined("ZoneIdMissing", f"Gardener isolates by the zone's id: give {isolation.zone} one in the rule")
    api, path = await _place(isolation)
    return await api.get(path)


async def _on_shoot(isolation: IsolationContext, plan: Plan) -> bool:
    await _shoot(isolation)  # says what is missing in the rule before anything is written
    api, path = await _place(isolation)
    return await _changed(api, path, plan)


async def _worker_place(isolation: IsolationContext) -> tuple[KubeApi, str]:
    seed, name = _where(isolation.settings.seed, "seed"), _where(isolation.settings.shoot, "shoot").name
    namespace = quote(seed.namespace, safe="")
    group = "/apis/extensions.gardener.cloud/v1alpha1"
    return await isolation.world.clusters(
        seed.cluster
    ), f"{group}/namespaces/{namespace}/workers/{quote(name, safe='')}"


async def _worker(isolation: IsolationContext) -> JsonObject:
    api, path = await _worker_place(isolation)
    return await api.get(path)


async def _on_worker(isolation: IsolationContext, zone_id: str | None) -> bool:
    def plan(worker: JsonObject) -> list[JsonObject] | None:
        current = (worker.get("spec") or {}).get("isolatedZoneID")
        if current == zone_id:
            return None
        at = "/spec/isolatedZoneID"
        operations = drop(at, current)
        if zone_id is not None:
            operations += [{"op": "test", "path": at, "value": None}, {"op": "add", "path": at, "value": zone_id}]
        return [*operations, *put_note(worker, GARDENER_OPERATION, "reconcile")]

    api, path = await _worker_place(isolation)
    try:
        return await _changed(api, path, plan)
    except NotAsAsked as error:
        raise Declined(
            "WorkerUnaware", f"{path}: this Worker has no spec.isolatedZoneID: its CRD is not GEP-21's"
        ) from error


def _settled(worker: JsonObject) -> str:
    """Say that the current generation of the Worker is reconciled. Raises InProgress with the extension's own words."""
    status = worker.get("status") or {}
    operation = status.get("lastOperation") or {}
    name = worker["metadata"]["name"]
    seen = status.get("observedGeneration", 0) >= worker["metadata"].get("generation", 0)
    if seen and operation.get("state") == "Succeeded" and GARDENER_OPERATION not in notes_of(worker):
        return f"Worker {name} is reconciled"
    words = (status.get("lastError") or {}).get("description") or operation.get("description") or "not yet seen"
    raise InProgress(f"Worker {name} is {operation.get('state', 'Pending')}: {words}")


async def _changed(api: KubeApi, path: str, plan: Plan) -> bool:
    async def read() -> tuple[str, JsonObject]:
        return path, await api.get(path)

    change = ConditionalChange(plan=plan, as_asked=lambda obj: plan(obj) is None, written_by_us=lambda _: True)
    return await conditional_write_object(api, path, read, change) is not None
