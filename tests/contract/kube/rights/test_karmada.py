"""The component for Karmada lets clusters be tainted and bindings be changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bus.messages import Eviction, Taint, WorkloadRef
from reactor.demo.kube.crds import load_definitions
from tests.contract.kube.rights.acting import acting, here
from tests.integration.actions.karmada.conftest import binding
from tests.kube.deployed import REAL_CRDS, ROOT, Deployed
from tests.unit.actions.workload import builders as workloads

CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"


def karmada() -> list[Any]:
    """The kinds of a Karmada control plane: bindings and policies by their own definitions if they are here."""
    ours = {one["metadata"]["name"]: one for one in load_definitions([ROOT / "tests/data/karmada/definitions.yaml"])}
    if REAL_CRDS.is_dir():
        ours |= {
            name: one
            for one in load_definitions(sorted(REAL_CRDS.glob("*.yaml")))
            if (name := one["metadata"]["name"]) in ours
        }
    return [*ours.values()]


@asynccontextmanager
async def scheduled(us: Deployed, path: str) -> AsyncIterator[None]:
    """Let each generation of the binding be answered with what it asks for, as a scheduler would that agrees."""

    async def answer() -> None:
        while True:
            found = (await us.admin.get(path)).body
            status = {
                "schedulerObservedGeneration": found["metadata"]["generation"],
                "conditions": [
                    {
                        "type": "Scheduled", "status": "True", "reason": "Success", "message": "scheduled",
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                    }
                ],
            }  # fmt: skip
            if found.get("status", {}).get("schedulerObservedGeneration") != status["schedulerObservedGeneration"]:
                await us.admin.patch(f"{path}/status", {"status": status})
            await asyncio.sleep(0.05)

    answering = asyncio.create_task(answer())
    try:
        yield
    finally:
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)


async def test_the_component_for_karmada_lets_clusters_be_tainted_and_bindings_be_left(us: Deployed) -> None:
    if us.admin.server.tier != "envtest":
        pytest.skip("it makes Clusters and bindings, which a control plane at work would act upon")
    namespace, member = us.admin.namespace, f"member-{us.admin.namespace}"
    await us.define(*karmada())
    cluster = {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": member}}
    made = [
        await us.admin.post("/apis/cluster.karmada.io/v1alpha1/clusters", {**cluster, "spec": {"syncMode": "Push"}})
    ]
    us.made.append(f"{CLUSTERS}/{member}")
    path = us.admin.path("resourcebindings", group="work.karmada.io/v1alpha2")
    bound = here(us, binding())
    bound["spec"]["resource"]["namespace"] = namespace
    bound["spec"]["clusters"] = [{"name": name, "replicas": 3} for name in (member, "member2")]
    made.append(await us.admin.post(path, bound))
    assert [one.code for one in made] == [201, 201], made
    await us.grant("karmada")
    ref = WorkloadRef(namespace=namespace, kind="Deployment", name="nginx")
    brownout = Taint(key="reactor/brownout", effect="NoExecute")
    leaves = Eviction.model_validate({"from": member, "purgeMode": "Gracefully"})
    placed = {"member2": 3, "member3": 3}
    moved = {"leaving": (member,), "evictions": (leaves,), "workload": ref, "carrier": "Karmada"}
    async with scheduled(us, f"{path}/{bound['metadata']['name']}"), acting(us) as act:
        for action, wrote in (
            (workloads.set_taints(member, brownout, carrier="Karmada"), True),
            (workloads.set_taints(member, brownout, carrier="Karmada"), False),
            (workloads.place(placed, **moved), True),
            (workloads.evict(member, workload=ref, carrier="Karmada", clusters=placed, generation=2), False),
            (workloads.purge(member, workload=ref, carrier="Karmada", generation=3), True),
        ):
            done = await act(action)
            assert (done.status, done.wrote) == ("Done", wrote), done.detail
    found = (await us.admin.get(f"{path}/{bound['metadata']['name']}")).body["spec"]
    assert sorted(one["name"] for one in found["clusters"]) == ["member2", "member3"]
    tainted = (await us.admin.get(f"{CLUSTERS}/{member}")).body["spec"]["taints"]
    assert [one["key"] for one in tainted] == ["reactor/brownout"]
