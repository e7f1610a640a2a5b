"""A real server's answers when it refuses a copy, and the reason that the reactor reports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from bus.messages import Outcome, WorkloadRef
from tests.contract.kube.memory import Memory, remembered
from tests.contract.kube.rights.acting import acting
from tests.kube.api import PATIENCE
from tests.kube.deployed import Deployed
from tests.unit.actions.workload import builders as workloads

APPS, ADMISSION = "apps/v1", "/apis/admissionregistration.k8s.io/v1"


async def placed(us: Deployed, namespace: str = "") -> Outcome:
    """Try to place nginx, with the rights for it, into the test's namespace or another one."""
    namespace = namespace or us.admin.namespace
    ref = WorkloadRef(namespace=namespace, kind="Deployment", name="nginx")
    async with acting(us, templates=Memory(remembered(namespace))) as act:
        return await act(workloads.place({"it": 1}, workload=ref))


def told(outcome: Outcome) -> tuple[str, str | None]:
    return outcome.status, outcome.reason


async def test_a_quota_is_named(us: Deployed) -> None:
    await us.grant("workloads", "workloads-secrets")
    none = {"count/deployments.apps": "0"}
    await us.admin.post(us.admin.path("resourcequotas"), {"metadata": {"name": "apps"}, "spec": {"hard": none}})
    used = {"status": {"hard": none, "used": none}}  # as its controller says, and does where there is one
    await us.admin.patch(us.admin.path("resourcequotas", "apps", subresource="status"), used)
    refused = await placed(us)
    assert told(refused) == ("Failed", "QuotaExceeded"), refused.detail
    assert "wrote ConfigMap/settings" in refused.detail
    assert "no permission would help" in refused.detail


@asynccontextmanager
async def policy(us: Deployed) -> AsyncIterator[None]:
    """Let a policy of the cluster refuse Deployments in the test's namespace."""
    name = f"none-{us.admin.namespace}"
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]}
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": us.admin.namespace}}}
    body: Any = {
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "false", "message": "no Deployments in here"}],
        },
    }
    binding = {"policyName": name, "validationActions": ["Deny"], "matchResources": here}
    for kind, one in (
        ("validatingadmissionpolicies", body),
        ("validatingadmissionpolicybindings", {"metadata": {"name": name}, "spec": binding}),
    ):
        made = await us.admin.post(f"{ADMISSION}/{kind}", one)
        assert made.code == 201, made.body
        us.made.append(f"{ADMISSION}/{kind}/{name}")
    probe = workloads.deployment(name="probe")
    probe["metadata"]["namespace"] = us.admin.namespace
    async with asyncio.timeout(PATIENCE):
        while (await us.admin.post(us.admin.path("deployments", group=APPS), probe, dryRun="All")).code == 201:
            await asyncio.sleep(0.1)  # a policy is in force some moments after it was made
    yield


async def test_a_policy_of_the_cluster_is_named(us: Deployed) -> None:
    await us.grant("workloads", "workloads-secrets")
    async with policy(us):
        refused = await placed(us)
    assert told(refused) == ("Failed", "AdmissionDenied"), refused.detail
    assert "no Deployments in here" in refused.detail


async def test_a_namespace_that_is_going_is_told_from_one_that_is_missing(us: Deployed) -> None:
    await us.grant("workloads", "workloads-secrets")
    elsewhere = f"{us.admin.namespace}-going"
    missing = await placed(us, elsewhere)
    assert told(missing) == ("Failed", "NamespaceMissing"), missing.detail
    held = {"metadata": {"name": elsewhere, "finalizers": ["example.com/hold"]}}
    assert (await us.admin.post("/api/v1/namespaces", held)).code == 201
    try:
        await us.admin.delete(f"/api/v1/namespaces/{elsewhere}")
        refused = await placed(us, elsewhere)
        assert told(refused) == ("Failed", "NamespaceTerminating"), refused.detail
    finally:
        await us.admin.patch(f"/api/v1/namespaces/{elsewhere}", {"metadata": {"finalizers": None}})


async def test_a_copy_that_cannot_become_ours_is_invalid(us: Deployed) -> None:
    await us.grant("workloads", "workloads-secrets")
    first = await placed(us)
    assert told(first) == ("Done", None), first.detail
    ref = WorkloadRef(namespace=us.admin.namespace, kind="Deployment", name="nginx")
    other = remembered(us.admin.namespace)
    spec = other[ref]["spec"]
    spec["selector"] = {"matchLabels": {"app": "other"}}
    spec["template"]["metadata"]["labels"] = {"app": "other"}
    async with acting(us, templates=Memory(other)) as act:
        refused = await act(workloads.place({"it": 1}, workload=ref, generation=2))
    assert told(refused) == ("Failed", "Invalid"), refused.detail
    assert "field is immutable" in refused.detail


async def test_a_copy_that_finalizers_hold_says_by_whom(us: Deployed) -> None:
    await us.grant("workloads", "workloads-secrets")
    assert told(await placed(us)) == ("Done", None)
    path = us.admin.path("deployments", "nginx", APPS)
    await us.admin.patch(path, {"metadata": {"finalizers": ["example.com/hold"]}})
    try:
        ref = WorkloadRef(namespace=us.admin.namespace, kind="Deployment", name="nginx")
        async with acting(us) as act:
            held = await act(workloads.purge("it", workload=ref, generation=2))
        assert told(held) == ("Failed", "Terminating"), held.detail
        assert "held by example.com/hold" in held.detail
        again = await placed(us)
        assert told(again) == ("Failed", "CopyTerminating"), again.detail
    finally:
        await us.admin.patch(path, {"metadata": {"finalizers": None}})
