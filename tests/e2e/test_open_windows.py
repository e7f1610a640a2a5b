"""A restart with ten thousand open windows: it acts again within seconds, and each window ends when it would have."""

from __future__ import annotations

import asyncio
from asyncio import get_running_loop
from pathlib import Path

import pytest

from reactor.clock import Clock
from reactor.demo.kube import Cluster, Emulator, write_kubeconfig
from tests.e2e.service import Service
from tests.e2e.waiting import until, until_told

NAMESPACES, EACH = 100, 100
COUNT = NAMESPACES * EACH
WINDOW = 60.0
DOWN_AT = 50.0
"""Seconds after the first outage at which the process is killed: by then every window is open and stored."""
ACTING = 10.0
ALL_DONE = 180.0
"""Seconds in which ten thousand writes are through on a busy machine; the bar is that none is lost."""
RULES = f"""
apiVersion: reactor/v1
sources:
- {{name: readiness, kind: EndpointsWatch, cluster: east, refreshSeconds: 300, staleSeconds: 900}}
rules:
- name: shops
  kind: TrafficFailover
  mode: Enforce
  route: {{cluster: east, kind: TrafficSplit, selector: team=shop}}
  tolerationSeconds: {WINDOW:g}
"""


def furnish(cluster: Cluster) -> list[tuple[str, str]]:
    """Make the routes, a hundred in each namespace with one fallback; gives (namespace, name) of each."""
    routes = []
    for place in range(NAMESPACES):
        namespace = f"shop{place:02d}"
        cluster.set_endpoints(namespace, "fallback", ready=1)
        for number in range(EACH):
            name = f"app{number:02d}"
            cluster.set_endpoints(namespace, name, ready=1)
            backends = [{"service": name, "weight": 1}, {"service": "fallback", "weight": 0}]
            cluster.create(
                {
                    "apiVersion": "split.smi-spec.io/v1alpha2", "kind": "TrafficSplit",
                    "metadata": {"name": name, "namespace": namespace, "labels": {"team": "shop"}},
                    "spec": {"service": f"{name}-apex", "backends": backends},
                }
            )  # fmt: skip
            routes.append((namespace, name))
    return routes


@pytest.mark.timeout(600)
async def test_a_restart_with_ten_thousand_open_windows_loses_none_and_hurries_none(tmp_path: Path) -> None:
    async with Emulator(clock=Clock().now) as emulator:
        cluster = emulator.cluster("east")
        routes = furnish(cluster)
        kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", emulator)
        settings = {"clusters": {"east": {"kubeconfig": str(kubeconfig), "context": "east"}}, "logLevel": "warning"}
        loop = get_running_loop()
        async with Service(tmp_path / "reactor", rules=RULES, settings=settings) as service:
            began = loop.time()
            await until_told(lambda: _known(service), f"{COUNT} groups are known", within=300)
            print(f"{COUNT} groups known after {loop.time() - began:.1f} s")
            failed = {}
            for number, (namespace, name) in enumerate(routes):
                cluster.set_endpoints(namespace, name, ready=0, not_ready=1)
                failed[namespace, name] = cluster.monotonic()
                if number % EACH == 0:
                    await asyncio.sleep(0)  # the emulator serves in this loop
            first, last = min(failed.values()), max(failed.values())
            await until_told(lambda: _open(service), f"{COUNT} windows are open", within=DOWN_AT)
            print(f"all failed within {last - first:.1f} s, all windows open after {loop.time() - first:.1f} s")
            await asyncio.sleep(max(first + DOWN_AT - loop.time(), 0))
            assert list(emulator.writes.effective("trafficsplits", manager="alert-reactor")) == []
            await service.kill()
            killed = loop.time()
            await service.start()
            up = loop.time()
            await until(lambda: len(_writes(emulator)) >= COUNT, f"{COUNT} writes", within=ALL_DONE)
            done = loop.time()
            await asyncio.sleep(2)  # for one that would be doubled

        moved = {(write.namespace, write.name): write.at for write in _writes(emulator)}
        shortest = min(at - failed[key] for key, at in moved.items())
        due = max(first + WINDOW, up)
        acting = min(moved.values()) - due
        print(
            f"killed at {killed - first:.1f} s, ready again {up - killed:.1f} s later; the first write {acting:.2f} s "
            f"after it was due, all {COUNT} {done - due:.1f} s after; the shortest window {shortest:.3f} s"
        )
        assert len(_writes(emulator)) == COUNT, "something was written twice"
        assert moved.keys() == failed.keys()
        assert shortest >= WINDOW, f"a window of {WINDOW} s ended after {shortest:.3f} s"
        assert min(moved.values()) - max(killed, first + WINDOW) <= ACTING


def _writes(emulator: Emulator) -> list:
    return emulator.writes.effective("trafficsplits", manager="alert-reactor")


async def _known(service: Service) -> bool:
    groups = await service.groups()
    return sum(bool(group.route) and len(group.members) == 2 for group in groups) == COUNT


async def _open(service: Service) -> bool:
    return await service.metric("reactor_open_windows") == COUNT
