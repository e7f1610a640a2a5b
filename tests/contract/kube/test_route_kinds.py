"""Each kind of route on every API server there is: watched, moved by one write, verified, and left alone otherwise."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bus.messages import Mode, Outcome, SetWeights
from reactor.actions.carrier_context import CarrierContext
from reactor.actions.catalog import carry_out
from reactor.actions.traffic.weights import backends_of
from reactor.clients.kubernetes_port import KubeApi
from reactor.runtime.clock import Clock
from reactor.sources.kubernetes import route_inventory
from reactor.sources.source_context import SourceContext
from rules.kinds.traffic.model import RouteSelection
from tests.contract.kube.rights.test_base import definitions, served
from tests.contract.kube.test_sources import heard, world
from tests.integration.sources.conftest import Heard, Running, running
from tests.kube.api import Api
from tests.kube.deployed import Deployed
from tests.unit.actions.builders import set_weights
from tests.unit.actions.route_samples import CUSTOM, NAMES, POOLS, SAMPLES, Sample

__all__ = ["heard", "running", "world"]


def pools() -> Any:
    """The definition of the samples' kind of the settings."""
    member = {
        "type": "object", "required": ["target", "share"],
        "properties": {
            "target": {"type": "object", "required": ["ref"], "properties": {"ref": {"type": "string"}}},
            "share": {"type": "integer", "minimum": 0, "maximum": 1000}, "zone": {"type": "string"},
        },
    }  # fmt: skip
    pool = {"type": "object", "properties": {"members": {"type": "array", "items": member}}}
    rule = {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, "pool": pool}}
    spec = {"type": "object", "properties": {"note": {"type": "string"}, "rules": {"type": "array", "items": rule}}}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": POOLS.versions[0], "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{POOLS.plural}.{POOLS.group}"},
        "spec": {
            "group": POOLS.group, "scope": "Namespaced", "versions": [version],
            "names": {"plural": POOLS.plural, "singular": "pool", "kind": "Pool", "listKind": "PoolList"},
        },
    }  # fmt: skip


@pytest.fixture
async def server(kube: Api, tmp_path: Path) -> AsyncIterator[Deployed]:
    """The server with all kinds, whatever user we are there."""
    made = Deployed(kube, tmp_path)
    await made.define(*definitions(), pools())
    yield made
    await made.leave()


def spec_without_weights(sample: Sample, obj: Any) -> Any:
    found = copy.deepcopy(obj)
    for entry in backends_of(sample.described, obj, sample.ref(obj["metadata"]["namespace"])):
        one = found
        for token in entry.at.split("/")[1:]:
            one = one[int(token) if isinstance(one, list) else token]
        one.pop(entry.field, None)
    return found["spec"]


@pytest.mark.parametrize("sample", SAMPLES, ids=NAMES)
async def test_a_route_is_watched_and_moved_by_one_write(
    server: Deployed, world: SourceContext, heard: Heard, running: Running, sample: Sample
) -> None:
    kind, namespace = sample.described, server.admin.namespace
    version = await served(server, kind)
    path = server.admin.path(kind.plural, group=f"{kind.group}/{version}")
    made = await server.admin.post(path, sample.object([sample.whole, 0], version=version, namespace=namespace))
    assert made.code == 201, made.body
    home, away = {"p": sample.whole, "s": 0}, {"p": 0, "s": sample.whole}
    api = await world.clusters.get("here")

    def have(weights: dict[str, int]) -> bool:
        last = heard.routes[-1] if heard.routes else None
        return last is not None and {one.service: one.weight for one in last.backends} == weights | sample.others

    selection = RouteSelection(
        cluster="here", kind=sample.kind, custom_kind=sample.custom_kind or None, namespace=namespace, name="checkout",
        rule=sample.rule,
    )  # fmt: skip
    async with (
        running(route_inventory.run([selection], replace(world, route_kinds=CUSTOM))),
        aiohttp.ClientSession() as http,
    ):
        acts = CarrierContext(Clock(), _only(api), {}, http, route_kinds=CUSTOM)

        async def act(weights: dict[str, int], **more: Any) -> Outcome:
            action: SetWeights = set_weights(weights, sample.ref(namespace), **more)
            return await carry_out(action, acts)

        await heard.until(lambda: have(home))
        rehearsed = await act(away, mode=Mode.DRY_RUN)
        assert (rehearsed.status, rehearsed.reason) == ("Refused", "DryRun")
        done = await act(away, generation=2)
        assert (done.status, done.wrote) == ("Done", True), done.detail
        await heard.until(lambda: have(away))
        again = await act(away, generation=2)
        assert (again.status, again.wrote) == ("Done", False), again.detail
        stale = await act(home, generation=1)
        assert (stale.status, stale.reason) == ("Refused", "Stale")
        found = (await server.admin.get(f"{path}/checkout")).body
        assert spec_without_weights(sample, found) == spec_without_weights(sample, made.body)
        assert found["metadata"]["annotations"]["reactor/decision"].endswith("/2")
        back = await act(home, generation=3)
        assert (back.status, back.wrote) == ("Done", True), back.detail
        await heard.until(lambda: have(home))
    events = (await server.admin.get(server.admin.path("events", group="events.k8s.io/v1"))).body["items"]
    assert [one["regarding"]["name"] for one in events] == ["checkout", "checkout"]


def _only(api: KubeApi) -> Any:
    async def clusters(_: str) -> KubeApi:
        return api

    return clusters


@pytest.mark.parametrize("sample", SAMPLES, ids=NAMES)
async def test_another_writers_write_in_between_is_neither_lost_nor_doubled(
    server: Deployed, world: SourceContext, sample: Sample
) -> None:
    kind, namespace = sample.described, server.admin.namespace
    version = await served(server, kind)
    path = server.admin.path(kind.plural, group=f"{kind.group}/{version}")
    await server.admin.post(path, sample.object([sample.whole, 0], version=version, namespace=namespace))
    api = await world.clusters.get("here")
    theirs = {"metadata": {"annotations": {"theirs": "1"}}}
    obj = await api.get(f"{path}/checkout")
    await server.admin.patch(f"{path}/checkout", theirs)
    async with aiohttp.ClientSession() as http:
        acts = CarrierContext(Clock(), _only(_Behind(api, obj)), {}, http, route_kinds=CUSTOM)
        done = await carry_out(set_weights({"p": 0, "s": sample.whole}, sample.ref(namespace)), acts)
    assert (done.status, done.wrote) == ("Done", True), done.detail
    assert (await server.admin.get(f"{path}/checkout")).body["metadata"]["annotations"]["theirs"] == "1"


class _Behind:
    """An API whose first read of the route is from before another writer's write."""

    def __init__(self, api: KubeApi, obj: Any) -> None:
        self._api, self._old = api, [obj]

    async def get(self, path: str) -> Any:
        return self._old.pop() if path.endswith("/checkout") and self._old else await self._api.get(path)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)
