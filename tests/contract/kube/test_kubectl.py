"""The real kubectl against the emulator: the client that all users have."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from reactor.demo.kube import EmulatedCluster, Emulator, write_kubeconfig
from tests.contract.kube.objects import config_map, deployment
from tests.kube.api import PATIENCE

KUBECTL = shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="no kubectl on PATH")
Run = Callable[..., Coroutine[Any, Any, str]]


@pytest.fixture
async def kubectl(sim: Emulator, east: EmulatedCluster, tmp_path: Path) -> Run:
    """Run kubectl on that cluster; a failure shows what it said."""
    path = write_kubeconfig(tmp_path / "kubeconfig", sim)
    environment = os.environ | {"KUBECONFIG": str(path), "HOME": str(tmp_path)}

    async def run(*arguments: str, stdin: Any = None) -> str:
        process = await asyncio.create_subprocess_exec(
            str(KUBECTL), *arguments, env=environment, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        async with asyncio.timeout(PATIENCE):
            said, _ = await process.communicate(json.dumps(stdin).encode() if stdin else None)
        assert process.returncode == 0, said.decode()
        return said.decode()

    return run


async def test_kubectl_creates_changes_and_deletes(kubectl: Run, east: EmulatedCluster) -> None:
    assert "created" in await kubectl("create", "-f", "-", stdin=config_map("a", color="red"))
    assert "serverside-applied" in await kubectl("apply", "--server-side", "-f", "-", stdin=deployment("web"))
    await kubectl("label", "configmap", "a", "team=shop")
    await kubectl("patch", "configmap", "a", "--type=json", "-p", '[{"op":"add","path":"/data/size","value":"big"}]')
    await kubectl("scale", "deployment", "web", "--replicas=3")
    assert east.get("configmaps", "a", "default")["data"] == {"color": "red", "size": "big"}
    assert east.get("configmaps", "a", "default")["metadata"]["labels"] == {"team": "shop"}
    assert east.get("deployments", "web", "default")["spec"]["replicas"] == 3
    await kubectl("delete", "configmap", "a", "--wait=true")
    assert east.find("configmaps", "a", "default") is None
    managers = {write.manager for write in east.log.effective("configmaps")}
    assert {"kubectl-create", "kubectl-label", "kubectl-patch"} <= managers


async def test_kubectl_shows_tables(kubectl: Run, east: EmulatedCluster) -> None:
    split = {
        "apiVersion": "split.smi-spec.io/v1alpha2",
        "kind": "TrafficSplit",
        "metadata": {"name": "checkout", "namespace": "shop"},
        "spec": {"service": "checkout-apex", "backends": []},
    }
    east.create(split)
    table = (await kubectl("get", "ts", "-n", "shop")).splitlines()
    assert table[0].split() == ["NAME", "SERVICE", "AGE"]
    assert table[1].split()[:2] == ["checkout", "checkout-apex"]
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "shop"}, "type": "Normal",
             "involvedObject": {"kind": "TrafficSplit", "namespace": "shop", "name": "checkout"},
             "reason": "FailedOver", "message": "to west"}  # fmt: skip
    east.create(event)
    assert "FailedOver" in await kubectl("get", "events", "-n", "shop")


async def test_kubectl_waits_and_knows_the_short_names(kubectl: Run, east: EmulatedCluster) -> None:
    await kubectl("wait", "--for=condition=Established", "crd/httproutes.gateway.networking.k8s.io", "--timeout=60s")
    assert "default" in await kubectl("get", "ns")
    assert "trafficsplits" in await kubectl("api-resources", "--api-group=split.smi-spec.io")


async def test_kubectl_watches(kubectl: Run, east: EmulatedCluster) -> None:
    east.create(config_map("a"))
    waiting = asyncio.create_task(kubectl("wait", "--for=delete", "configmap/a", "--timeout=60s"))
    async with asyncio.timeout(PATIENCE):
        while not any(watch.call.resource.plural == "configmaps" for watch in east.watches):
            assert not waiting.done(), waiting.result()
            await asyncio.sleep(0.01)  # kubectl is another process: that it watches can only be looked up
    east.delete("configmaps", "a", "default")
    assert "condition met" in await waiting
