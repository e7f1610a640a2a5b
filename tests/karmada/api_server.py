"""Real API servers as Karmada needs them: one authority signs for all, so that they can be joined and extended."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.kube import envtest
from tests.ports import free_port

START_SECONDS = 120.0
NAMES = ",".join(
    f"DNS:{name}"
    for name in (
        "localhost", "kubernetes", "kubernetes.default.svc", "karmada-aggregated-apiserver.karmada-system.svc",
        "karmada-webhook.karmada-system.svc",
    )
)  # fmt: skip


class Authority:
    """A folder with a certificate authority, a server's certificate, a front proxy's, and a key for accounts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        _openssl("genrsa", "-out", self["ca.key"], "2048")
        _openssl(
            "req", "-x509", "-new", "-key", self["ca.key"], "-subj", "/CN=test", "-days", "9", "-out", self["ca.crt"]
        )
        self._sign("server", "/CN=server", f"{NAMES},IP:127.0.0.1,IP:10.0.0.1")
        self._sign("front", "/CN=front-proxy-client", "DNS:front")
        _openssl("genrsa", "-out", self["accounts.key"], "2048")

    def __getitem__(self, name: str) -> str:
        return str(self.folder / name)

    def _sign(self, name: str, subject: str, names: str) -> None:
        key, asked, more = self[f"{name}.key"], self[f"{name}.csr"], self[f"{name}.ext"]
        Path(more).write_text(f"subjectAltName={names}\nextendedKeyUsage=serverAuth,clientAuth\n", "utf-8")
        _openssl("genrsa", "-out", key, "2048")
        _openssl("req", "-new", "-key", key, "-subj", subject, "-out", asked)
        _openssl(
            "x509", "-req", "-in", asked, "-CA", self["ca.crt"], "-CAkey", self["ca.key"], "-CAcreateserial",
            "-days", "9", "-extfile", more, "-out", self[f"{name}.crt"],
        )  # fmt: skip


def _openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True)


@dataclass
class ApiServer:
    """One etcd and one kube-apiserver."""

    name: str
    folder: Path
    authority: Authority
    port: int = field(default_factory=free_port)
    etcd_port: int = field(default_factory=free_port)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.token = f"admin-{self.name}-token"
        tokens = self.folder / "tokens.csv"
        tokens.write_text(f'{self.token},admin,admin,"system:masters"\n', "utf-8")
        self.kubeconfig = self.folder / "kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump(self._kubeconfig()), "utf-8")

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def etcd(self) -> str:
        return f"http://127.0.0.1:{self.etcd_port}"

    def start(self) -> None:
        """Start both; `wait` says when they are ready."""
        pki, etcd = self.authority, self.etcd
        self.run(
            str(envtest.find("etcd", "TEST_ASSET_ETCD")), f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={etcd}", f"--advertise-client-urls={etcd}",
            f"--listen-peer-urls=http://127.0.0.1:{free_port()}", "--unsafe-no-fsync",
        )  # fmt: skip
        self.run(
            str(envtest.find("kube-apiserver", "TEST_ASSET_KUBE_APISERVER")), f"--etcd-servers={etcd}",
            f"--cert-dir={self.folder / 'certificates'}", "--bind-address=127.0.0.1", f"--secure-port={self.port}",
            f"--tls-cert-file={pki['server.crt']}", f"--tls-private-key-file={pki['server.key']}",
            f"--client-ca-file={pki['ca.crt']}", f"--requestheader-client-ca-file={pki['ca.crt']}",
            "--requestheader-allowed-names=front-proxy-client", "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={pki['front.crt']}", f"--proxy-client-key-file={pki['front.key']}",
            "--service-cluster-ip-range=10.0.0.0/16", "--disable-admission-plugins=ServiceAccount",
            "--authorization-mode=RBAC", f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={pki['accounts.key']}",
            f"--service-account-signing-key-file={pki['accounts.key']}",
        )  # fmt: skip

    def run(self, *command: str) -> subprocess.Popen[bytes]:
        """Start a process that writes into our log."""
        with (self.folder / f"{Path(command[0]).name}.log").open("ab") as log:
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder))
        return self.processes[-1]

    def wait(self, *paths: str) -> None:
        """Wait until it is ready, and answers these paths."""
        ends = time.monotonic() + START_SECONDS
        for path in ("/readyz", "/api/v1/namespaces/default", *paths):
            while not self._answers(path):
                if any(process.poll() is not None for process in self.processes) or time.monotonic() > ends:
                    ended = [process.poll() for process in self.processes]
                    raise RuntimeError(f"{self.name}, {path}, processes {ended}: {self.log()}")
                time.sleep(0.2)  # there is no event to wait for before it listens

    def kill(self) -> None:
        """End the API server as a crash would. What it has stored stays."""
        self.processes[-1].kill()
        self.processes[-1].wait()

    def restart(self) -> None:
        """Start it again, at the same address, and wait until it is ready."""
        command = self.processes.pop().args
        assert isinstance(command, tuple)
        self.run(*command)
        self.wait()

    def log(self) -> str:
        """The end of what its processes wrote."""
        return (self.folder / "kube-apiserver.log").read_text("utf-8", "replace")[-3000:]

    def _answers(self, path: str) -> bool:
        try:
            self.request("GET", path)
        except OSError:  # refused, cut, too slow, or an answer of 4xx or 5xx
            return False
        return True

    def request(self, method: str, path: str, body: Any = None, media_type: str = "application/json") -> Any:
        """Send a request as administrator and give its answer. Raises OSError, with what the server says."""
        data = json.dumps(body).encode() if body is not None else None
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": media_type}
        request = urllib.request.Request(f"{self.url}{path}", data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, context=self._tls(), timeout=20) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise OSError(f"{error.code} {method} {path}: {error.read().decode()[:2000]}") from error
        return json.loads(text) if text.startswith(b"{") else text

    def _tls(self) -> Any:
        import ssl

        return ssl.create_default_context(cafile=self.authority["ca.crt"])

    def stop(self) -> None:
        """Kill all processes: what they hold goes with the folder."""
        for process in reversed(self.processes):
            process.kill()
            process.wait()

    def _kubeconfig(self) -> dict[str, Any]:
        cluster = {"server": self.url, "certificate-authority": self.authority["ca.crt"]}
        return {
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": self.token}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "admin"}}],
        }  # fmt: skip


def binary(name: str) -> Path | None:
    """Find one of Karmada's components."""
    folder = os.environ.get("KARMADA_BINARIES")
    path = Path(folder) / f"karmada-{name}" if folder else None
    return path if path is not None and os.access(path, os.X_OK) else None
