"""A real garden: kube-apiserver and etcd with gardener-apiserver behind them. No controller of Gardener runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import yaml

from tests.karmada.api_server import ApiServer, Authority
from tests.kube import envtest
from tests.ports import free_port

CORE = "/apis/core.gardener.cloud/v1beta1"
NAMESPACE = "garden-x"
MERGE = "application/merge-patch+json"
ROOT = Path(__file__).resolve().parents[2]
ISOLATIONS = ROOT / "deploy/kustomize/components/zone-isolation-gardener/subnetisolations-crd.yaml"


def assets() -> Path:
    """Give the folder that scripts/gardener has filled."""
    return Path(os.environ.get("GARDENER_ASSETS", ""))


def why_not() -> str:
    """Say why there is no real Gardener here; "" when there is."""
    if not os.environ.get("GARDENER_ASSETS"):
        return "GARDENER_ASSETS names no folder with gardener-apiserver (make gardener)"
    if not (assets() / "gardener-apiserver").exists():
        return f"GARDENER_ASSETS={assets()} has no gardener-apiserver"
    return envtest.why_not()


class Garden:
    """A running one, with a project, and all that a Shoot on AWS asks for."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="garden-"))
        self._authority = Authority(self._folder / "pki")
        self.server = ApiServer("garden", self._folder / "garden", self._authority)

    def start(self) -> None:
        """Start both API servers; give the garden what a Shoot needs, and the seed's kinds."""
        self.server.start()
        self.server.wait()
        listens = free_port()
        self._serve(listens)
        self._extend(listens)
        self.server.wait(f"{CORE}/namespaces/{NAMESPACE}/shoots")
        for path, body in needed():
            self.server.request("POST", path, body)
        for file in (assets() / "workers.yaml", ISOLATIONS):
            for one in yaml.safe_load_all(file.read_text("utf-8")):
                self.server.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", one)
        self.server.wait(
            *(f"/apis/extensions.gardener.cloud/v1alpha1/{one}" for one in ("workers", "subnetisolations"))
        )

    def stop(self) -> None:
        """End everything."""
        self.server.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _serve(self, listens: int) -> None:
        kubeconfig, pki = self.server.kubeconfig, self._authority
        command = (
            str(assets() / "gardener-apiserver"), f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}", f"--authorization-kubeconfig={kubeconfig}",
            f"--etcd-servers={self.server.etcd}", f"--tls-cert-file={pki['server.crt']}",
            f"--tls-private-key-file={pki['server.key']}", "--bind-address=127.0.0.1", f"--secure-port={listens}",
            "--cluster-identity=test", "--workload-identity-token-issuer=https://issuer.invalid",
            f"--workload-identity-signing-key-file={pki['accounts.key']}",
        )  # fmt: skip
        with (self._folder / "gardener-apiserver.log").open("ab") as log:
            self.server.processes.insert(0, subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder))

    def _extend(self, listens: int) -> None:
        """Let kube-apiserver ask gardener-apiserver for what is Gardener's."""
        for name in ("garden", NAMESPACE):
            labels = {"gardener.cloud/role": "project", "project.gardener.cloud/name": "x"}
            self.server.request("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        service = {"metadata": {"name": "gardener"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
        self.server.request("POST", "/api/v1/namespaces/garden/services", service)
        self.server.request(
            "POST", "/apis/apiregistration.k8s.io/v1/apiservices",
            {
                "metadata": {"name": "v1beta1.core.gardener.cloud"},
                "spec": {
                    "group": "core.gardener.cloud", "version": "v1beta1", "groupPriorityMinimum": 10_000,
                    "versionPriority": 20, "insecureSkipTLSVerify": True,
                    "service": {"name": "gardener", "namespace": "garden", "port": listens},
                },
            },
        )  # fmt: skip


def needed() -> list[tuple[str, Any]]:
    """Objects that a Shoot on AWS needs, with the path of each: all admission plugins of Gardener are on."""
    types = {
        "ControlPlane": "aws", "Infrastructure": "aws", "Worker": "aws", "Network": "calico",
        "OperatingSystemConfig": "gardenlinux",
    }  # fmt: skip
    image = {"version": "1592.1.0", "cri": [{"name": "containerd"}], "architectures": ["amd64"]}
    owner = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "admin"}
    return [
        (f"{CORE}/projects", {"metadata": {"name": "x"}, "spec": {"namespace": NAMESPACE, "owner": owner}}),
        (f"{CORE}/controllerregistrations", {
            "metadata": {"name": "all"},
            "spec": {"resources": [{"kind": kind, "type": type_} for kind, type_ in types.items()]},
        }),
        (f"{CORE}/cloudprofiles", {
            "metadata": {"name": "aws"},
            "spec": {
                "type": "aws", "kubernetes": {"versions": [{"version": "1.33.4"}]},
                "machineImages": [{"name": "gardenlinux", "updateStrategy": "major", "versions": [image]}],
                "machineTypes": [
                    {
                        "name": "m5.large", "cpu": "2", "gpu": "0", "memory": "8Gi", "architecture": "amd64",
                        "usable": True,
                    }
                ],
                "volumeTypes": [{"name": "gp3", "class": "standard", "usable": True}],
                "regions": [{"name": "us-east-1", "zones": [{"name": "us-east-1a"}, {"name": "us-east-1b"}]}],
            },
        }),
        (f"/api/v1/namespaces/{NAMESPACE}/secrets", {"metadata": {"name": "aws"}}),
        (f"{CORE}/namespaces/{NAMESPACE}/secretbindings", {
            "metadata": {"name": "aws"}, "provider": {"type": "aws"},
            "secretRef": {"name": "aws", "namespace": NAMESPACE},
        }),
    ]  # fmt: skip


def shoot(name: str) -> Any:
    """A Shoot on AWS in two zones."""
    machine = {"type": "m5.large", "image": {"name": "gardenlinux", "version": "1592.1.0"}}
    return {
        "metadata": {"name": name, "annotations": {"a": "b"}},
        "spec": {
            "cloudProfile": {"name": "aws"}, "secretBindingName": "aws", "region": "us-east-1",
            "purpose": "evaluation", "kubernetes": {"version": "1.33.4"},
            "networking": {
                "type": "calico", "pods": "100.96.0.0/11", "nodes": "10.250.0.0/16", "services": "100.64.0.0/13",
            },
            "provider": {
                "type": "aws", "infrastructureConfig": {},
                "workers": [{
                    "name": "w", "minimum": 2, "maximum": 4, "machine": machine,
                    "volume": {"type": "gp3", "size": "50Gi"}, "zones": ["us-east-1a", "us-east-1b"],
                }],
            },
        },
    }  # fmt: skip
