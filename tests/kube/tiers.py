"""One fixture, `kube`, over every API server there is: the emulator always, real ones where they can be had.

REACTOR_KUBE=sim,envtest        only these tiers
REACTOR_REQUIRE_KUBE=envtest    a tier that is not there fails instead of being skipped
KUBEBUILDER_ASSETS=...          tier `envtest`: kube-apiserver and etcd in this folder
USE_EXISTING_CLUSTER=true       tier `existing`: the cluster of KUBECONFIG, in a throw-away namespace
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import aiohttp
import pytest
import yaml

from reactor.demo.kube import Emulator
from reactor.runtime.clock import Clock
from tests.kube import envtest
from tests.kube.api import PATIENCE, Api, Server

TIERS = ("sim", "envtest", "k3s", "existing")
K3S_IMAGE = "rancher/k3s:v1.34.1-k3s1"


def _listed(variable: str) -> list[str]:
    names = [name.strip() for name in os.environ.get(variable, "").split(",") if name.strip()]
    unknown = set(names) - set(TIERS)
    if unknown:
        raise pytest.UsageError(f"{variable} knows {', '.join(TIERS)}, not {', '.join(sorted(unknown))}")
    return names


SELECTED = tuple(_listed("REACTOR_KUBE") or TIERS)
REQUIRED = frozenset(_listed("REACTOR_REQUIRE_KUBE"))


def why_not(tier: str) -> str:
    """Say why a tier is not there; "" when it is (or will be started when a test asks for it)."""
    if tier == "sim":
        return ""
    if tier not in SELECTED:
        return "REACTOR_KUBE leaves it out"
    return _WHY_NOT[tier]()


def no_docker() -> str:
    """Say why there is no Docker engine; "" when one answers: a socket alone may be left over."""
    if "DOCKER_HOST" in os.environ:
        return ""
    with socket.socket(socket.AF_UNIX) as engine:
        try:
            engine.settimeout(5)
            engine.connect("/var/run/docker.sock")
            engine.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            return "" if b" 200 " in engine.recv(64) else "the Docker engine does not answer"
        except OSError as refused:
            return f"no Docker engine answers ({refused.strerror or refused})"


def _no_existing() -> str:
    wanted = os.environ.get("USE_EXISTING_CLUSTER", "").lower() == "true" and os.environ.get("KUBECONFIG")
    return "" if wanted else "set USE_EXISTING_CLUSTER=true and KUBECONFIG to use a cluster of yours"


def _envtest(stack: ExitStack) -> Server:
    control_plane = envtest.EnvTest()
    stack.callback(control_plane.stop)
    return control_plane.start()


def _k3s(stack: ExitStack) -> Server:
    from testcontainers.community.k3s import K3SContainer

    container = stack.enter_context(K3SContainer(K3S_IMAGE))
    return from_kubeconfig("k3s", container.config_yaml())


def _existing(_: ExitStack) -> Server:
    return from_kubeconfig("existing", Path(os.environ["KUBECONFIG"]).read_text("utf-8"))


_WHY_NOT: dict[str, Callable[[], str]] = {"envtest": envtest.why_not, "k3s": no_docker, "existing": _no_existing}
_START: dict[str, Callable[[ExitStack], Server]] = {"envtest": _envtest, "k3s": _k3s, "existing": _existing}
THERE = tuple(tier for tier in TIERS if tier in SELECTED and not why_not(tier))
"""The tiers that tests run on. `tests/contract/kube/test_tiers.py` names the others, once each."""


class RealServers:
    """The real API servers of this test run, each started when the first test asks for it."""

    def __init__(self) -> None:
        self._known: dict[str, Server] = {}
        self._stack = ExitStack()

    def get(self, tier: str) -> Server:
        """Give the server of a tier that is there."""
        if tier not in self._known:
            self._known[tier] = _START[tier](self._stack)
        return self._known[tier]

    def close(self) -> None:
        self._stack.close()


def from_kubeconfig(tier: str, text: str) -> Server:
    """Read the current context: by the official client, which knows every way to authenticate."""
    from kubernetes import client
    from kubernetes.config import kube_config

    settings = client.Configuration()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kubeconfig"
        path.write_text(yaml.safe_dump(yaml.safe_load(text)), "utf-8")
        load: Callable[..., None] = kube_config.load_kube_config
        load(str(path), client_configuration=settings)
    tls: ssl.SSLContext | bool = True
    if settings.host.startswith("https"):
        tls = ssl.create_default_context(cafile=settings.ssl_ca_cert)
        if not settings.verify_ssl:
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        if settings.cert_file:
            tls.load_cert_chain(settings.cert_file, settings.key_file)
    token = settings.get_api_key_with_prefix("authorization") or settings.api_key.get("BearerToken")
    return Server(tier, settings.host, {"Authorization": token} if token else {}, tls)


async def _settled(api: Api) -> None:
    """Wait until a new namespace takes pods: where controllers run, they make its service account first."""
    if api.server.tier == "envtest":
        return  # no controllers, and no admission that asks for the account
    async with asyncio.timeout(PATIENCE):
        while (await api.get(api.path("serviceaccounts", "default"))).code != 200:
            await asyncio.sleep(0.05)


@pytest.fixture(scope="session")
def real_servers() -> Iterator[RealServers]:
    """The real servers, stopped when all tests are done."""
    servers = RealServers()
    yield servers
    servers.close()


@pytest.fixture(params=THERE)
async def kube(request: pytest.FixtureRequest, real_servers: RealServers) -> AsyncIterator[Api]:
    """An API server, and a namespace on it for this test alone."""
    namespace = f"contract-{secrets.token_hex(4)}"
    if request.param != "sim":
        async with aiohttp.ClientSession() as session:
            api = Api(session, real_servers.get(request.param), namespace)
            await api.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
            await _settled(api)
            yield api
            await api.delete(f"/api/v1/namespaces/{namespace}")
        return
    async with Emulator(clock=Clock().now) as sim, aiohttp.ClientSession() as session:
        sim.cluster("main").ensure_namespace(namespace)
        yield Api(session, Server("sim", sim.url("main"), sim=sim), namespace)
