"""Commands of the how-to pages that need servers beside the reactor: a Prometheus with a past, a NATS of three, a
cluster."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from bus import permissions
from bus.embedded import EmbeddedServer
from bus.server_users import configuration
from reactor.demo.kube import Emulator, write_kubeconfig
from reactor.runtime.clock import Clock
from tests.contract.bus.servers import Configured, cluster
from tests.e2e.conftest import MakeReactor
from tests.e2e.followed import Followed
from tests.e2e.pages import blocks
from tests.e2e.processes import Child
from tests.e2e.rulefiles import document, failover
from tests.e2e.service import ROOT, Service
from tests.e2e.shop import Shop
from tests.e2e.test_backtest import Filled
from tests.e2e.waiting import until, until_told
from tests.integration.bus.authority import jetstream

pytestmark = pytest.mark.long

STEP = 15
"""Seconds between two scrapes."""
HOURS = 2
OUTAGE = range(120, 160)
"""Scrapes in which a fifth of the requests failed."""


def past() -> str:
    """Requests of two services up to now."""
    now = int(Clock().now().timestamp())
    scrapes = HOURS * 3600 // STEP
    lines: dict[str, list[str]] = {"http_requests": [], "http_errors": []}
    for service in ("checkout", "checkout-west"):
        count = {"200": 0, "500": 0}
        for scrape in range(scrapes):
            bad = 20 if service == "checkout" and scrape in OUTAGE else 0
            count = {"200": count["200"] + 100 - bad, "500": count["500"] + bad}
            second = now - (scrapes - scrape) * STEP
            for code, value in count.items():
                labels = f'service="{service}",cluster="east",namespace="shop",code="{code}"'
                lines["http_requests"].append(f"http_requests_total{{{labels}}} {value} {second}")
            lines["http_errors"].append(f'http_errors_total{{service="{service}"}} {count["500"]} {second}')
    out = []
    for name, found in lines.items():
        out += [f"# TYPE {name} counter", *sorted(found)]
    return "\n".join([*out, "# EOF", ""])


@asynccontextmanager
async def with_a_past(folder: Path) -> AsyncIterator[tuple[Filled, Shop]]:
    """A Prometheus, a shop, and in the folder the settings that name both."""
    async with Filled(folder / "prometheus", past()) as prometheus, Emulator(clock=Clock().now) as emulator:
        shop = Shop(emulator)
        shop.split("checkout", "checkout-west")
        config = write_kubeconfig(folder / "kubeconfig", emulator)
        settings = {
            "prometheus": {"main": {"url": prometheus.url}},
            "clusters": {"east": {"kubeconfig": str(config), "context": "east"}},
            "receiver": {"listen": "127.0.0.1:0"},
        }
        (folder / "reactor.yaml").write_text(yaml.safe_dump(settings))
        yield prometheus, shop


async def test_rules_are_tried_on_the_past(tmp_path: Path) -> None:
    async with with_a_past(tmp_path) as (prometheus, _):
        with Followed("docs/how-to/backtest-a-rule.md", tmp_path) as page:
            page.save()
            soon = Clock().now()
            page.instead = {
                "http://127.0.0.1:9090": prometheus.url, "-30d": "-2h",
                "2026-11-01T00:00:00Z": f"{soon - timedelta(hours=2):%Y-%m-%dT%H:%M:%SZ}",
                "2026-11-08T00:00:00Z": f"{soon:%Y-%m-%dT%H:%M:%SZ}",
            }  # fmt: skip
            text = (tmp_path / "shop.yaml").read_text()
            (tmp_path / "new.yaml").write_text(text.replace("tolerationSeconds: 60", "tolerationSeconds: 120"))
            said = await page.run_all()
            assert "PrimaryUnhealthy" in said
            assert (tmp_path / "backtest.html").is_file()


async def test_rules_are_checked_against_servers(tmp_path: Path) -> None:
    async with with_a_past(tmp_path) as (prometheus, _):
        config = tmp_path / "kubeconfig"
        page_, part = "docs/how-to/write-and-test-rules.md", "--against"
        with Followed(page_, tmp_path, part=lambda one: part in one, KUBECONFIG=str(config)) as page:
            page.save()
            page.instead = {"http://127.0.0.1:9090": prometheus.url, "kind-east": "east"}
            while page.left:
                said = await page.run("reactor check", codes=(0, 1))
                assert "1 file" in said


async def test_an_objective_fails_over(tmp_path: Path) -> None:
    """The tutorial: its rule is tried on the past, and watches."""
    async with with_a_past(tmp_path):
        with Followed("docs/tutorial-slo.md", tmp_path, instead={"-30d": "-2h"}) as page:
            page.save()
            assert "2 passed, 0 failed" in await page.run("reactor test")
            await page.run("reactor backtest")
            async with typed(page, tmp_path, "reactor run"):
                await until_shown(page, tmp_path, "checkout-slo")
                await page.run("reactor status")
        with Followed("README.md", tmp_path, instead={"-30d": "-2h"}) as page:
            page.save("shop.yaml")
            quickstart = Followed("docs/quickstart.md", tmp_path)
            quickstart.save("shop_test.yaml")
            (tmp_path / "outage.jsonl").write_text(blocks(quickstart.text, "jsonl")[0])
            (tmp_path / "pager.yaml").write_text((tmp_path / "slo.yaml").read_text())
            for start in ("reactor check", "reactor test", "reactor simulate", "reactor backtest"):
                await page.run(start)
            async with typed(page, tmp_path, "reactor run"):
                await until_shown(page, tmp_path, "east/shop/TrafficSplit/checkout")


@asynccontextmanager
async def typed(page: Followed, folder: Path, start: str, name: str = "run") -> AsyncIterator[Child]:
    """Run a command of the page as in a terminal of its own, and end it with Ctrl-C. It is up when the block begins:
    each command that asks what a reactor knows takes a second of a processor, which this one needs to start."""
    child = Child(name, ["bash", "-c", f"exec {page.take(start)}"], folder, environment=page.environment)
    async with child:
        await until(lambda: re.search(r"^reactor \S+: ", child.log.read_text(), re.MULTILINE), f"{name} is up")
        yield child


async def until_shown(page: Followed, folder: Path, words: str) -> None:
    """Wait until `reactor status` has these words."""

    async def shown() -> bool:
        said = await page.also("reactor status --config reactor.yaml", codes=(0, 1, 3))
        return words in said

    await until_told(shown, f"the status has {words}")


async def test_a_nats_of_ones_own(tmp_path: Path) -> None:
    async with cluster(tmp_path / "nats") as members:
        (tmp_path / "reactor.yaml").write_text(yaml.safe_dump({"bus": {"url": [one.url for one in members]}}))
        with Followed("docs/how-to/external-nats.md", tmp_path) as page:
            await page.run("reactor bus permissions")
            assert "backup-check" in (tmp_path / "users.conf").read_text()
            await page.run("reactor bus init")
            assert "streams" in await page.run("reactor bus check")
            assert "REACTOR_INBOX" in await page.run("reactor bus status")


async def test_roles_of_their_own(tmp_path: Path) -> None:
    async with EmbeddedServer(tmp_path / "nats") as server, Emulator(clock=Clock().now) as emulator:
        Shop(emulator).split("checkout", "checkout-west")
        config = write_kubeconfig(tmp_path / "kubeconfig", emulator)
        rules = (ROOT / "rules/library/linkerd_failover.yaml").read_text().replace("local", "east")
        (tmp_path / "rules.yaml").write_text(rules)
        settings = {
            "bus": {"url": server.url}, "receiver": {"listen": "127.0.0.1:0"}, "ruleFiles": ["rules.yaml"],
            "clusters": {"east": {"kubeconfig": str(config), "context": "east"}},
        }  # fmt: skip
        (tmp_path / "reactor.yaml").write_text(yaml.safe_dump(settings))
        with Followed("docs/how-to/run-in-production.md", tmp_path) as page:
            page.kubectl("")
            assert "kind: ClusterRole" in await page.run("reactor rbac")
            async with (
                typed(page, tmp_path, "reactor run", "a"), typed(page, tmp_path, "reactor run", "b"),
                typed(page, tmp_path, "reactor run", "c"),
            ):  # fmt: skip

                async def whole() -> bool:
                    said = await page.also("reactor members --config reactor.yaml", codes=(0, 1, 3))
                    return all(role in said for role in ("receiver", "router", "observer", "decider", "executor"))

                await until_told(whole, "each role has a member")


async def test_a_zone_is_isolated_by_hand(tmp_path: Path) -> None:
    async with Emulator(clock=Clock().now) as emulator:
        prod = emulator.cluster("prod")
        for zone in "abc":
            for number in (1, 2):
                prod.create(
                    {
                        "apiVersion": "v1", "kind": "Node", "spec": {},
                        "metadata": {
                            "name": f"{zone}{number}", "labels": {"topology.kubernetes.io/zone": f"eu-central-1{zone}"}
                        },
                        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
                    }
                )  # fmt: skip
        config = write_kubeconfig(tmp_path / "kubeconfig", emulator)
        with Followed("docs/how-to/isolate-a-zone.md", tmp_path / "here") as page:
            page.save("zones.yaml")
            rules = (
                (page.folder / "zones.yaml")
                .read_text()
                .replace(
                    "rules:", "sources:\n  - {name: nodes, kind: NodeWatch, cluster: prod, refreshSeconds: 1}\nrules:"
                )
            )
            service = Service(
                page.folder, rules=rules, name="here",
                settings={"clusters": {"prod": {"kubeconfig": str(config), "context": "prod"}}},
            )  # fmt: skip
            async with service:
                await page.run("export REACTOR_CONFIG")

                async def known() -> bool:
                    return "eu-central-1a" in await service.printed("zone", "list")

                await until_told(known, "the zones are known")
                assert "prod-zones" in await page.run("reactor zone list")
                assert "Evacuate" in await page.run("reactor zone plan", codes=(0, 1))
                assert "Do it?" in await page.run("reactor zone isolate", answers="y\n", codes=(0, 1))


async def test_people_reach_the_bus_of_a_cluster(
    shop: Shop, reactor: MakeReactor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the user `operator`, through a port that is forwarded."""
    roles = ("reactor", "operator")
    for role in roles:
        monkeypatch.setenv(f"NATS_PASSWORD_{role.upper()}", f"password-of-{role}")
    users = f"{jetstream(tmp_path)}\n{configuration(map(permissions.of_role, roles))}"
    shop.split("checkout", "fallback")
    async with Configured(tmp_path / "nats", users) as server:
        bus = {"url": server.url, "user": "reactor", "password": "password-of-reactor"}
        async with reactor(document(rules=failover()), bus=bus) as service:

            async def known() -> bool:
                return await service.metric("reactor_targets", rule="shop") > 0

            await until_told(known, "the route is known")
            with Followed("docs/how-to/install-in-kubernetes.md", tmp_path / "here") as page:
                page.instead = {"nats://127.0.0.1:4222": server.url}
                page.program("kubectl", 'case "$*" in *secret*) printf password-of-operator | base64;; esac\n')
                await page.run("kubectl -n reactor port-forward")
                await page.run("export REACTOR_BUS__URL")
                await page.run("export REACTOR_BUS__PASSWORD")
                assert "TrafficSplit/checkout" in await page.run("reactor status")
                assert "paused by operator" in await page.run("reactor pause", answers="y\n")
                assert "resumed *" in await page.run("reactor resume", answers="y\n")
            assert service.running
