"""The seed's part, on the real CRDs: Gardener's Worker knows no isolation, our SubnetIsolation does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.gardener.conftest import Shoot
from tests.gardener.garden import NAMESPACE
from tests.integration.actions.zone.scene import Hurried, Reactor

EXTENSIONS = "/apis/extensions.gardener.cloud/v1alpha1"


@pytest.fixture
def us(prod: Shoot) -> Reactor:
    """The reactor with a seed of its own namespace, which has the Worker as gardenlet makes it."""
    namespace = f"shoot--x--{prod.name}"
    server = prod.garden.server
    server.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    pool = {
        "name": "w", "minimum": 2, "maximum": 4, "machineType": "m5.large", "maxSurge": 1, "maxUnavailable": 0,
        "machineImage": {"name": "gardenlinux", "version": "1592.1.0"}, "zones": ["us-east-1a", "us-east-1b"],
        "userDataSecretRef": {"name": "user-data", "key": "script"},
    }  # fmt: skip
    worker: dict[str, Any] = {
        "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Worker", "metadata": {"name": prod.name},
        "spec": {
            "type": "aws", "region": "us-east-1", "pools": [pool],
            "secretRef": {"name": "cloudprovider", "namespace": namespace},
        },
    }  # fmt: skip
    server.request("POST", f"{EXTENSIONS}/namespaces/{namespace}/workers", worker)
    settings = {
        "shoot": {"cluster": "garden", "namespace": NAMESPACE, "name": prod.name},
        "seed": {"cluster": "seed", "namespace": namespace},
    }
    apis = {"garden": prod.api, "seed": prod.api}
    return Reactor(apis, Hurried(), settings, steps=("Fence", "CutNetwork"), carrier="Gardener")


async def test_a_worker_that_does_not_know_the_field_is_told_and_stays_as_it_is(prod: Shoot, us: Reactor) -> None:
    path = f"{EXTENSIONS}/namespaces/shoot--x--{prod.name}/workers/{prod.name}"
    before = prod.garden.server.request("GET", path)["spec"]
    outcome = await us.once(us.action("Fence"))
    assert (outcome.status, outcome.reason) == ("Failed", "WorkerUnaware"), outcome
    assert prod.garden.server.request("GET", path)["spec"] == before


async def test_a_subnet_isolation_is_made_waited_for_and_taken_away(prod: Shoot, us: Reactor) -> None:
    await us.once(us.action("Fence"))
    outcome = await us.once(us.action("CutNetwork"))
    assert outcome.detail == "SubnetIsolation isolate-use1-az6 is Pending: not yet seen"
    path = f"{EXTENSIONS}/namespaces/shoot--x--{prod.name}/subnetisolations"
    assert [one["spec"] for one in prod.garden.server.request("GET", path)["items"]] == [{"isolatedZoneID": "use1-az6"}]
    assert (await us.once(us.action("CutNetwork", undo=True))).status == "Done"
    assert prod.garden.server.request("GET", path)["items"] == []
