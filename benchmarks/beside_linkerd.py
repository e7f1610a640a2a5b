"""200 TrafficSplits moved by linkerd-failover and by us, one after the other, on the same real API server.

LINKERD_FAILOVER names linkerd-failover's controller (`cargo build --release` in its repository, not part of this one),
KUBEBUILDER_ASSETS the folder of kube-apiserver and etcd. Without either there is nothing to compare, and that is said.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp

from benchmarks.measure import Result
from benchmarks.world import NAMESPACE, RULES, until
from reactor.demo.kube.crds import shipped
from tests.chaos.proxy import proxy
from tests.kube.api import Api
from tests.kube.deployed import CRDS, kubeconfig
from tests.kube.envtest import EnvTest, why_not
from tests.ports import free_port

SPLITS_COUNT, ROUNDS, AT_ONCE = 200, 3, 16
LATENCY = 0.025
"""Seconds of each direction in the second part: a round trip takes twice as long."""
SPLITS, SLICES = "split.smi-spec.io/v1alpha2", "discovery.k8s.io/v1"
CONTROLLED = {"failover.linkerd.io/controlled-by": "linkerd-failover"}
SECONDS_PER_TICK = 1 / os.sysconf("SC_CLK_TCK")
SETTINGS = """
ruleFiles: ["{folder}/rules.yaml"]
clusters: {{east: {{kubeconfig: "{kubeconfig}"}}}}
bus: {{store: "{folder}/nats"}}
receiver: {{listen: "127.0.0.1:0"}}
health: {{listen: "127.0.0.1:0"}}
logLevel: warning
"""


async def beside_linkerd_failover() -> Result:
    """Break all primaries at once and heal them, a few times, for each of the two."""
    what = f"{SPLITS_COUNT} TrafficSplits on a real API server, linkerd-failover and us"
    binary = os.environ.get("LINKERD_FAILOVER", "")
    missing = "LINKERD_FAILOVER names no program" if shutil.which(binary) is None else why_not()
    if missing:
        return Result("beside-linkerd-failover", what, {"skipped": missing})
    figures: dict[str, Any] = {"splits": SPLITS_COUNT, "rounds": ROUNDS}
    async with _cluster() as cluster:
        for latency in (0.0, LATENCY):
            for name in ("linkerd-failover", "alert-reactor"):
                key = f"{name}, {2000 * latency:g} ms round trip"
                figures[key] = await _contest(cluster, name, binary, latency)
                print(f"  {key}: {figures[key]}", file=sys.stderr, flush=True)
    return Result("beside-linkerd-failover", what, figures)


@dataclass
class _Cluster:
    api: Api
    folder: Path
    port: int
    primary: dict[str, int] = field(default_factory=dict)
    """Split to the weight of its primary, as a watch tells it."""
    writes: int = 0

    async def ready(self, service: str, *, ready: bool) -> None:
        """Say it as EndpointSlices, which we watch, and as Endpoints, which linkerd-failover watches."""
        address, meta = "10.0.0.1", {"name": service, "namespace": NAMESPACE}
        slice_ = {
            "apiVersion": SLICES, "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": meta | {"labels": {"kubernetes.io/service-name": service}},
            "endpoints": [{"addresses": [address], "conditions": {"ready": ready}}],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        }  # fmt: skip
        where = "addresses" if ready else "notReadyAddresses"
        subsets = [{where: [{"ip": address}], "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}]}]
        endpoints = {"apiVersion": "v1", "kind": "Endpoints", "metadata": meta, "subsets": subsets}
        for path, body in (
            (self.api.path("endpointslices", service, SLICES), slice_),
            (self.api.path("endpoints", service), endpoints),
        ):
            done = await self.api.apply(path, body, "controller", force=True)
            assert done.code in (200, 201), done.body

    async def primaries(self, *, ready: bool) -> None:
        await _all(self.ready(f"app{number}", ready=ready) for number in range(SPLITS_COUNT))

    async def split(self, number: int) -> None:
        """A split of two services, both ready."""
        name = f"app{number}"
        for service in (name, f"{name}-west"):
            await self.ready(service, ready=True)
        backends = [{"service": name, "weight": 1}, {"service": f"{name}-west", "weight": 0}]
        body = {
            "apiVersion": SPLITS, "kind": "TrafficSplit", "metadata": {"name": name, "labels": CONTROLLED},
            "spec": {"service": name, "backends": backends},
        }  # fmt: skip
        made = await self.api.post(self.api.path("trafficsplits", group=SPLITS), body)
        assert made.code == 201, made.body

    async def watch(self) -> None:
        """Note each change of a split, until cancelled."""
        path = self.api.path("trafficsplits", group=SPLITS)
        async with self.api.watch(path, timeoutSeconds=3600) as events:
            while True:
                with contextlib.suppress(TimeoutError):
                    event = await events.next()
                    self.writes += event["type"] == "MODIFIED"
                    split = event["object"]
                    self.primary[split["metadata"]["name"]] = split["spec"]["backends"][0]["weight"]

    async def until_weight(self, weight: int, seconds: float = 300) -> None:
        """Wait until every split has this weight for its primary."""
        await until(lambda: list(self.primary.values()) == [weight] * SPLITS_COUNT, seconds)


@asynccontextmanager
async def _cluster() -> AsyncIterator[_Cluster]:
    control_plane = EnvTest()
    with tempfile.TemporaryDirectory() as folder:
        try:
            server = await asyncio.to_thread(control_plane.start)
            connector = aiohttp.TCPConnector(limit=AT_ONCE + 2)
            async with aiohttp.ClientSession(connector=connector) as session:
                api = Api(session, server, NAMESPACE)
                for kind in shipped():
                    made = await api.post(CRDS, kind)
                    assert made.code == 201, made.body
                made = await api.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
                assert made.code == 201, made.body
                async with asyncio.timeout(60):
                    while (await api.get(api.path("trafficsplits", group=SPLITS))).code != 200:
                        await asyncio.sleep(0.1)
                cluster = _Cluster(api, Path(folder), int(server.url.rpartition(":")[2]))
                await _all(map(cluster.split, range(SPLITS_COUNT)))
                watching = asyncio.create_task(cluster.watch())
                await cluster.until_weight(1)
                yield cluster
                watching.cancel()
        finally:
            control_plane.stop()


async def _contest(cluster: _Cluster, name: str, binary: str, latency: float) -> dict[str, Any]:
    folder = cluster.folder / f"{name}-{latency:g}"
    folder.mkdir()
    async with proxy("127.0.0.1", cluster.port) as link:
        link.delay = latency
        server = replace(cluster.api.server, url=f"https://127.0.0.1:{link.port if latency else cluster.port}")
        config = kubeconfig(server, folder / "kubeconfig")
        async with _running(_command(name, binary, folder, config), folder) as pid:
            await cluster.ready("app0", ready=False)
            await until(lambda: cluster.primary["app0"] == 0)
            await cluster.ready("app0", ready=True)
            await cluster.until_weight(1)
            writes, used, seconds = cluster.writes, _cpu(pid), []
            for _ in range(ROUNDS):
                for ready in (False, True):
                    began = time.perf_counter()
                    said = asyncio.create_task(cluster.primaries(ready=ready))
                    await cluster.until_weight(int(ready))
                    seconds.append(time.perf_counter() - began)
                    await said
            return {
                "seconds_for_all": [round(one, 2) for one in seconds],
                "median_seconds": round(statistics.median(seconds), 2),
                "writes_per_move": round((cluster.writes - writes) / (2 * ROUNDS * SPLITS_COUNT), 2),
                "cpu_seconds": round(_cpu(pid) - used, 2),
                "resident_mib": _resident(pid),
            }


def _command(name: str, binary: str, folder: Path, config: Path) -> Sequence[str]:
    if name == "linkerd-failover":
        return [binary, "--kubeconfig", str(config), "--admin-addr", f"127.0.0.1:{free_port()}"]
    (folder / "rules.yaml").write_text(RULES, "utf-8")
    (folder / "reactor.yaml").write_text(SETTINGS.format(folder=folder, kubeconfig=config), "utf-8")
    return [sys.executable, "-m", "reactor.cli.main", "run", "--config", str(folder / "reactor.yaml")]


@asynccontextmanager
async def _running(command: Sequence[str], folder: Path) -> AsyncIterator[int]:
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)
    try:
        yield process.pid
    except TimeoutError as error:
        raise RuntimeError(f"{command[0]}: {(folder / 'log').read_text('utf-8')[-2000:]}") from error
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _all(calls: Any) -> None:
    """Make calls, so many at a time."""
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(call: Any) -> None:
        async with limit:
            await call

    await asyncio.gather(*map(one, calls))


def _family(pid: int) -> list[int]:
    """A process and its children, an embedded nats-server among them."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8").split()
    return [pid, *(one for child in children for one in _family(int(child)))]


def _cpu(pid: int) -> float:
    fields = (Path(f"/proc/{one}/stat").read_text("utf-8").rpartition(")")[2].split() for one in _family(pid))
    return sum(int(found[11]) + int(found[12]) for found in fields) * SECONDS_PER_TICK


def _resident(pid: int) -> list[float]:
    """MiB of each."""
    page = os.sysconf("SC_PAGE_SIZE") / 2**20
    return [round(int(Path(f"/proc/{one}/statm").read_text("utf-8").split()[1]) * page, 1) for one in _family(pid)]
