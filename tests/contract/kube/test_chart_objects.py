"""All that the chart and kustomize render is taken by a real API server, with every field known to it."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kube.api import Api
from tests.kube.charts import ROOT, rendered, why_no_helm
from tests.kube.deployed import CRDS, kubeconfig

pytestmark = pytest.mark.skipif(bool(why_no_helm()), reason=why_no_helm())
OPERATOR = ("--set", "serviceMonitor.enabled=true,prometheusRule.enabled=true")
VARIANTS = {
    "default": OPERATOR,
    "combined": (*OPERATOR, "--set", "layout=Combined,nats.config.cluster.enabled=false"),
    "by-certificate": (
        *OPERATOR,
        "--set",
        "nats.enabled=false,bus.url={tls://nats.nats:4222},secrets=null,priorityClass.create=false",
        "--set",
        "settings.bus.certFile=/run/reactor/crt,settings.bus.keyFile=/run/reactor/key",
    ),
    "external": (*OPERATOR, "--set", "nats.enabled=false,bus.url={nats://nats.nats:4222}"),
}


async def defined(kube: Api) -> None:
    """Have the kinds of Prometheus Operator served, as its own project defines them."""
    script = ROOT / "scripts/prometheus-operator-crds"
    done = subprocess.run([script, "--built"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(
            "the definitions of Prometheus Operator are not here: scripts/prometheus-operator-crds fetches them"
        )
    for file in sorted(Path(done.stdout.strip()).glob("*.yaml")):
        made = await kube.post(CRDS, yaml.safe_load(file.read_text()))
        assert made.code in (201, 409), made.body
        plural = file.stem
        while (await kube.get(f"/apis/monitoring.coreos.com/v1/{plural}")).code != 200:
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("variant", VARIANTS)
async def test_a_real_server_takes_each_object_of_the_chart(kube: Api, tmp_path: Path, variant: str) -> None:
    if kube.server.sim is not None:
        pytest.skip("what the emulator takes proves nothing here")
    await defined(kube)
    await kube.post("/api/v1/namespaces", {"metadata": {"name": "reactor"}})
    objects = rendered(*VARIANTS[variant])
    assert {one["kind"] for one in objects} >= {"Deployment", "ServiceMonitor", "PrometheusRule", "NetworkPolicy"}
    for one in objects:
        if one["kind"] == "Deployment":
            [container] = one["spec"]["template"]["spec"]["containers"]
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
    await taken(kube, tmp_path, objects)


@pytest.mark.parametrize("overlay", ["ha", "single", "linkerd-failover"])
async def test_a_real_server_takes_each_object_of_an_overlay(kube: Api, tmp_path: Path, overlay: str) -> None:
    if kube.server.sim is not None:
        pytest.skip("what the emulator takes proves nothing here")
    await kube.post("/api/v1/namespaces", {"metadata": {"name": "reactor"}})
    done = subprocess.run(
        ["kubectl", "kustomize", ROOT / "deploy/kustomize/overlays" / overlay], capture_output=True, check=True
    )
    # The namespace is there already: what is not there nothing can be tried in.
    objects = [one for one in yaml.safe_load_all(done.stdout) if one["kind"] != "Namespace"]
    await taken(kube, tmp_path, objects)


async def taken(kube: Api, tmp_path: Path, objects: list[Any]) -> None:
    """Have a real server look at each of them, as if they were applied."""
    file = tmp_path / "objects.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    admin = kubeconfig(kube.server, tmp_path / "kubeconfig")
    words = ["kubectl", "--kubeconfig", admin, "apply", "--dry-run=server", "--validate=strict", "-f", file]
    process = await asyncio.create_subprocess_exec(
        *map(str, words), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    said, wrong = await process.communicate()
    assert process.returncode == 0, wrong.decode()
    assert "Warning" not in wrong.decode()
    assert len(said.decode().splitlines()) == len(objects)
