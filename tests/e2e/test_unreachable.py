"""An unreachable server delays no start and no reload, and no work that does not need it."""

from __future__ import annotations

import signal
import socket
from asyncio import get_running_loop
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from reactor.demo.kube import write_kubeconfig
from tests.e2e.alerts import body, firing
from tests.e2e.conftest import MakeReactor
from tests.e2e.rulefiles import ALERTS, document, failover
from tests.e2e.service import Service
from tests.e2e.shop import Shop
from tests.e2e.waiting import until, until_told

pytestmark = pytest.mark.alone
NEEDS = """
- {name: up, kind: PrometheusQuery, prometheus: away, query: up, target: custom/up, unhealthyWhen: Absent}
- {name: copies, kind: WorkloadWatch, cluster: karmada, kinds: [Deployment]}
"""
MOVES = """
- name: copies
  kind: WorkloadFailover
  mode: Enforce
  carrier: Karmada
  policies: {selector: 'team=shop'}
"""


@pytest.fixture
def silent() -> Iterator[str]:
    """The URL of a server that takes connections and never says a word."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(1000)
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


async def started(service: Service) -> float:
    """Start it, and give how many seconds it took until it was ready."""
    began = get_running_loop().time()
    await service.start()
    await service.ready()
    return get_running_loop().time() - began


async def test_what_cannot_be_reached_delays_no_start_and_no_reload(
    shop: Shop, reactor: MakeReactor, tmp_path: Path, silent: str
) -> None:
    shop.splits(["checkout", "search"], "fallback")
    plain = reactor(document(ALERTS, rules=failover()), name="plain")
    for _ in range(2):  # the first one pays for what this machine has not read yet
        usual = await started(plain)
        await plain.stop()

    endpoint = {"url": silent, "timeoutSeconds": 60}
    rules = document(ALERTS, NEEDS, rules=failover() + MOVES)
    service = reactor(rules, prometheus={"away": endpoint}, alertmanager={"away": endpoint})
    settings = yaml.safe_load(service.config.read_text())
    kubeconfig = yaml.safe_load(write_kubeconfig(tmp_path / "karmada", shop.emulator).read_text())
    for cluster in kubeconfig["clusters"]:
        cluster["cluster"]["server"] = silent
    (tmp_path / "karmada").write_text(yaml.safe_dump(kubeconfig))
    settings["clusters"]["karmada"] = {"kubeconfig": str(tmp_path / "karmada"), "context": "east"}
    service.config.write_text(yaml.safe_dump(settings))
    try:
        took = await started(service)
        print(f"ready after {took:.1f} s, without what hangs after {usual:.1f} s")
        assert took < 2 * usual + 3
        await service.settled(2)
        assert await service.post(body(firing("checkout"))) == 200
        await until(lambda: shop.moves("checkout") == ["away"], "the route is failed over")

        began = get_running_loop().time()
        Path(settings["ruleFiles"][0]).write_text(
            rules.replace("tolerationSeconds: 0\n", "tolerationSeconds: 0\n  recoverySeconds: 7\n")
        )
        service.process.send_signal(signal.SIGHUP)

        async def changed() -> bool:
            return (
                await service.metric("reactor_rule_reloads_total", result="changed") == 1 and await service.is_ready()
            )

        await until_told(changed, "it goes by other rules")
        took = get_running_loop().time() - began
        print(f"reloaded after {took:.1f} s")
        assert took < 2 * usual + 3
        assert await service.post(body(firing("search"))) == 200
        await until(lambda: shop.moves("search") == ["away"], "the other route is failed over")
    finally:
        await service.stop()
