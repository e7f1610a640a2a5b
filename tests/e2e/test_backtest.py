"""`reactor backtest` against a real Prometheus: one filled through promtool, and one that a live reactor has asked."""

from __future__ import annotations

import asyncio
import json
import subprocess
from asyncio import get_running_loop
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from reactor.cli.main import main
from reactor.runtime.clock import Clock
from tests.e2e.conftest import MakeReactor
from tests.e2e.exporter import exporting
from tests.e2e.forked import fork
from tests.e2e.servers import Alertmanager, Prometheus, _Server, binary
from tests.e2e.service import environment
from tests.e2e.shop import Shop
from tests.e2e.tap import tapping
from tests.e2e.waiting import until
from tests.ports import free_port

START = 1_767_225_600  # 2026-01-01T00:00:00Z
STEP = 30
HOURS = 6
RULES = """
apiVersion: reactor/v1
sources:
- {name: up, kind: PrometheusQuery, prometheus: main, query: shop_up, everySeconds: 30, signal: health,
   target: 'service/east/shop/{service}', unhealthyWhen: {below: 0.5}}
- {name: am, kind: AlertmanagerWebhook, matchers: 'alertname="Slow"', target: 'custom/slow/{service}',
   onResolved: Healthy}
rules:
- name: checkout
  kind: TrafficFailover
  route: {cluster: east, kind: TrafficSplit, namespace: shop, name: checkout}
  primary: checkout
  backends: [{service: checkout}, {service: fallback}]
  tolerationSeconds: 60
  recoverySeconds: 120
- {name: people, kind: Notification, match: custom/slow/*, message: '{target} is {status}'}
"""


async def backtest(*words: str) -> tuple[int, str, str]:
    """Run the command, and give its exit code and what it printed."""
    with TemporaryDirectory() as folder:
        out, problems = Path(folder, "out"), Path(folder, "problems")
        process = await fork(main, ["backtest", *words], Path.cwd(), environment(), out, errors=problems)
        code = await process.wait()
        return code, out.read_text("utf-8"), problems.read_text("utf-8")


def moment(second: float) -> str:
    return datetime.fromtimestamp(second, UTC).isoformat().replace("+00:00", "Z")


class Filled(_Server):
    """A Prometheus over imported blocks, which scrapes nothing."""

    def __init__(self, folder: Path, openmetrics: str) -> None:
        port = free_port()
        folder.mkdir(parents=True)
        (folder / "history.om").write_text(openmetrics, encoding="ascii")
        (folder / "prometheus.yml").write_text("global: {scrape_interval: 1m}\n")
        argv = [
            binary("prometheus"), "--config.file=prometheus.yml", f"--storage.tsdb.path={folder / 'data'}",
            "--storage.tsdb.retention.time=100y", f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn",
        ]  # fmt: skip
        words = [
            "tsdb",
            "create-blocks-from",
            "openmetrics",
            "--quiet",
            str(folder / "history.om"),
            str(folder / "data"),
        ]
        subprocess.run([binary("promtool"), *words], check=True, stdout=subprocess.DEVNULL)
        super().__init__("prometheus", argv, folder, port=port)


def history() -> str:
    """Checkout is down for one minute and for ten; an alert fires for five; Prometheus is away for half an hour."""
    seconds = [START + n * STEP for n in range(HOURS * 3600 // STEP)]
    away = range(START + 4 * 3600, START + 4 * 3600 + 1800)
    seconds = [second for second in seconds if second not in away]
    down = [range(START + 3600, START + 3660), range(START + 7200, START + 7800)]
    lines = ["# TYPE shop_up gauge"]
    for service in ("checkout", "fallback"):
        for second in seconds:
            up = not (service == "checkout" and any(second in one for one in down))
            lines.append(f'shop_up{{service="{service}"}} {int(up)} {second}')
    lines += ["# TYPE up gauge", *(f'up{{job="shop"}} 1 {second}' for second in seconds), "# TYPE ALERTS gauge"]
    lines += [
        f'ALERTS{{alertname="Slow",alertstate="firing",service="checkout"}} 1 {second}'
        for second in range(START + 3 * 3600, START + 3 * 3600 + 300, STEP)
    ]
    return "\n".join([*lines, "# EOF", ""])


async def test_a_history_from_promtool_is_played_and_the_same_twice(tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(RULES)
    (tmp_path / "new.yaml").write_text(RULES.replace("tolerationSeconds: 60", "tolerationSeconds: 30"))
    async with Filled(tmp_path / "prometheus", history()) as prometheus:
        words = [
            "--rules", str(tmp_path / "shop.yaml"), "--prometheus", prometheus.url, "--from", moment(START),
            "--to", moment(START + HOURS * 3600 - STEP), "--cache", str(tmp_path / "cache"),
        ]  # fmt: skip
        extra = ["--compare", str(tmp_path / "new.yaml"), "--sweep", "tolerationSeconds=0,30,60,900"]
        pages = [tmp_path / "one.html", tmp_path / "two.html"]
        code, first, problems = await backtest(*words, *extra, "-o", "json", "--html", str(pages[0]))
        assert (code, problems) == (0, "")
        assert (await backtest(*words, *extra, "-o", "json", "--html", str(pages[1])))[1] == first
        assert pages[0].read_bytes() == pages[1].read_bytes()
        _, text, _ = await backtest(*words)
    found: dict[str, Any] = json.loads(first)
    checkout, people = found["rules"]
    timeline = [(mark["at"][11:19], mark["type"]) for mark in checkout["timeline"] if mark["type"] != "hold"]
    assert timeline == [("01:00:00", "flap"), ("02:01:00", "action"), ("02:12:00", "action")]
    assert [row["unknownSeconds"] > 1500 for row in checkout["targets"]] == [True, True]
    assert [mark["move"] for mark in people["timeline"]] == ["Away", "Home"]
    assert found["notes"] == []
    assert "checkout=0 fallback=1" in text
    assert "1 failover" in text


async def test_bad_input_is_told_apart_by_exit_codes(tmp_path: Path) -> None:
    rules, blind = tmp_path / "shop.yaml", tmp_path / "blind.yaml"
    rules.write_text(RULES)
    blind.write_text("apiVersion: reactor/v1\nrules:\n- {name: people, kind: Notification, match: service/**}\n")
    nobody = f"http://127.0.0.1:{free_port()}"
    asked = ["--rules", str(rules), "--prometheus", nobody, "--no-cache"]
    cases = [
        (3, "prometheus.default", [*asked, "--from", "-1h"]),
        (1, "no PrometheusQuery and no AlertmanagerWebhook", ["--rules", str(blind), *asked[2:], "--from", "-1h"]),
        (1, "no such file", ["--rules", str(tmp_path / "no.yaml"), *asked[2:], "--from", "-1h"]),
        (2, "is not before --to", [*asked, "--from", "-1h", "--to", "-2h"]),
        (2, "in the future", [*asked, "--from", "-1h", "--to", moment(START * 2)]),
        (2, "is an invalid time", [*asked, "--from", "yesterday"]),
        (2, "--sweep", [*asked, "--from", "-1h", "--sweep", "tolerationSeconds=a"]),
        (2, "shorter range", [*asked, "--from", "2020-01-01T00:00:00Z", "--step", "0.1"]),
        (2, "say where Prometheus is", ["--rules", str(rules), "--from", "-1h"]),
        (2, "use --config", ["--rules", str(rules), "--from", "-1h", "--prometheus", "http://a:b@127.0.0.1:1"]),
    ]
    for expected, words, argv in cases:
        code, _, problems = await backtest(*argv)
        assert code == expected, (argv, problems)
        assert words in problems


LIVE = """
apiVersion: reactor/v1
sources:
- {name: readiness, kind: EndpointsWatch, cluster: east, target: 'custom/unused/{service}'}
- {name: up, kind: PrometheusQuery, prometheus: main, query: shop_up, everySeconds: 0.5, signal: health,
   target: 'service/east/shop/{service}', unhealthyWhen: {below: 0.5}, staleSeconds: 5, refreshSeconds: 1}
rules:
- name: checkout
  kind: TrafficFailover
  mode: Enforce
  route: {cluster: east, kind: TrafficSplit, namespace: shop, name: checkout}
  primary: checkout
  backends: [{service: checkout}, {service: fallback}]
  tolerationSeconds: 3
  recoverySeconds: 2
"""
ALERTS = """
apiVersion: reactor/v1
sources:
- {name: readiness, kind: EndpointsWatch, cluster: east, target: 'custom/unused/{service}'}
- {name: up, kind: PrometheusQuery, prometheus: main, query: 'shop_up{service="fallback"}', everySeconds: 0.5,
   target: 'service/east/shop/{service}', unhealthyWhen: {below: 0.5}, staleSeconds: 5, refreshSeconds: 1}
- name: am
  kind: AlertmanagerWebhook
  matchers: alertname="ShopDown"
  target: 'service/east/shop/{service}'
  confirm: {prometheus: main, query: shop_up == 1, everySeconds: 0.5}
rules:
- name: checkout
  kind: TrafficFailover
  mode: Enforce
  route: {cluster: east, kind: TrafficSplit, namespace: shop, name: checkout}
  primary: checkout
  backends: [{service: checkout}, {service: fallback}]
  signals: [am, up]
  tolerationSeconds: 4
  recoverySeconds: 2
"""
"""Only the alert is about checkout."""
LATE_SECONDS = 2.0
"""Largest difference in seconds between live and backtest: a scrape, an evaluation, and a busy machine."""
ALERTMANAGER_SECONDS = 1.5
"""Plus the group_interval, with the time of a post, where Alertmanager is in between."""


@pytest.mark.timeout(180)
@pytest.mark.parametrize(("rules", "late"), [(LIVE, LATE_SECONDS), (ALERTS, LATE_SECONDS + ALERTMANAGER_SECONDS)],
                         ids=["a query", "an alert"])  # fmt: skip
async def test_what_was_done_live_is_what_the_backtest_says(
    shop: Shop, reactor: MakeReactor, tmp_path: Path, rules: str, late: float
) -> None:
    """A flap, an outage and a recovery, recorded by the Prometheus that the live reactor asks or is told by."""
    shop.split("checkout", "fallback")
    clock = Clock()
    async with exporting("checkout", "fallback") as exporter, tapping() as tap:
        alertmanager = Alertmanager(tmp_path / "alertmanager", posts_to=[f"{tap.url}/v1/alerts/am"])
        prometheus = Prometheus(tmp_path / "prometheus", scrapes=[exporter.address], alertmanagers=[alertmanager])
        async with alertmanager, prometheus:
            async with reactor(rules, prometheus={"main": {"url": prometheus.url}}) as service:
                tap.forwards_to = service.url
                await service.settled(1)
                began, loop_began = clock.now(), get_running_loop().time()
                exporter.up["checkout"] = False
                await asyncio.sleep(1.0)  # a flap: shorter than the toleration
                exporter.up["checkout"] = True
                await asyncio.sleep(4.0)
                exporter.up["checkout"] = False
                await until(lambda: shop.moves("checkout") == ["away"], "traffic has left")
                exporter.up["checkout"] = True
                await until(lambda: shop.moves("checkout") == ["away", "home"], "traffic is back")
            ended = clock.now() + timedelta(seconds=0.5)
            await asyncio.sleep(1.0)
            (tmp_path / "live.yaml").write_text(rules)
            code, out, problems = await backtest(
                "--rules", str(tmp_path / "live.yaml"), "--prometheus", prometheus.url, "--no-cache", "-o", "json",
                "--from", (began - timedelta(seconds=2)).isoformat(), "--to", ended.isoformat(), "--step", "0.5",
            )  # fmt: skip
    assert code == 0, problems
    (rule,) = json.loads(out)["rules"]
    acts = [mark for mark in rule["timeline"] if mark["type"] == "action"]
    assert [act["weights"] for act in acts] == shop.history("checkout")
    assert rule["flapsAvoided"] == 1
    for act, write in zip(acts, shop.writes("checkout"), strict=True):
        live = began + timedelta(seconds=write.at - loop_began)
        apart = abs((datetime.fromisoformat(act["at"]) - live).total_seconds())
        print(f"{act['move']}: live and backtest {apart:.2f} s apart")
        assert apart < late
