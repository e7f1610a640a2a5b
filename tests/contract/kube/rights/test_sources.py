"""Sources may watch all that they read: a list that is allowed and a watch that is not is a source that lags."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from reactor.clients.clusters import Clusters
from reactor.runtime.clock import Clock
from reactor.settings.server_settings import ClusterSettings
from reactor.sources.kubernetes import endpoints_watch, lease_watch, node_watch, workload_watch
from reactor.sources.source_context import SourceContext
from reactor.sources.source_context import scheduler as new_scheduler
from rules.rulefile.sources import EndpointsWatch, LeaseWatch, NodeWatch, WorkloadWatch
from tests.integration.sources.conftest import Heard, Running
from tests.kube.api import PATIENCE
from tests.kube.deployed import Deployed

MODELS = {model.__name__: model for model in (EndpointsWatch, LeaseWatch, NodeWatch, WorkloadWatch)}
WATCHED: dict[str, tuple[tuple[str, ...], Any, set[str]]] = {
    "EndpointsWatch": (("base",), endpoints_watch.run, {"endpointslices", "services"}),
    "NodeWatch": (("base", "zone-isolation"), node_watch.run, {"nodes", "pods", "endpointslices", "leases"}),
    "WorkloadWatch": (("workloads",), workload_watch.run, {"deployments", "statefulsets", "daemonsets"}),
    "LeaseWatch": (("workloads",), lease_watch.run, {"leases"}),
}


@pytest.fixture
async def world(us: Deployed) -> AsyncIterator[SourceContext]:
    """Context of sources, as the ServiceAccount."""
    clusters = Clusters({"it": ClusterSettings(kubeconfig=await us.kubeconfig())})
    made = SourceContext(
        clock=Clock(), tell=Heard().tell, clusters=clusters, prometheus={}, http=cast("Any", None),
        scheduler=new_scheduler(),
    )  # fmt: skip
    made.scheduler.start()
    yield made
    made.scheduler.shutdown(wait=False)
    await clusters.close()


@pytest.mark.parametrize("kind", WATCHED)
async def test_a_source_may_watch_all_that_it_reads(
    us: Deployed, world: SourceContext, running: Running, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts, run, resources = WATCHED[kind]
    await us.grant(*parts)
    api, opened, whole = await world.clusters.get("it"), set[str](), asyncio.Event()
    stream = api.stream

    @asynccontextmanager
    async def noted(path: str, query: Any, **more: Any) -> AsyncIterator[Any]:
        async with stream(path, query, **more) as lines:
            opened.add(path.rpartition("/")[2])
            if opened == resources:
                whole.set()
            yield lines

    monkeypatch.setattr(api, "stream", noted)
    where = {} if kind == "NodeWatch" else {"namespace": us.admin.namespace}
    source = MODELS[kind].model_validate({"name": "s", "kind": kind, "cluster": "it", **where})
    async with running(run(source, world)):
        try:
            async with asyncio.timeout(PATIENCE):
                await whole.wait()
        except TimeoutError:
            assert opened == resources
