"""`reactor doctor` beside real servers that are wrong: each failure is named, with what mends it."""

from __future__ import annotations

import asyncio
import json
import subprocess
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from bus import permissions
from bus.server_users import configuration
from reactor.cli.main import cli
from reactor.demo.kube import Emulator, write_kubeconfig
from reactor.runtime.clock import Clock
from reactor.workbench.doctor import servers_diagnosis
from tests import disk
from tests.contract.bus.servers import Configured
from tests.e2e.exporter import exporting
from tests.e2e.rulefiles import rewrite
from tests.e2e.servers import Alertmanager, Prometheus
from tests.e2e.service import Service
from tests.e2e.waiting import until_told
from tests.integration.bus.authority import jetstream

RULES = """apiVersion: reactor/v1
sources:
- {name: rate, kind: PrometheusQuery, prometheus: main, query: 'METRIC', everySeconds: 5,
   target: 'service/east/shop/{service}', unhealthyWhen: {below: 1}}
- {name: SOURCE, kind: AlertmanagerWebhook, target: 'service/east/shop/{service}'}
rules:
- name: checkout
  kind: TrafficFailover
  route: {cluster: east, kind: TrafficSplit, namespace: shop, name: checkout}
  backends: [{service: checkout}, {service: fallback}]
  tolerationSeconds: 5
  recoverySeconds: 60
"""
Found = dict[str, list[dict[str, Any]]]


def rules(metric: str = "shop_up", source: str = "am") -> str:
    return RULES.replace("METRIC", metric).replace("SOURCE", source)


async def doctor(config: Path) -> Found:
    """Give its findings by group and name."""
    argv = ("doctor", "--config", str(config), "--timeout", "60", "-o", "json")
    done = await asyncio.to_thread(CliRunner().invoke, cli, argv)
    assert done.stdout.startswith("{"), done.output
    found: Found = {}
    for one in json.loads(done.stdout)["checks"]:
        found.setdefault(f"{one['group']}/{one['name']}", []).append(one)
    assert (done.exit_code == 1) == any(one["status"] == "failed" for all_ in found.values() for one in all_)
    return found


async def looked_at(config: Path, name: str) -> Found:
    """Ask until this is among what was looked at: a busy machine's bus may take more than the 3 s that it is given."""

    async def found() -> Found | None:
        all_ = await doctor(config)
        return all_ if name in all_ else None

    return await until_told(found, f"{name} is looked at")


def written(folder: Path, text: str, **settings: Any) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "rules.yaml").write_text(text)
    (folder / "reactor.yaml").write_text(yaml.safe_dump({"ruleFiles": [str(folder / "rules.yaml")], **settings}))
    return folder / "reactor.yaml"


def only(found: Found, name: str) -> tuple[str, str, str]:
    assert len(found.get(name, ())) == 1, f"{name} in {json.dumps(found)}"
    [one] = found[name]
    return one["status"], one["detail"], one["fix"]


async def test_a_query_without_data_a_route_that_is_missing_and_a_clock_that_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers_diagnosis, "Clock", partial(Clock, wrong_by=timedelta(seconds=-30)))
    async with (
        exporting("checkout") as exporter,
        Prometheus(tmp_path / "prometheus", scrapes=[exporter.address]) as prometheus,
        Alertmanager(tmp_path / "alertmanager", posts_to=["http://127.0.0.1:9/v1/alerts/am"]) as alertmanager,
        Emulator(clock=Clock().now) as emulator,
    ):
        emulator.cluster("east").ensure_namespace("shop")
        kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", emulator)
        servers = {
            "clusters": {"east": {"kubeconfig": str(kubeconfig), "context": "east"}},
            "prometheus": {"main": {"url": prometheus.url}}, "alertmanager": {"main": {"url": alertmanager.url}},
            "bus": {"store": str(tmp_path / "nats")},
        }  # fmt: skip
        await until_told(lambda: _has(prometheus, "shop_up"), "Prometheus has scraped")
        wrong = await doctor(written(tmp_path / "wrong", rules("shop_upp", "pages"), **servers))
        right = await doctor(written(tmp_path / "right", rules(), **servers))
    status, detail, fix = only(wrong, "prometheus/main rules")
    assert (status, "no series is called shop_upp" in detail, bool(fix)) == ("warning", True, True), detail
    status, detail, fix = only(wrong, "alertmanager/main route")
    assert (status, "/v1/alerts/pages" in detail, "wire-alertmanager" in fix) == ("failed", True, True)
    status, detail, fix = only(wrong, "clocks/east")
    assert (status, "ahead of this machine's" in detail, "NTP" in fix) == ("warning", True, True)
    assert "failed" in {one["status"] for one in wrong["clusters/east rules"]}, "there is no such TrafficSplit"
    status, detail, fix = only(wrong, "bus/connection")
    assert (status, bool(fix)) == ("failed", True), "no server runs"
    assert only(right, "prometheus/main rules")[0] == "ok"
    assert only(right, "alertmanager/main route")[0] == "ok"


async def _has(prometheus: Prometheus, metric: str) -> bool:
    return bool((await prometheus.get(f"/api/v1/query?query={metric}"))["data"]["result"])


@pytest.mark.skipif(bool(disk.lacks()), reason=disk.lacks())
async def test_a_disk_that_is_nearly_full_and_one_that_is_read_only(tmp_path: Path) -> None:
    with disk.small(tmp_path / "small") as folder:
        config = written(tmp_path / "here", rules(), bus={"store": str(folder / "nats")})
        status, detail, fix = only(await doctor(config), "disk/store")
        assert (status, "MiB free" in detail, "bus.store" in fix) == ("failed", True, True)
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        status, detail, fix = only(await doctor(config), "disk/store")
        assert (status, "cannot be written to" in detail, bool(fix)) == ("failed", True, True)


async def test_rule_files_that_a_reactor_could_not_take_and_those_that_differ(tmp_path: Path) -> None:
    async with Service(tmp_path / "reactor", rules=rules(), settings={"prometheus": {"main": {"url": "http://127.0.0.1:9"}},
                       "clusters": {"east": {"kubeconfig": str(tmp_path / "none")}}}) as service:  # fmt: skip
        assert only(await looked_at(service.config, "members/rules"), "members/rules")[0] == "ok"
        settings = yaml.safe_load(service.config.read_text("utf-8"))
        del settings["ruleFiles"]
        other = written(tmp_path / "other", rules().replace("tolerationSeconds: 5", "tolerationSeconds: 6"), **settings)
        status, detail, fix = only(await looked_at(other, "members/rules"), "members/rules")
        assert (status, "the reactors use" in detail, bool(fix)) == ("warning", True, True)
        rewrite(service, rules().replace("kind: TrafficFailover", "kind: TrafficFailova"))

        async def refused() -> Found | None:
            found = await doctor(service.config)
            return found if "members/files" in found else None

        found = await until_told(refused, "the reactor has refused the new file")
        status, detail, fix = only(found, "members/files")
        assert (status, "keeps its older rules" in detail, fix.startswith("reactor check")) == ("failed", True, True)
        assert only(found, "rules/files")[0] == "failed"


async def test_a_user_of_the_bus_without_the_rights_of_a_reactor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NATS_PASSWORD_REACTOR", "change-me")
    monkeypatch.setenv("NATS_PASSWORD_VIEWER", "change-me")
    users = f"{jetstream(tmp_path)}\n{configuration(map(permissions.of_role, ('reactor', 'viewer')))}"
    async with Configured(tmp_path / "nats", users) as server:
        url = server.url.replace("nats://", "nats://viewer:change-me@")
        found = await doctor(written(tmp_path / "here", rules(), bus={"url": url}))
    failed = {name for name, all_ in found.items() if name.startswith("bus/") and all_[0]["status"] == "failed"}
    assert "bus/permissions" in failed, found
    assert all(one["fix"] for name in failed for one in found[name])
