"""The components for workloads let them be placed, read, evicted and removed."""

from __future__ import annotations

from bus.messages import WorkloadRef
from reactor.actions.workload.copy_sources import CopySources, dependencies
from reactor.actions.zone.evictions import EvictionResult, evict
from reactor.clients.kubernetes_port import KubeApi
from reactor.runtime.clock import Clock
from tests.contract.kube.memory import Memory, remembered
from tests.contract.kube.objects import budget, pod
from tests.contract.kube.rights.acting import acting
from tests.kube.deployed import Deployed
from tests.unit.actions.workload import builders as workloads


async def test_the_components_for_workloads_let_one_be_placed_read_and_removed(us: Deployed) -> None:
    namespace = us.admin.namespace
    ref = WorkloadRef(namespace=namespace, kind="Deployment", name="nginx")
    await us.grant("base", "workloads")
    async with acting(us, templates=Memory(remembered(namespace))) as act:
        refused = await act(workloads.place({"it": 1}, workload=ref))
        assert (refused.status, refused.reason) == ("Failed", "Forbidden"), refused.detail
        assert "secrets" in refused.detail
        await us.grant("workloads-secrets")
        placed = await act(workloads.place({"it": 1}, workload=ref))
        assert (placed.status, placed.wrote) == ("Done", True), placed.detail
        async with us.client() as api:

            async def cluster(_: str) -> KubeApi:
                return api

            copies = CopySources(("it",), cluster)
            read = await dependencies(copies, ref, await copies.find(ref))
            assert [one.need.object for one in read if isinstance(one.copy, Exception)] == []
            assert len(read) == len(workloads.needed())
        now = Clock().now()  # where controllers run they replace pods that leave: those are not from before
        for action, wrote in (
            (workloads.evict("it", workload=ref, generation=2, decided_at=now), True),
            (workloads.cancel("it", workload=ref, generation=3, decided_at=now), True),
            (workloads.purge("it", workload=ref, generation=4, decided_at=now), True),
            (workloads.purge("it", workload=ref, generation=4, decided_at=now), False),
        ):
            done = await act(action)
            assert (done.status, done.wrote) == ("Done", wrote), done.detail


async def test_the_components_let_pods_be_evicted_as_their_budgets_allow(us: Deployed) -> None:
    await us.admin.post(us.admin.path("pods"), pod("web-0", app="web"))
    running_and_ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    await us.admin.patch(us.admin.path("pods", "web-0", subresource="status"), running_and_ready)
    await us.admin.post(us.admin.path("poddisruptionbudgets", group="policy/v1"), budget("web", 1, app="web"))
    found = (await us.admin.get(us.admin.path("pods", "web-0"))).body
    await us.grant("workloads")
    async with us.client() as api:
        name, budget_name = f"{us.admin.namespace}/web-0", f"{us.admin.namespace}/web"
        assert await evict(api, found) == EvictionResult(name, "Blocked", f"budget {budget_name}")
        await us.admin.delete(us.admin.path("poddisruptionbudgets", "web", "policy/v1"))
        for _ in range(2):  # the second time it is gone
            assert (await evict(api, found)).status == "Leaving"
    assert (await us.admin.get(us.admin.path("pods", "web-0"))).code == 404
