"""Route 53 and an Application Load Balancer, on moto: moved by probes, through crashes of ours, and by people."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests
from aiohttp import web

from tests.e2e.haproxy import Site, site
from tests.e2e.service import Service
from tests.e2e.waiting import until, until_told
from tests.integration.actions.amazon import RECORD, Balancer, Zone, mocked

RULES = """
apiVersion: reactor/v1
sources:
- {{name: here, kind: HttpProbe, target: custom/edge/here, signal: probe, url: "http://{here}/healthz",
   everySeconds: 0.5, timeoutSeconds: 0.5, failureThreshold: 2, refreshSeconds: 1, staleSeconds: 30}}
- {{name: there, kind: HttpProbe, target: custom/edge/there, signal: probe, url: "http://{there}/healthz",
   everySeconds: 0.5, timeoutSeconds: 0.5, failureThreshold: 2, refreshSeconds: 1, staleSeconds: 30}}
rules:
- name: edge
  kind: TrafficFailover
  mode: Enforce
  route: {{kind: {kind}, name: edge}}
  backends: [{{service: here, target: custom/edge/here}}, {{service: there, target: custom/edge/there}}]
"""
HOME, AWAY = {"here": 1, "there": 0}, {"here": 0, "there": 1}
HOSTS = {"route53": "route53.amazonaws.com", "elasticloadbalancing": "elasticloadbalancing.us-east-1.amazonaws.com"}
SCOPE = re.compile(r"Credential=[^/]+/\d+/[^/]+/(\w+)/aws4_request")


@dataclass
class Gateway:
    """Amazon's address for another process: it hands requests to moto, which answers in this one."""

    url: str = ""
    writes: list[str] = field(default_factory=list)

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer one request as moto does."""
        body = await request.read()
        service = SCOPE.search(request.headers["Authorization"])
        assert service is not None
        host = HOSTS[service[1]]
        if b"ChangeResourceRecordSetsRequest" in body or b"Action=ModifyRule" in body:
            self.writes.append(host)
        kept = {name: value for name, value in request.headers.items() if name not in ("Host", "Content-Length")}
        url = f"https://{host}{request.path_qs}"
        found = await asyncio.to_thread(requests.request, request.method, url, data=body, headers=kept, timeout=10)
        return web.Response(status=found.status_code, body=found.content, content_type="text/xml")


@pytest.fixture
def amazon() -> Iterator[None]:
    with mocked():
        yield


@pytest.fixture
async def gateway() -> AsyncIterator[Gateway]:
    made = Gateway()
    runner = web.ServerRunner(web.Server(made.answer, access_log=None), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = "http://{}:{}".format(*runner.addresses[0][:2])
    yield made
    await runner.cleanup()


@pytest.fixture
async def served() -> AsyncIterator[Site]:
    async with site() as running:
        yield running


class World:
    """One of the two, and what makes a reactor for it."""

    def __init__(self, kind: str, served: Site, folder: Path) -> None:
        self.kind = kind
        self.served = served
        self.folder = folder
        self.zone = Zone() if kind == "Route53" else None
        self.balancer = Balancer() if kind == "TargetGroups" else None

    def weights(self) -> dict[str, int]:
        if self.zone is not None:
            return {one["SetIdentifier"]: one["Weight"] for one in self.zone.records()}
        assert self.balancer is not None
        return self.balancer.weights()

    def reactor(self, failpoint: str = "") -> Service:
        own: dict[str, Any] = {"kind": self.kind, "everySeconds": 0.5}
        if self.zone is not None:
            own |= {"hostedZone": self.zone.id, "record": RECORD, "type": "A"}
        if self.balancer is not None:
            own |= {"ruleArn": self.balancer.rule}
        rules = RULES.format(**self.served.addresses, kind=self.kind)
        settings = {"loadBalancers": {"edge": own}}
        return Service(self.folder / "reactor", rules=rules, settings=settings, failpoint=failpoint)


@pytest.fixture(params=["Route53", "TargetGroups"])
async def world(
    request: pytest.FixtureRequest, amazon: None, gateway: Gateway, served: Site, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> World:  # fmt: skip
    made = World(request.param, served, tmp_path)
    monkeypatch.setenv("AWS_ENDPOINT_URL", gateway.url)  # from here on: for the reactor's process
    return made


async def test_it_leaves_what_is_bad_comes_back_and_people_see_and_move_it(world: World, gateway: Gateway) -> None:
    object_ = f"edge/{world.kind}/edge"
    async with world.reactor() as service:
        await service.settled(1)
        world.served.bad.add("here")
        await until(lambda: world.weights() == AWAY, "it has left what is bad")
        world.served.bad.clear()
        await until(lambda: world.weights() == HOME, "it is back")
        assert len(gateway.writes) == 2

        async def listed() -> bool:
            words = await service.printed("traffic", "list")
            return object_ in words and "here=1 there=0" in words

        await until_told(listed, "it is listed as it stands")
        assert "PrimaryUnhealthy" in await service.printed("explain", f"edge/{object_}/1")
        assert [row["rule"] for row in await service.status() if row.get("object") == object_] == ["edge"]
        code, said = await service.answered("check", "--against", "settings", str(service.folder / "rules.yaml"))
        assert code == 0, said
        if world.zone is not None:
            world.zone.forget()
        words = ("--for", "1h", "--comment", "CHG-1", "--by", "ann", "--yes")
        assert "followed, until" in await service.printed("traffic", "failover", "edge", *words)
        await until(lambda: world.weights() == AWAY, "moved by a person's word")


@pytest.mark.parametrize(
    "point",
    [
        *(pytest.param(f"executor.{step}", marks=pytest.mark.long) for step in ("intent-stored", "before-write")),
        "executor.after-write",
        pytest.param("executor.done-stored", marks=pytest.mark.long),
    ],
)
async def test_a_reactor_that_dies_in_mid_move_ends_it_after_its_start_and_writes_nothing_twice(
    world: World, gateway: Gateway, point: str
) -> None:
    service = world.reactor(point)
    async with service:
        await service.settled(1)
        world.served.bad.add("here")
        await until(lambda: not service.running, f"it has died at {point}")
        service.failpoint = ""
        await service.start()
        await until(lambda: world.weights() == AWAY, "the move is ended")
        world.served.bad.clear()
        await until(lambda: world.weights() == HOME, "and undone in its time")
    assert len(gateway.writes) == 2
