"""Pods as processes: what a kubelet would make of the pods of an API server, without containers.

Each process has a mount namespace of its own, with the pod's ConfigMaps, Secrets and the token of its ServiceAccount at
the paths that the pod names, a root file system that is read-only, and the pod's user. Pods have addresses of loopback
instead of a network; names of Services and of pods are in /etc/hosts.
"""

from __future__ import annotations

import base64
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.kube.api import Api

TOKENS = "var/run/secrets/kubernetes.io/serviceaccount"
HERE = ("/etc/", "/run/", "/var/run/")
"""Folders in which a pod's files can be put without a change of this machine."""
TEMPORARY = "/tmp"  # noqa: S108 - the pod's own
CODE = (Path(sys.prefix), Path(sys.base_prefix), Path(__file__).parents[2])
"""Paths that a process reads beside its pod's files: the virtual environment, Python, the repository."""
REACTOR = (sys.executable, "-m", "reactor.cli.main")
PROGRAMS = {"reactor": REACTOR, "bus-init": REACTOR, "nats": ("nats-server",)}
"""Command that the image would start, by the container's name."""


def why_not() -> str:
    """Say why there are no pods here; "" when there are."""
    if os.geteuid() != 0:
        return "mount namespaces need root"
    if shutil.which("unshare") is None or shutil.which("setpriv") is None:
        return "unshare and setpriv are not on this machine"
    done = subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True)
    return "" if done.returncode == 0 else "mount namespaces are not allowed here"


@dataclass
class Pod:
    """One pod and its process."""

    name: str
    address: str
    folder: Path
    spec: Any
    process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """Output of its process."""
        return (self.folder / "log").read_text("utf-8", "replace")


@dataclass
class Node:
    """Node on which pods run. `ca`: the certificate of the API server."""

    api: Api
    ca: Path
    folder: Path
    pods: dict[str, Pod] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """Host names and their addresses."""
    subnet: str = field(default_factory=lambda: f"127.{random.randint(16, 250)}.{random.randint(1, 250)}")

    def address(self, name: str) -> str:
        """Give the address of a pod, always the same."""
        return self.names.setdefault(name, f"{self.subnet}.{len(self.names) + 1}")

    async def mount(self, pod: Pod) -> None:
        """Write the pod's volumes, and again when what they hold has changed: all files of a volume at once."""
        for volume in pod.spec["volumes"]:
            files: dict[str, str] = {}
            if "configMap" in volume:
                files = await self._config(volume["configMap"]["name"], pod)
            for part in volume.get("projected", {}).get("sources", []):
                files |= await self._secret(part["secret"])
            _swap(pod.folder / "volumes" / volume["name"], files)
        if pod.spec.get("automountServiceAccountToken", True):
            files = {"token": await self._token(pod.spec["serviceAccountName"]), "namespace": self.api.namespace}
            _swap(pod.folder / "account", files | {"ca.crt": self.ca.read_text()})

    async def start(self, name: str, spec: Any, *more: str) -> Pod:
        """Start a pod's first container. `more`: arguments for what would collide on one machine."""
        pod = Pod(name, self.address(name), self.folder / name, spec)
        pod.folder.mkdir(parents=True)
        await self.mount(pod)
        (pod.folder / "hosts").write_text("".join(f"{at} {name}\n" for name, at in self.names.items()))
        [container] = spec["containers"]
        command = [*PROGRAMS[container["name"]], *container["args"], *more]
        user = spec["securityContext"]["runAsUser"]
        lines = self._mounts(pod, container)
        # The one capability lets the pod's user read where Python is installed; it writes nothing by that.
        drop = (
            f"setpriv --reuid {user} --regid {user} --clear-groups --no-new-privs --bounding-set -all,+dac_read_search"
        )
        drop += " --inh-caps -all,+dac_read_search --ambient-caps -all,+dac_read_search"
        script = "set -e\n" + "\n".join(lines) + f"\ncd /\nexec {drop} {shlex.join(command)}\n"
        with (pod.folder / "log").open("ab") as log:
            pod.process = subprocess.Popen(
                ["unshare", "-m", "--propagation", "private", "sh", "-c", script],
                env=await self._environment(pod, container), stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        self.pods[name] = pod
        return pod

    def _mounts(self, pod: Pod, container: Any) -> list[str]:
        """Give shell lines that put the pod's files where the container looks for them."""
        user, mounts = pod.spec["securityContext"]["runAsUser"], container["volumeMounts"]
        layers = [pod.folder / "etc" / name for name in ("upper", "work")]
        for one in layers:
            one.mkdir(parents=True, exist_ok=True)
        upper, work = layers
        lines = [
            "mount -t tmpfs tmpfs /run",  # /var/run is this, too
            f"mount -t overlay overlay -o lowerdir=/etc,upperdir={upper},workdir={work} /etc",
            f"mount --bind {pod.folder / 'hosts'} /etc/hosts",
        ]
        at = {one["mountPath"]: pod.folder / "volumes" / one["name"] for one in mounts}
        if (pod.folder / "account").exists():
            at[f"/{TOKENS}"] = pod.folder / "account"
        for one in mounts:
            folder = at[one["mountPath"]]
            folder.mkdir(parents=True, exist_ok=True)
            if not one.get("readOnly"):
                os.chown(folder, user, user)
            if one["mountPath"] != TEMPORARY and not one["mountPath"].startswith(HERE):
                lines.append(f"mount --bind {folder} {folder}")  # there is no such folder here: see `_config`
        here = [path for path in at if path.startswith(HERE)]
        lines += [f"mkdir -p {path} && mount --bind {at[path]} {path}" for path in here]
        lines.append("mount -o remount,ro,bind /")
        if TEMPORARY not in at:
            return lines
        # CI's fresh environment is made in /tmp, which the pod has for itself.
        for path in (path for path in CODE if path.is_relative_to(TEMPORARY)):
            seen = at[TEMPORARY] / path.relative_to(TEMPORARY)
            seen.mkdir(parents=True, exist_ok=True)
            lines.append(f"mount --bind {path} {seen}")
        return [*lines, f"mount --rbind {at[TEMPORARY]} {TEMPORARY}"]

    async def _environment(self, pod: Pod, container: Any) -> dict[str, str]:
        host, _, port = self.api.server.url.removeprefix("https://").partition(":")
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH") if name in os.environ}
        here = {
            "HOME": TEMPORARY, "PYTHONDONTWRITEBYTECODE": "1", "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": port, "REACTOR_RECEIVER__LISTEN": f"{pod.address}:8484",
            "REACTOR_HEALTH__LISTEN": f"{pod.address}:8485",
        }  # fmt: skip
        for one in container.get("env", []):
            source = one.get("valueFrom", {})
            if "secretKeyRef" in source:
                here[one["name"]] = (await self._secret({"name": source["secretKeyRef"]["name"]}))[
                    source["secretKeyRef"]["key"]
                ]
            else:
                here[one["name"]] = pod.name if "fieldRef" in source else one["value"]
        return kept | here

    async def _config(self, name: str, pod: Pod) -> dict[str, str]:
        found = await self.api.get(self.api.path("configmaps", name))
        assert found.code == 200, found.body
        store = pod.folder / "volumes" / "reactor-nats-js"
        return {
            key: text.replace("store_dir: /data", f"store_dir: {store}") for key, text in found.body["data"].items()
        }

    async def _secret(self, source: Any) -> dict[str, str]:
        found = await self.api.get(self.api.path("secrets", source["name"]))
        assert found.code == 200, found.body
        data = {key: base64.b64decode(value).decode() for key, value in found.body["data"].items()}
        return {one["path"]: data[one["key"]] for one in source["items"]} if "items" in source else data

    async def _token(self, account: str) -> str:
        path = self.api.path("serviceaccounts", account, subresource="token")
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        made = await self.api.post(path, asked)
        assert made.code == 201, made.body
        return str(made.body["status"]["token"])

    def stop(self) -> None:
        """End all processes that were started here, the last one first: the bus is what others stop with."""
        for pod in reversed(self.pods.values()):
            if pod.process is not None and pod.process.poll() is None:
                pod.process.send_signal(signal.SIGTERM)
                try:
                    pod.process.wait(15)
                except subprocess.TimeoutExpired:
                    pod.process.kill()


def _swap(folder: Path, files: dict[str, str]) -> None:
    """Write files as a kubelet does: into a folder of their own, to which a link is then turned in one moment."""
    folder.mkdir(parents=True, exist_ok=True)
    if not files:
        return
    fresh = folder / f"..{len(list(folder.iterdir()))}"
    fresh.mkdir()
    for name, text in files.items():
        (fresh / name).write_text(text)
        link = folder / name
        if not link.is_symlink():
            link.symlink_to(f"..data/{name}")
    (folder / "..next").symlink_to(fresh.name)
    (folder / "..next").rename(folder / "..data")
