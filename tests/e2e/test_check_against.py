"""`reactor check --against` with a real Prometheus, and with all servers of the settings at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from reactor.cli.main import cli
from reactor.demo.kube import Emulator, write_kubeconfig
from reactor.runtime.clock import Clock
from tests.e2e.exporter import exporting
from tests.e2e.servers import Prometheus
from tests.e2e.shop import Shop
from tests.e2e.waiting import until_told

RULES = """apiVersion: reactor/v1
sources:
  - name: down
    kind: PrometheusQuery
    prometheus: main
    target: service/{cluster}/shop/{service}
    query: QUERY
rules:
  - {name: tell, kind: Notification, match: service/**}
"""


@pytest.fixture
async def prometheus(tmp_path: Path) -> AsyncIterator[Prometheus]:
    """One that has scraped `shop_up{service="checkout"}`."""
    async with exporting("checkout") as exporter, Prometheus(tmp_path / "p", scrapes=[exporter.address]) as server:

        async def scraped() -> bool:
            return bool((await server.get("/api/v1/query?query=shop_up"))["data"]["result"])

        await until_told(scraped, "shop_up has been scraped")
        yield server


async def checked(*words: str | Path) -> Result:
    """Run the command in a thread: the servers live in this loop, the command makes one of its own."""
    return await asyncio.to_thread(CliRunner().invoke, cli, ["check", *map(str, words)])


async def findings(folder: Path, server: Prometheus, query: str, **source: Any) -> list[tuple[str, int, str, str]]:
    document = yaml.safe_load(RULES.replace("QUERY", json.dumps(query)))
    document["sources"][0] |= source
    file = folder / "rules.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    shown = await checked(file, "-o", "json", "--against", server.url)
    found = json.loads(shown.output)
    assert shown.exit_code == int(any(one["severity"] == "error" for one in found))
    live = [one for one in found if one["severity"] != "hint"]
    return [(one["severity"], one["line"], one["path"], one["message"]) for one in live]


async def test_queries_are_asked_of_a_real_prometheus(prometheus: Prometheus, tmp_path: Path) -> None:
    target = {"target": "service/east/shop/{service}"}
    assert await findings(tmp_path, prometheus, "shop_up == 0", **target) == [], "no series now, and that is Healthy"
    assert await findings(tmp_path, prometheus, "sum by (service) (shop_up)", **target) == []
    [(severity, line, path, message)] = await findings(tmp_path, prometheus, "sum by (service (shop_up)", **target)
    assert (severity, line, path) == ("error", 7, "sources[0].query")
    assert "no PromQL" in message, "what nobody can read is not asked"
    # The parser knows what this server takes only with a feature flag, or not yet.
    [(severity, line, path, message)] = await findings(tmp_path, prometheus, "limitk(1, shop_up)", **target)
    assert (severity, line, path) == ("error", 7, "sources[0].query")
    assert "parse error" in message


async def test_a_metric_that_no_server_has_is_told(prometheus: Prometheus, tmp_path: Path) -> None:
    query = "shop_up == 0 and on(service) rate(shop_requests_totl[1m]) > 0"
    assert await findings(tmp_path, prometheus, query, target="service/east/shop/{service}") == [
        ("warning", 7, "sources[0].query", "no series is called shop_requests_totl in the last 1h")
    ]


async def test_series_that_cannot_fill_the_target_are_told(prometheus: Prometheus, tmp_path: Path) -> None:
    [(severity, _, path, message)] = await findings(tmp_path, prometheus, "shop_up")
    assert (severity, path) == ("warning", "sources[0].query")
    assert message.startswith("1 of 1 series have no label 'cluster' for service/{cluster}/shop/{service}: {")


async def test_a_query_that_needs_series_and_gives_none_is_told(prometheus: Prometheus, tmp_path: Path) -> None:
    query, target = 'shop_up{service="other"}', {"target": "service/east/shop/other"}
    for when, status in (("Absent", "Unhealthy"), ({"below": 1}, "Unknown")):
        assert await findings(tmp_path, prometheus, query, unhealthyWhen=when, **target) == [
            ("warning", 7, "sources[0].query", f"gives no series now, so its target is {status}")
        ]
    assert await findings(tmp_path, prometheus, query, unhealthyWhen="Present", **target) == []


async def test_a_prometheus_that_is_away_is_one_finding(prometheus: Prometheus, tmp_path: Path) -> None:
    settings = tmp_path / "reactor.yaml"
    settings.write_text(yaml.safe_dump({"prometheus": {"main": {"url": prometheus.url, "timeoutSeconds": 2}}}))
    file = tmp_path / "rules.yaml"
    second = RULES.partition("sources:\n")[2].partition("rules:")[0].replace("name: down", "name: again")
    file.write_text(RULES.replace("rules:\n", f"{second}rules:\n").replace("QUERY", "up").replace("{cluster}", "east"))
    await prometheus.kill()
    shown = await checked(file, "--against", "-c", settings)
    assert shown.exit_code == 1
    told = [line for line in shown.stdout.splitlines() if "cannot be asked" in line]
    assert len(told) == 1
    assert told[0].startswith(f"{file}:5:17: sources[0].prometheus: main cannot be asked: prometheus.main: ")


async def test_all_servers_of_the_settings_are_asked_together(prometheus: Prometheus, tmp_path: Path) -> None:
    async with Emulator(clock=Clock().now) as emulator:
        shop = Shop(emulator)
        shop.split("checkout", "fallback")
        kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", emulator)
        settings = tmp_path / "reactor.yaml"
        clusters = {"east": {"kubeconfig": str(kubeconfig), "context": "east"}}
        settings.write_text(yaml.safe_dump({"clusters": clusters, "prometheus": {"main": {"url": prometheus.url}}}))
        file = tmp_path / "shop.yaml"
        file.write_text("""apiVersion: reactor/v1
sources:
  - {name: down, kind: PrometheusQuery, prometheus: main, query: shop_up == 0, target: "service/east/shop/{service}"}
rules:
  - name: checkout
    kind: TrafficFailover
    mode: Enforce
    route: {cluster: east, kind: TrafficSplit, namespace: shop, name: checkout}
    backends: [{service: checkout}, {service: fallback}]
    tolerationSeconds: 15
    recoverySeconds: 60
""")
        ways: tuple[list[str | Path], ...] = (
            ["--against", "-c", settings, file], [file, "-c", settings, "--against"],
            ["-c", settings, "--against", file],
            [file, "--against", prometheus.url, "--against", emulator.url("east")],
            [file, "--against", f"main={prometheus.url}", "--against", f"east={emulator.url('east')}"],
        )  # fmt: skip
        for words in ways:
            shown = await checked(*words)
            assert shown.output == "1 file, 1 rule: no problems\n"
        shop.east.delete("trafficsplits", "checkout", "shop")
        shown = await checked(file, "-c", settings, "--against", "-o", "github")
        assert shown.exit_code == 1
        assert "rules[0].route.name: east: there is no TrafficSplit shop/checkout" in shown.output
        assert [write for write in emulator.writes if write.manager == "alert-reactor"] == []


async def test_what_the_command_line_lacks_is_a_usage_error(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(RULES.replace("QUERY", "up"))
    cases: tuple[tuple[list[str | Path], str], ...] = (
        ([file, "--against"], "say which, with --config FILE"),
        ([file, "--against", "-c", tmp_path / "gone.yaml"], "no such file"),
        (["--against"], "Missing argument"),
    )
    for words, says in cases:
        shown = await checked(*words)
        assert shown.exit_code == 2
        assert says in shown.output
