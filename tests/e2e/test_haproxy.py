"""A real HAProxy is moved as a route is: by probes, through crashes of ours, its own reloads, and others who write."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.haproxy import HAProxy, Site, Tap, site, tapped, until_weights
from tests.e2e.service import Service
from tests.e2e.waiting import until, until_told

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
  route: {{kind: HAProxy, name: edge}}
  backends:
  - {{service: here, target: custom/edge/here}}
  - {{service: there, target: custom/edge/there}}
  recoverySeconds: 1
{more}"""
HOME, AWAY = {"here": 1, "there": 0}, {"here": 0, "there": 1}
OBJECT = "edge/HAProxy/edge"


@dataclass
class Edge:
    """All of it, and what makes a reactor for it."""

    site: Site
    haproxy: HAProxy
    tap: Tap
    folder: Path

    def reactor(self, *, more: str = "", failpoint: str = "") -> Service:
        """One that knows the load balancer."""
        balancer = {"kind": "HAProxy", "socket": str(self.tap.socket), "backend": "web", "everySeconds": 0.5}
        settings: dict[str, Any] = {"loadBalancers": {"edge": balancer}}
        rules = RULES.format(**self.site.addresses, more=more)
        return Service(self.folder / "reactor", rules=rules, settings=settings, failpoint=failpoint)

    async def moved(self, weights: dict[str, int], what: str) -> None:
        """Wait until these are the current weights, and no more writes are under way."""
        await until_weights(self.haproxy, weights, what)


@pytest.fixture
async def edge(tmp_path: Path) -> AsyncIterator[Edge]:
    async with site() as served:
        haproxy = HAProxy(tmp_path / "haproxy", served.addresses)
        async with haproxy, tapped(haproxy, tmp_path) as tap:
            yield Edge(served, haproxy, tap, tmp_path)


async def test_requests_leave_what_is_bad_and_come_back_in_steps(edge: Edge) -> None:
    steps = "  steps: [{percent: 25, pauseSeconds: 12}]\n"
    async with edge.reactor(more=steps) as service:
        await service.settled(1)
        assert await edge.site.served(edge.haproxy, 20) == {"here": 20}
        edge.site.bad.add("here")
        await edge.moved(AWAY, "it has left what is bad")
        assert await edge.site.served(edge.haproxy, 20) == {"there": 20}
        edge.site.bad.clear()
        await edge.moved({"here": 25, "there": 75}, "the first step of its way back")
        found = await edge.site.served(edge.haproxy, 100)
        assert 20 <= found["here"] <= 30, found  # in turn, beginning anywhere
        await edge.moved(HOME, "all of it is back")
        assert await edge.site.served(edge.haproxy, 20) == {"here": 20}
        assert edge.tap.doubled == []
        assert len(edge.tap.writes) == 3

        async def listed() -> bool:
            words = await service.printed("traffic", "list")
            return OBJECT in words and "here=1 there=0" in words

        await until_told(listed, "it is listed as it stands")
        explained = await service.printed("explain", f"edge/{OBJECT}/1")
        assert "PrimaryUnhealthy" in explained, explained
        (row,) = [row for row in await service.status() if row.get("object") == OBJECT]
        assert row["rule"] == "edge"
        words = ("--comment", "CHG-1", "--by", "ann", "--yes")
        said = await service.printed("traffic", "failover", "edge", OBJECT, "--for", "1h", *words)
        assert "followed, until" in said, said
        await edge.moved(AWAY, "moved by a person's word")


@pytest.mark.parametrize(
    "point", ["executor.intent-stored", "executor.before-write", "executor.after-write", "executor.done-stored"]
)
async def test_a_reactor_that_dies_in_mid_move_ends_it_after_its_start_and_writes_nothing_twice(
    edge: Edge, point: str
) -> None:
    service = edge.reactor(failpoint=point)
    async with service:
        await service.settled(1)
        edge.site.bad.add("here")
        await until(lambda: not service.running, f"it has died at {point}")
        service.failpoint = ""
        await service.start()
        await edge.moved(AWAY, "the move is ended")
        edge.site.bad.clear()
        await edge.moved(HOME, "and undone in its time")
    assert edge.tap.doubled == []
    assert edge.tap.writes == [AWAY, HOME]


@pytest.mark.parametrize("on_drift", ["Restore", "Hold"])
async def test_weights_that_a_reload_has_reset_are_put_back(edge: Edge, on_drift: str) -> None:
    async with edge.reactor(more=f"  onDrift: {on_drift}\n") as service:
        await service.settled(1)
        edge.site.bad.add("here")
        await edge.moved(AWAY, "it has left what is bad")
        await edge.haproxy.reload()
        await edge.moved(AWAY, "it is put back after the reload")
        await until(lambda: len(edge.tap.writes) == 2, "the second write was seen")
        assert await edge.site.served(edge.haproxy, 20) == {"there": 20}
        await edge.haproxy.kill()
        await edge.haproxy.start()
        await edge.moved(AWAY, "and after a crash of HAProxy")
    assert edge.tap.doubled == []


async def test_another_writer_is_overwritten_or_left_as_the_rule_says(edge: Edge) -> None:
    async with edge.reactor() as service:
        await service.settled(1)
        await edge.haproxy.put(here=3, there=5)
        await edge.moved(HOME, "it is put right")
        again = RULES.format(**edge.site.addresses, more="  onDrift: Hold\n")
        (service.config.parent / "rules.yaml").write_text(again, encoding="utf-8")

        async def holds() -> bool:
            return await service.metric("reactor_held", rule="edge", reason="DriftedByHand") == 1

        async def reloaded() -> bool:
            return await service.metric("reactor_rule_reloads_total") >= 1

        await until_told(reloaded, "the rule file is read again")
        await edge.haproxy.put(here=3, there=5)
        await until_told(holds, "it is left")
        assert await edge.haproxy.weights() == {"here": 3, "there": 5}
        words = ("--comment", "CHG-1", "--by", "ann", "--yes")
        await service.printed("traffic", "release", "edge", *words)
        await edge.moved(HOME, "it is put right when it is released")
    assert edge.tap.doubled == []
