"""Start a real kube-apiserver and its etcd on loopback, the way controller-runtime's envtest does.

The binaries are looked for where envtest looks: TEST_ASSET_KUBE_APISERVER and TEST_ASSET_ETCD, then the folder
KUBEBUILDER_ASSETS. One static token, a self-signed certificate made by the server, no controllers.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import ssl
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

from tests.kube.api import Server
from tests.ports import free_port

START_SECONDS = 180.0  # KUBEBUILDER_CONTROLPLANE_START_TIMEOUT is 20 s; a busy machine needs a minute and more


def find(name: str, variable: str) -> Path | None:
    """Find one of the two binaries."""
    explicit, folder = os.environ.get(variable), os.environ.get("KUBEBUILDER_ASSETS")
    for path in (Path(explicit) if explicit else None, Path(folder) / name if folder else None):
        if path is not None and os.access(path, os.X_OK):
            return path
    return None


def why_not() -> str:
    """Say why there is no envtest here; "" when there is."""
    for name, variable in (("kube-apiserver", "TEST_ASSET_KUBE_APISERVER"), ("etcd", "TEST_ASSET_ETCD")):
        if find(name, variable) is None:
            return f"no {name}: set KUBEBUILDER_ASSETS or {variable}"
    return "" if shutil.which("openssl") else "no openssl to make the service account key with"


class EnvTest:
    """A running control plane."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="envtest-"))
        self._processes: list[subprocess.Popen[bytes]] = []
        self._log = (self._folder / "log").open("wb")
        self._server: Server | None = None

    def start(self) -> Server:
        """Start both, wait until the server is ready, and say how to reach it."""
        token, client, peer, port = secrets.token_hex(16), free_port(), free_port(), free_port()
        tokens, key = self._folder / "tokens.csv", self._folder / "service-account.key"
        tokens.touch(mode=0o600)
        tokens.write_text(f'{token},admin,admin,"system:masters"\n', "utf-8")
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
        etcd = f"http://127.0.0.1:{client}"
        self._run(
            str(find("etcd", "TEST_ASSET_ETCD")),
            f"--data-dir={self._folder / 'etcd'}",
            f"--listen-client-urls={etcd}",
            f"--advertise-client-urls={etcd}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            "--unsafe-no-fsync",
        )
        self._run(
            str(find("kube-apiserver", "TEST_ASSET_KUBE_APISERVER")),
            f"--etcd-servers={etcd}",
            f"--cert-dir={self._folder / 'certificates'}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--disable-admission-plugins=ServiceAccount",
            "--authorization-mode=RBAC",
            f"--token-auth-file={tokens}",
            f"--service-account-issuer=https://127.0.0.1:{port}/",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
        )
        # The certificate is the server's own and new at every start; there is nothing to check it against.
        tls = ssl.create_default_context()
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
        self._server = Server("envtest", f"https://127.0.0.1:{port}", {"Authorization": f"Bearer {token}"}, tls)
        self._wait(self._server)
        return self._server

    @property
    def certificate(self) -> Path:
        """The server's own certificate, which is the CA that it would be checked against."""
        return self._folder / "certificates" / "apiserver.crt"

    def stop(self) -> None:
        """End both processes and take their folder away.

        They are killed: what they hold goes with the folder, and an API server that is asked waits a minute for open
        watches, or for an etcd that is gone.
        """
        for process in reversed(self._processes):
            process.kill()
            process.wait()
        self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def kill(self) -> None:
        """End the API server as a crash would. What it has stored stays."""
        self._processes[-1].kill()
        self._processes[-1].wait()

    def restart(self) -> None:
        """Start it again, at the same address, and wait until it is ready."""
        command = self._processes.pop().args
        assert isinstance(command, tuple)
        self._run(*command)
        assert self._server is not None
        self._wait(self._server)

    def freeze(self) -> None:
        """Let the API server hang: connections are taken, and nothing is said."""
        self._processes[-1].send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on, with all objects that were there."""
        self._processes[-1].send_signal(signal.SIGCONT)

    def _run(self, *command: str) -> None:
        self._processes.append(subprocess.Popen(command, stdout=self._log, stderr=self._log))

    def _wait(self, server: Server) -> None:
        """Wait until the server says that it is ready, custom kinds included, and its default namespace is there."""
        ends = time.monotonic() + START_SECONDS
        while time.monotonic() < ends:
            if any(process.poll() is not None for process in self._processes):
                raise RuntimeError((self._folder / "log").read_text("utf-8", "replace")[-2000:])
            if all(_answers(server, path) for path in ("/readyz", "/api/v1/namespaces/default")):
                return
            time.sleep(0.2)  # there is no event to wait for before the server listens
        raise TimeoutError("kube-apiserver was not ready in time")


def _answers(server: Server, path: str) -> bool:
    assert isinstance(server.tls, ssl.SSLContext)
    request = urllib.request.Request(f"{server.url}{path}", headers=server.headers)
    try:
        with urllib.request.urlopen(request, context=server.tls, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:  # refused, cut, too slow, or an answer of 4xx or 5xx
        return False
