"""A restart with ten thousand open windows: it acts again within seconds, and each window ends when it would have.

A thousand of them end soon after the restart, and lead to their writes. The others stay open, with the same start: none
was lost, and none may end early.
"""

from __future__ import annotations

import asyncio
from asyncio import get_running_loop
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from bus import subjects
from bus.envelope import encode
from bus.jetstream import JetStreamBus
from bus.messages import Health, Observation
from bus.port import Outgoing
from reactor.demo.kube import EmulatedCluster, Emulator, LoggedWrite, write_kubeconfig
from reactor.runtime.clock import Clock
from rules.core.group import Group
from rules.core.member import Window
from rules.summary import route_of
from tests.e2e.service import Service
from tests.e2e.waiting import until, until_told

NAMESPACES, EACH = 100, 100
COUNT = NAMESPACES * EACH
SOON = NAMESPACES // 10
"""In so many namespaces windows are short."""
AT_ONCE = 500
STALE = 900.0
WINDOW, LONG_WINDOW = 90.0, 900.0
DOWN_AT = 80.0
"""Seconds after the first outage at which the process is killed: by then every window is open and stored."""
ACTING = 10.0
"""Seconds after which it acts again; on a busy machine, as many as it took to open all windows."""
ALL_DONE = 150.0
"""Seconds in which a thousand writes are through on a busy machine; the bar is that none is lost."""
RULES = f"""
apiVersion: reactor/v1
rules:
- name: soon
  kind: TrafficFailover
  mode: Enforce
  route: {{cluster: east, kind: TrafficSplit, selector: team=soon}}
  tolerationSeconds: {WINDOW:g}
- name: later
  kind: TrafficFailover
  mode: Enforce
  route: {{cluster: east, kind: TrafficSplit, selector: team=later}}
  tolerationSeconds: {LONG_WINDOW:g}
"""


def furnish(cluster: EmulatedCluster) -> list[tuple[str, str]]:
    """Make the routes, a hundred in each namespace with one fallback; gives (namespace, name) of each."""
    routes = []
    for place in range(NAMESPACES):
        namespace, team = f"shop{place:02d}", "soon" if place < SOON else "later"
        for number in range(EACH):
            name = f"app{number:02d}"
            backends = [{"service": name, "weight": 1}, {"service": "fallback", "weight": 0}]
            cluster.create(
                {
                    "apiVersion": "split.smi-spec.io/v1alpha2", "kind": "TrafficSplit",
                    "metadata": {"name": name, "namespace": namespace, "labels": {"team": team}},
                    "spec": {"service": f"{name}-apex", "backends": backends},
                }
            )  # fmt: skip
            routes.append((namespace, name))
    return routes


@pytest.mark.alone
@pytest.mark.timeout(600)
async def test_a_restart_with_ten_thousand_open_windows_loses_none_and_hurries_none(tmp_path: Path) -> None:
    async with Emulator(clock=Clock().now) as emulator:
        cluster = emulator.cluster("east")
        routes = furnish(cluster)
        kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", emulator)
        settings = {"clusters": {"east": {"kubeconfig": str(kubeconfig), "context": "east"}}, "logLevel": "warning"}
        settings["bus"] = {"store": str(tmp_path / "reactor" / "nats"), "observationsAtOnce": 100_000}
        loop = get_running_loop()
        async with Service(tmp_path / "reactor", rules=RULES, settings=settings) as service:
            began = loop.time()
            await tell(service, _healthy(routes), Health.HEALTHY)
            await until_told(lambda: _known(service), f"{COUNT} groups are known", within=300)
            print(f"{COUNT} groups known after {loop.time() - began:.1f} s")
            failed = await tell(service, [_target(*route) for route in routes], Health.UNHEALTHY)
            told = loop.time() - failed
            await until_told(lambda: _open(service), f"{COUNT} windows are open", within=DOWN_AT)
            opened = loop.time() - failed
            print(f"told within {told:.1f} s, all windows open after {opened:.1f} s")
            await asyncio.sleep(max(failed + DOWN_AT - loop.time(), 0))
            assert list(emulator.writes.effective("trafficsplits", manager="alert-reactor")) == []
            await service.kill()
            killed = loop.time()
            await service.start()
            up = loop.time()
            soon = set(routes[: SOON * EACH])
            await until(lambda: len(_writes(emulator)) >= len(soon), f"{len(soon)} writes", within=ALL_DONE)
            done = loop.time()
            await asyncio.sleep(2)  # for one that would be doubled
            groups = await service.groups()

        writes = _writes(emulator)
        windows = [write.at - failed for write in writes]
        due = max(failed + WINDOW, up)
        acting = min(windows) + failed - due
        print(
            f"killed {killed - failed:.1f} s after they failed, ready again {up - killed:.1f} s later; first write "
            f"{acting:.2f} s after it was due, all {len(soon)} {done - due:.1f} s after; "
            f"shortest window {min(windows):.3f} s"
        )
        assert min(windows) + failed - max(killed, failed + WINDOW) <= max(ACTING, opened)
        assert min(windows) >= WINDOW, f"a window of {WINDOW} s ended after {min(windows):.3f} s"
        assert len(writes) == len(soon), "something was written twice"
        assert {(write.namespace, write.name) for write in writes} == soon
        starts = Counter(window.since for group in groups for window in _windows(group))
        assert list(starts.values()) == [COUNT - len(soon)], f"windows are lost, or began anew: {starts}"


def _windows(group: Group) -> list[Window]:
    return [member.window for member in group.members.values() if member.window is not None]


def _writes(emulator: Emulator) -> list[LoggedWrite]:
    return emulator.writes.effective("trafficsplits", manager="alert-reactor")


def _healthy(routes: Sequence[tuple[str, str]]) -> list[str]:
    fallbacks = sorted({_target(namespace, "fallback") for namespace, _ in routes})
    return [*fallbacks, *(_target(*route) for route in routes)]


def _target(namespace: str, service: str) -> str:
    return f"service/east/{namespace}/{service}"


async def tell(service: Service, targets: Iterable[str], status: Health) -> float:
    """Say on the bus, as any source outside may, how all these are; gives since when, on the event loop's clock."""
    began, at = get_running_loop().time(), Clock().now()
    messages = []
    for target in targets:
        said = Observation(target=target, status=status, signal="outside", observed_at=at, stale_seconds=STALE)
        id_ = f"{target}/{status}"
        body = encode(said, id=id_, source="/outside", time=at)
        messages.append(Outgoing(subjects.observation("outside", target), body, id_))
    async with JetStreamBus.connect(service.bus_url, name="outside") as bus:
        for start in range(0, len(messages), AT_ONCE):
            await bus.publish_all(messages[start : start + AT_ONCE])
    return began


async def _known(service: Service) -> bool:
    groups = await service.groups()
    return sum(bool(route_of(group)) and len(group.members) == 2 for group in groups) == COUNT


async def _open(service: Service) -> bool:
    return await service.metric("reactor_open_windows") == COUNT
