"""Findings of `reactor doctor` about servers: emulated clusters, a Prometheus that never answers, and clocks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from reactor.demo.kube import Emulator, write_kubeconfig
from reactor.demo.kube.faults import Fault, Forbid
from reactor.runtime.clock import Clock
from reactor.settings.model import Settings
from reactor.workbench.doctor import servers_diagnosis
from reactor.workbench.doctor.finding import Finding
from rules.loader import examine
from tests.e2e.shop import Shop
from tests.integration.against.test_clusters import RULES
from tests.serving import serving

SECONDS = 60.0
"""More than any of these servers takes, on a crowded machine too."""
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def emulator() -> AsyncIterator[Emulator]:
    async with Emulator(clock=Clock().now) as emulator:
        shop = Shop(emulator)
        shop.east.ensure_namespace("shop")
        shop.split("checkout", "fallback")
        yield emulator


async def asked(emulator: Emulator, folder: Path, rules: str = RULES, **more: Any) -> dict[str, list[Finding]]:
    kubeconfig = write_kubeconfig(folder / "kubeconfig", emulator)
    given: dict[str, Any] = {"clusters": {"east": {"kubeconfig": str(kubeconfig), "context": "east"}}, **more}
    found: dict[str, list[Finding]] = {}
    reading = examine([("f.yaml", rules)])
    for one in await servers_diagnosis.findings(Settings(**given), reading, SECONDS):
        found.setdefault(f"{one.group}/{one.name}", []).append(one)
    return found


async def test_a_cluster_that_has_and_permits_all_is_ok_with_its_clock(emulator: Emulator, tmp_path: Path) -> None:
    found = await asked(emulator, tmp_path)
    for check in ("clusters/east", "clusters/east rules", "clocks/east"):
        assert [one.status for one in found[check]] == ["ok"], found[check]


async def test_a_permission_that_is_missing_fails_with_its_place(emulator: Emulator, tmp_path: Path) -> None:
    emulator.cluster("east").faults.add(Fault(Forbid(), verb="patch", resource="trafficsplits"))
    found = await asked(emulator, tmp_path)
    [denied] = found["clusters/east rules"]
    assert denied.status == "failed"
    assert "east: we may not patch trafficsplits.split.smi-spec.io in namespace shop" in denied.detail
    assert denied.fix.startswith("kubectl auth can-i")
    assert [one.status for one in found["clusters/east"]] == ["ok"]


async def test_a_prometheus_that_never_answers_holds_up_no_cluster(emulator: Emulator, tmp_path: Path) -> None:
    taken = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        taken.set()
        await reader.read()  # until it is given up
        writer.close()

    async with serving(silent) as port:
        endpoint = {"url": f"http://127.0.0.1:{port}", "timeoutSeconds": 1}
        found = await asked(emulator, tmp_path, prometheus={"main": endpoint})
    assert taken.is_set()
    [silence] = found["prometheus/main"]
    assert (silence.status, bool(silence.fix)) == ("failed", True)
    assert [one.status for one in found["clusters/east"]] == ["ok"]


@pytest.mark.parametrize(
    ("seconds", "status", "word"),
    [
        (0.0, "ok", "within"),
        (-1.0, "ok", "within"),
        (30.0, "warning", "30 s ahead of"),
        (-31.0, "warning", "30 s behind"),
    ],
)
def test_a_clock_is_judged_by_what_a_whole_second_proves(seconds: float, status: str, word: str) -> None:
    found = servers_diagnosis.told_by("east", NOW + timedelta(seconds=seconds), NOW, NOW)
    assert (found.status, word in found.detail) == (status, True)
    assert bool(found.fix) == (status == "warning")


def test_a_server_without_a_date_is_skipped() -> None:
    assert servers_diagnosis.told_by("east", None, NOW, NOW).status == "skipped"
