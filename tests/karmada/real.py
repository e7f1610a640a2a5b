"""A real Karmada: its API server and components, and three members in Push mode with a substitute for kubelets."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

from tests.karmada.api_server import START_SECONDS, ApiServer, Authority, binary
from tests.kube import envtest
from tests.ports import free_port

MEMBERS = ("m1", "m2", "m3")
COMPONENTS = ("aggregated-apiserver", "webhook", "controller-manager", "scheduler")
CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"


def source() -> Path:
    """Give the checkout of karmada-io/karmada."""
    return Path(os.environ.get("KARMADA_SOURCE", ""))


def why_not() -> str:
    """Say why there is no real Karmada here; "" when there is."""
    if not os.environ.get("KARMADA_SOURCE"):
        return "KARMADA_SOURCE names no checkout of karmada-io/karmada (make karmada)"
    if not (source() / "artifacts/deploy/webhook-configuration.yaml").exists():
        return f"KARMADA_SOURCE={source()} is no checkout of karmada-io/karmada"
    missing = [name for name in COMPONENTS if binary(name) is None]
    return f"KARMADA_BINARIES has no karmada-{missing[0]}: run make karmada" if missing else envtest.why_not()


class Karmada:
    """A running one. Flags of its components can be changed while it runs."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="karmada-"))
        authority = Authority(self._folder / "pki")
        self.plane = ApiServer("karmada", self._folder / "karmada", authority)
        self.members = {name: ApiServer(name, self._folder / name, authority) for name in MEMBERS}
        self._authority = authority
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start all of it and wait until its clusters are Ready."""
        for server in (self.plane, *self.members.values()):
            server.start()
        for server in (self.plane, *self.members.values()):
            server.wait()
        aggregated, webhook = free_port(), free_port()
        self._install(aggregated)
        flag = f"--kubeconfig={self.plane.kubeconfig}"
        tls = (
            f"--tls-cert-file={self._authority['server.crt']}",
            f"--tls-private-key-file={self._authority['server.key']}",
        )
        self.run(
            "aggregated-apiserver", flag, f"--authentication-kubeconfig={self.plane.kubeconfig}",
            f"--authorization-kubeconfig={self.plane.kubeconfig}", f"--etcd-servers={self.plane.etcd}", *tls,
            "--bind-address=127.0.0.1", f"--secure-port={aggregated}", "--audit-log-path=/dev/null",
        )  # fmt: skip
        folder = self._folder / "webhook"
        folder.mkdir()
        for ours, theirs in (("server.crt", "tls.crt"), ("server.key", "tls.key")):
            shutil.copy(self._authority[ours], folder / theirs)
        self.run(
            "webhook", flag, "--bind-address=127.0.0.1", f"--secure-port={webhook}", f"--cert-dir={folder}",
            *_metrics(),
        )  # fmt: skip
        self.plane.wait(CLUSTERS)
        self._webhooks(webhook)
        for name, member in self.members.items():
            self._join(name, member)
        self.controller_manager()
        self.scheduler()
        _until(lambda: all(self.ready(name) for name in MEMBERS), "all clusters are Ready", self.plane)

    def controller_manager(self, *flags: str) -> None:
        """Start it, or start it again with these flags."""
        self.run(
            "controller-manager", f"--kubeconfig={self.plane.kubeconfig}", "--leader-elect=false",
            "--cluster-status-update-frequency=1s", "--cluster-failure-threshold=1s", "--cluster-success-threshold=1s",
            *_metrics(), *flags,
        )  # fmt: skip

    def scheduler(self, *flags: str) -> None:
        """The same for the scheduler."""
        self.run(
            "scheduler", f"--kubeconfig={self.plane.kubeconfig}", "--leader-elect=false", "--v=4", *_metrics(), *flags
        )

    def run(self, component: str, *flags: str) -> None:
        """Start a component; one that runs is ended first."""
        self.end(component)
        with (self._folder / f"{component}.log").open("ab") as log:
            command = [str(binary(component)), *flags]
            self._running[component] = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder)

    def end(self, component: str) -> None:
        """End a component."""
        if (process := self._running.pop(component, None)) is not None:
            process.kill()
            process.wait()

    def log(self, component: str) -> str:
        """The end of what a component wrote."""
        return (self._folder / f"{component}.log").read_text("utf-8", "replace")[-4000:]

    def stop(self) -> None:
        """End everything."""
        for component in reversed([*self._running]):
            self.end(component)
        for server in (*self.members.values(), self.plane):
            server.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def ready(self, name: str) -> bool:
        """True if a cluster is Ready."""
        conditions = self.plane.request("GET", f"{CLUSTERS}/{name}").get("status", {}).get("conditions") or []
        return any((one["type"], one["status"]) == ("Ready", "True") for one in conditions)

    def apply(self, obj: dict[str, Any]) -> Any:
        """Apply an object of a namespace or of none on the control plane."""
        group, _, version = obj["apiVersion"].rpartition("/")
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        namespace = obj["metadata"].get("namespace")
        parts = [root, f"namespaces/{namespace}" if namespace else "", plural(obj["kind"]), obj["metadata"]["name"]]
        path = "/".join(part for part in parts if part)
        return self.plane.request("PATCH", f"{path}?fieldManager=test&force=true", obj, APPLY)

    def _install(self, aggregated: int) -> None:
        for name in ("karmada-system", "karmada-cluster"):
            self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for path in sorted((source() / "charts/karmada/_crds/bases").glob("*/*.yaml")):
            for one in yaml.safe_load_all(path.read_text("utf-8")):
                self.apply(one)
        service = "karmada-aggregated-apiserver"
        self.apply(
            {
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": service, "namespace": "karmada-system"},
                "spec": {"type": "ExternalName", "externalName": "localhost"},
            }
        )  # fmt: skip
        self.apply(
            {
                "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                "metadata": {"name": "v1alpha1.cluster.karmada.io"},
                "spec": {
                    "caBundle": self._ca(), "group": "cluster.karmada.io", "version": "v1alpha1",
                    "groupPriorityMinimum": 2000, "versionPriority": 10,
                    "service": {"name": service, "namespace": "karmada-system", "port": aggregated},
                },
            }
        )  # fmt: skip

    def _webhooks(self, at: int) -> None:
        text = (source() / "artifacts/deploy/webhook-configuration.yaml").read_text("utf-8")
        text = text.replace("{{caBundle}}", self._ca())
        text = text.replace("https://karmada-webhook.karmada-system.svc:443", f"https://127.0.0.1:{at}")
        for one in yaml.safe_load_all(text):
            self.apply(one)

    def _ca(self) -> str:
        return base64.b64encode(Path(self._authority["ca.crt"]).read_bytes()).decode()

    def _join(self, name: str, member: ApiServer) -> None:
        token = base64.b64encode(member.token.encode()).decode()
        refs = {}
        for key, secret in (("secretRef", name), ("impersonatorSecretRef", f"{name}-impersonator")):
            metadata = {"name": secret, "namespace": "karmada-cluster"}
            data = {"token": token, "caBundle": self._ca()}
            self.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
            refs[key] = metadata
        _node(member)
        uid = member.request("GET", "/api/v1/namespaces/kube-system")["metadata"]["uid"]
        cluster = {
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name},
            "spec": {"id": uid, "apiEndpoint": member.url, "syncMode": "Push", **refs},
        }  # fmt: skip
        self.plane.request("POST", CLUSTERS, cluster)


def _node(member: ApiServer) -> None:
    """Let a member have room, as Karmada counts it."""
    room = {"cpu": "64", "memory": "256Gi", "pods": "200"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}}
    member.request("POST", "/api/v1/nodes", node)
    member.request("PATCH", "/api/v1/nodes/node", {"spec": {"taints": None}}, MERGE)
    ready = [{"type": "Ready", "status": "True", "reason": "Test", "message": "test"}]
    status = {"status": {"allocatable": room, "capacity": room, "conditions": ready}}
    member.request("PATCH", "/api/v1/nodes/node/status", status, MERGE)


def plural(kind: str) -> str:
    """Give the collection of a kind."""
    return f"{kind[:-1]}ies".lower() if kind.endswith("y") else f"{kind}s".lower()


def _metrics() -> tuple[str, str]:
    return f"--metrics-bind-address=127.0.0.1:{free_port()}", f"--health-probe-bind-address=127.0.0.1:{free_port()}"


def _until(true: Any, what: str, server: ApiServer) -> None:
    ends = time.monotonic() + START_SECONDS
    while not true():
        if time.monotonic() > ends:
            raise TimeoutError(f"not in time: {what}; {server.log()}")
        time.sleep(0.2)
