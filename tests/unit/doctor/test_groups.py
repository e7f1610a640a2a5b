"""Each group of `reactor doctor`: what it says of what is right, wrong, missing or too slow."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reactor.cli.shared.bus_findings import INIT
from reactor.cli.shared.bus_findings import BusFinding as Checked
from reactor.fleet.presence import Process
from reactor.settings.bus_settings import BusSettings
from reactor.settings.model import Settings
from reactor.workbench.doctor import (
    alertmanager_diagnosis,
    bus_diagnosis,
    disk_diagnosis,
    members_diagnosis,
    rules_diagnosis,
    servers_diagnosis,
    settings_diagnosis,
)
from reactor.workbench.doctor.finding import Finding, limited
from rules.loader import LoadedParts

SECONDS = 30.0
"""More than any of these looks takes."""
RULE = """apiVersion: reactor/v1
sources: [{name: readiness, kind: EndpointsWatch, cluster: east, namespace: %s}]
rules:
  - name: checkout
    kind: TrafficFailover
    route: {cluster: east, kind: TrafficSplit, namespace: shop, name: checkout}
    backends: [{service: checkout}, {service: fallback}]
    recoverySeconds: 60
"""


def said(found: Sequence[Finding]) -> list[tuple[str, str]]:
    return [(one.name, one.status) for one in found]


# --- the limit -----------------------------------------------------------------------------------------------------


async def test_a_look_that_hangs_is_a_finding_and_holds_up_nothing() -> None:
    async def hangs() -> list[Finding]:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if let_go:
                    raise

    let_go: list[bool] = []
    [found] = await limited("clusters", "east", hangs(), 0.01)
    assert (found.status, found.detail) == ("failed", "no answer within 0.01 s")
    let_go.append(True)


async def test_a_look_in_time_is_given_as_it_is() -> None:
    async def looks() -> list[Finding]:
        return [Finding("disk", "store", "ok")]

    assert await limited("disk", "store", looks(), SECONDS) == [Finding("disk", "store", "ok")]


# --- settings and rules --------------------------------------------------------------------------------------------


async def test_settings_that_cannot_be_used_name_each_key(tmp_path: Path) -> None:
    file = tmp_path / "reactor.yaml"
    file.write_text("clusterz: {}\nbuss: {}\n")
    loaded, found = await settings_diagnosis.findings(file, SECONDS)
    assert loaded is None
    assert said(found) == [("load", "failed")] * 2
    assert "clusterz: there is no such key" in found[0].detail
    assert all(one.fix for one in found)


async def test_settings_that_can_be_used_are_given(tmp_path: Path) -> None:
    file = tmp_path / "reactor.yaml"
    file.write_text("name: here\n")
    loaded, found = await settings_diagnosis.findings(file, SECONDS)
    assert loaded is not None
    assert (loaded.name, said(found)) == ("here", [("load", "ok")])


async def rule_findings(folder: Path, text: str, **more: Any) -> tuple[rules_diagnosis.Rules, dict[str, Finding]]:
    file = folder / "shop.yaml"
    file.write_text(text)
    given = Settings(rule_files=(str(file),), **more)
    read, found = await rules_diagnosis.findings(given, SECONDS)
    return read, {one.name: one for one in found}


async def test_rules_that_are_right_are_ok(tmp_path: Path) -> None:
    read, found = await rule_findings(tmp_path, RULE % "shop", clusters={"east": {}})
    assert {name: one.status for name, one in found.items()} == dict.fromkeys(
        ["files", "names", "sources", "check"], "ok"
    )
    assert len(read.reading.rules) == 1
    assert read.digest


async def test_a_rule_that_no_source_feeds_is_a_warning_with_its_place(tmp_path: Path) -> None:
    _, found = await rule_findings(tmp_path, RULE % "other", clusters={"east": {}})
    assert found["sources"].status == "warning"
    assert "no source matches" in found["sources"].detail
    assert "shop.yaml:" in found["sources"].detail


async def test_a_cluster_that_the_settings_lack_fails(tmp_path: Path) -> None:
    read, found = await rule_findings(tmp_path, RULE % "shop")
    assert found["names"].status == "failed"
    assert "clusters" in found["names"].detail
    assert read.digest == ""


async def test_a_broken_rule_file_fails_with_the_command_that_says_more(tmp_path: Path) -> None:
    read, found = await rule_findings(tmp_path, "apiVersion: reactor/v1\nrulez: []\n")
    assert list(found) == ["files"]
    assert found["files"].status == "failed"
    assert found["files"].fix.startswith("reactor check ")
    assert read.reading.rules == []


async def test_without_rule_files_the_group_is_skipped() -> None:
    _, found = await rules_diagnosis.findings(Settings(), SECONDS)
    assert said(found) == [("files", "skipped")]


async def test_a_file_that_is_not_there_fails() -> None:
    _, found = await rules_diagnosis.findings(Settings(rule_files=("nowhere.yaml",)), SECONDS)
    assert found[0].detail == "nowhere.yaml: no such rule file"


# --- the bus -------------------------------------------------------------------------------------------------------

EMPTY = [
    Checked("server", "ok", "nats-server 2.11.0 with JetStream"),
    Checked("streams", "failed", f"REACTOR_FACTS is missing: {INIT}"),
    Checked("streams", "failed", f"REACTOR_ACTIONS is missing: {INIT}"),
    Checked("partitions", "failed", f"the number of partitions is not set: {INIT}"),
    Checked("write", "failed", "no stream"),
    Checked("sync_interval", "hint", "cannot be checked"),
]


def test_what_an_installation_makes_fails_after_it_with_the_command() -> None:
    found = bus_diagnosis.findings(EMPTY, before_install=False, suffix=" --bus nats://nats:4222")
    assert [one.status for one in found] == ["ok", *["failed"] * 4, "skipped", "skipped"]
    assert {one.fix for one in found[1:5]} == {"reactor bus init --bus nats://nats:4222"}
    assert all(one.fix for one in found if one.status == "failed")


def test_what_an_installation_makes_is_skipped_before_it() -> None:
    found = bus_diagnosis.findings(EMPTY, before_install=True)
    assert said(found) == [
        ("server", "ok"), ("streams", "skipped"), ("partitions", "skipped"), ("write", "skipped"),
        ("sync_interval", "skipped"), ("bus", "skipped"),
    ]  # fmt: skip


def test_what_no_installation_mends_fails_before_it_too() -> None:
    wrong = [Checked("streams", "failed", "REACTOR_FACTS: subjects differ"), Checked("permissions", "failed", "denied")]
    found = bus_diagnosis.findings([*wrong, Checked("write", "failed", "no answer")], before_install=True)
    assert [one.status for one in found] == [*["failed"] * 3, "skipped"]
    assert all(one.fix for one in found[:3])


def test_clocks_apart_are_a_warning_in_a_group_of_their_own() -> None:
    [found] = bus_diagnosis.findings([Checked("clock", "hint", "5 s ahead")], before_install=False)
    assert (found.group, found.name, found.status) == ("clocks", "bus", "warning")
    assert "NTP" in found.fix


# --- members -------------------------------------------------------------------------------------------------------


def process(name: str, digest: str = "d1", *problems: str) -> Process:
    return Process(name, ("decider",), digest, datetime(2026, 1, 1, tzinfo=UTC), problems, "1.0")


OWNED = [{"partition": 0, "alive": True}, {"partition": 1, "alive": True}]


def test_members_that_are_alike_are_ok() -> None:
    found = members_diagnosis.findings([process("a"), process("b")], OWNED, "d1", "1.0")
    assert said(found) == [("processes", "ok"), ("members", "ok"), ("rules", "ok"), ("partitions", "ok")]


def test_other_rules_on_one_member_are_a_warning() -> None:
    found = {one.name: one for one in members_diagnosis.findings([process("a"), process("b", "d2")], OWNED, "", "1.0")}
    assert (found["rules"].status, found["rules"].detail) == ("warning", "rules differ: d1 on a; d2 on b")


def test_other_rules_than_the_files_here_are_a_warning() -> None:
    found = {one.name: one for one in members_diagnosis.findings([process("a")], OWNED, "d2", "1.0")}
    assert found["rules"].status == "warning"
    assert "the files here are d2" in found["rules"].detail


def test_rule_files_that_a_member_cannot_use_fail() -> None:
    found = {
        one.name: one for one in members_diagnosis.findings([process("a", "d1", "x.yaml:1: wrong")], OWNED, "", "1.0")
    }
    assert found["files"].status == "failed"
    assert "x.yaml:1: wrong" in found["files"].detail


def test_a_partition_without_a_living_owner_fails() -> None:
    found = {
        one.name: one
        for one in members_diagnosis.findings([process("a")], [*OWNED, {"partition": 2, "alive": False}], "", "1.0")
    }
    assert found["partitions"].detail == "1 of 3 partitions have no living owner: 2"
    assert found["partitions"].status == "failed"


def test_another_version_on_a_member_is_a_warning() -> None:
    older = Process.read(
        b'{"name": "old", "roles": [], "rules": "d1", "since": "2026-01-01T00:00:00Z", "problems": []}'
    )
    found = {one.name: one for one in members_diagnosis.findings([process("a"), older], OWNED, "", "1.0")}
    assert (found["members"].status, found["members"].detail) == ("warning", "1.0 here, an older version on old")
    assert found["members"].fix


def test_no_member_at_all_fails() -> None:
    assert said(members_diagnosis.findings([], [], "", "1.0")) == [("processes", "failed"), ("members", "skipped")]


# --- the disk ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("free", "status"),
    [
        (disk_diagnosis.FULL_BYTES - 1, "failed"),
        (disk_diagnosis.LOW_BYTES - 1, "warning"),
        (disk_diagnosis.LOW_BYTES, "ok"),
    ],
)
def test_free_space_decides(free: int, status: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    found = disk_diagnosis.room(tmp_path / "not" / "there")
    assert found.status == status
    assert bool(found.fix) == (status != "ok")


def test_a_store_that_is_no_folder_fails(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert disk_diagnosis.room(tmp_path / "file").status == "failed"


async def test_the_disk_of_another_machine_is_skipped() -> None:
    assert said(await disk_diagnosis.findings(BusSettings(), "nats://nats:4222", SECONDS)) == [("store", "skipped")]


# --- Alertmanager --------------------------------------------------------------------------------------------------

CONFIG = """
route: {receiver: nobody, routes: [{receiver: reactor, matchers: ['reactor="true"']}]}
receivers:
  - name: nobody
  - name: reactor
    webhook_configs: [{url: %s}]
  - name: unused
    webhook_configs: [{url: 'http://reactor:8080/v1/alerts/unused'}]
"""


@pytest.mark.parametrize(
    ("url", "source", "status"),
    [
        ("http://reactor:8080/v1/alerts/pages", "pages", "ok"),
        ("http://reactor:8080/v1/alerts/pages", "other", "failed"),
        ("http://reactor:8080/v1/alerts/pages", "unused", "failed"),
        ("<secret>", "pages", "skipped"),
    ],
)
def test_a_route_has_to_lead_to_the_webhook_of_each_source(url: str, source: str, status: str) -> None:
    [found] = alertmanager_diagnosis.judged("main", CONFIG % url, [source])
    assert found.status == status
    assert bool(found.fix) == (status == "failed")


def test_without_such_a_source_the_route_is_skipped() -> None:
    assert said(alertmanager_diagnosis.judged("main", CONFIG % "x", [])) == [("main route", "skipped")]


@pytest.mark.parametrize("text", ["", "[]", "a: {", "route: 5\nreceivers: {a: 1}", "route: {routes: [3]}"])
def test_a_configuration_of_another_form_is_no_fall(text: str) -> None:
    [found] = alertmanager_diagnosis.judged("main", text, ["pages"])
    assert found.status in ("failed", "skipped")


# --- servers -------------------------------------------------------------------------------------------------------


async def test_without_servers_in_the_settings_their_groups_are_skipped() -> None:
    found = [
        *await servers_diagnosis.findings(Settings(), LoadedParts(), SECONDS),
        *await alertmanager_diagnosis.findings(Settings(), LoadedParts(), SECONDS),
    ]
    assert [(one.group, one.status) for one in found] == [
        ("clusters", "skipped"), ("prometheus", "skipped"), ("alertmanager", "skipped")
    ]  # fmt: skip


async def test_servers_that_cannot_be_reached_fail_each_with_its_name(tmp_path: Path) -> None:
    nowhere = {"url": "http://127.0.0.1:1"}
    words: dict[str, Any] = {
        "clusters": {"east": {"kubeconfig": str(tmp_path / "none")}}, "prometheus": {"main": nowhere},
        "alertmanager": {"pages": nowhere},
    }  # fmt: skip
    given = Settings(**words)
    found = [
        *await servers_diagnosis.findings(given, LoadedParts(), SECONDS),
        *await alertmanager_diagnosis.findings(given, LoadedParts(), SECONDS),
    ]
    assert [(one.group, one.name, one.status) for one in found] == [
        ("clusters", "east", "failed"), ("prometheus", "main", "failed"), ("alertmanager", "pages", "failed")
    ]  # fmt: skip
    assert all(one.detail and one.fix for one in found)
