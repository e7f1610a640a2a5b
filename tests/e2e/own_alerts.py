"""The alerts about the reactor on a real Prometheus that scrapes it, as they ship, only with shorter times."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from reactor.runtime.clock import Clock
from tests.e2e.servers import Prometheus
from tests.e2e.service import ROOT
from tests.e2e.waiting import WITHIN, until_told

SECONDS = 20
"""Length that replaces every range and offset of the alerts; they wait for no time before they fire."""
STARTS_SECONDS = 60
"""The same for restarts: four of them take a while."""
FILES = ("reactor-alerts.yml", "reactor-slos.yml")


def rules() -> list[dict[str, Any]]:
    """The rules of deploy/prometheus with short times."""
    found = []
    for name in FILES:
        text = (ROOT / "deploy/prometheus" / name).read_text()
        text = re.sub(r"(changes\([^\[]*\[)\d+m", rf"\g<1>{STARTS_SECONDS}s", text)
        text = re.sub(r"(\[|offset )\d+[mh]", rf"\g<1>{SECONDS}s", text)
        found += [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]
    return [{key: value for key, value in rule.items() if key != "for"} for rule in found]


def watching(folder: Path, *addresses: str) -> Prometheus:
    """A Prometheus that scrapes reactors at these addresses under job `reactor`."""
    return Prometheus(folder, scrapes=addresses, job="reactor", alerts=rules())


async def firing(prometheus: Prometheus) -> set[str]:
    """The names of the alerts that fire."""
    answer = await prometheus.get("/api/v1/alerts")
    return {one["labels"]["alertname"] for one in answer["data"]["alerts"] if one["state"] == "firing"}


async def fires(prometheus: Prometheus, *alerts: str) -> None:
    """Wait until each of these fires."""
    await until_told(lambda: _are(prometheus, set(alerts), there=True), f"{alerts} fire")


async def ends(prometheus: Prometheus, *alerts: str) -> None:
    """Wait until none of these fires any more."""
    ended = f"{alerts} have ended"
    await until_told(lambda: _are(prometheus, set(alerts), there=False), ended, within=WITHIN + STARTS_SECONDS)


async def _are(prometheus: Prometheus, alerts: set[str], *, there: bool) -> bool:
    now = await firing(prometheus)
    return alerts <= now if there else not alerts & now


def panels() -> dict[str, str]:
    """Each query of the dashboards in deploy/grafana, by dashboard, panel and letter, as Grafana would send it."""
    found = {}
    for file in sorted((ROOT / "deploy/grafana").glob("*.json")):
        for panel in json.loads(file.read_text())["panels"]:
            for target in panel.get("targets", ()):
                query = target["expr"].replace("$__rate_interval", f"{SECONDS}s").replace("$job", "reactor")
                found[f"{file.stem}: {panel['title']} {target['refId']}"] = query.replace("$rule", ".+")
    return found


def title(panel: str) -> str:
    """A panel's title, by which it is found on several dashboards."""
    return panel.partition(": ")[2].rpartition(" ")[0]


async def silent_panels(prometheus: Prometheus) -> set[str]:
    """The titles of panels of which a query returns nothing of the last minutes."""
    now = Clock().now().timestamp()
    times = f"start={now - 300:.0f}&end={now:.0f}&step=1"
    silent = set()
    for panel, query in panels().items():
        answer = await prometheus.get(f"/api/v1/query_range?query={quote(query)}&{times}")
        assert answer["status"] == "success", (panel, answer)
        if not answer["data"]["result"]:
            silent.add(title(panel))
    return silent
