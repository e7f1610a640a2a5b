"""Prometheus and Alertmanager as they are in production, on free loopback ports, only faster.

The binaries are Debian's (`scripts/debian-packages` fetches them for `make test`) or upstream's: whatever is on PATH.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from tests.e2e.processes import Child
from tests.e2e.waiting import until_told
from tests.ports import free_port

EVERY = "500ms"
"""Scrapes and evaluations. In production 15 to 60 s: the ways are the same, a test need not wait so long."""
RESEND_DELAY = "500ms"
"""Prometheus says that an alert ends four of these (or of EVERY) after it was last said: that makes the false resolved
of a dead Prometheus come after seconds; with the default of 1m it is four minutes."""


def first_on_path(*names: str) -> str | None:
    """Give the one of these programs that PATH has first: `make prometheus` puts others before Debian's."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    return next(filter(None, (shutil.which(name, path=folder) for folder in folders for name in names)), None)


def binary(*names: str) -> str:
    """Give the first of these on PATH. Skips the test without any, or fails it where servers are required."""
    found = first_on_path(*names)
    if found is None:
        reason = f"no {' or '.join(names)} on PATH: `make test` fetches it, or apt-get install {names[0]}"
        if os.environ.get("REACTOR_REQUIRE_SERVERS"):
            pytest.fail(f"{reason} (REACTOR_REQUIRE_SERVERS is set)", pytrace=False)
        pytest.skip(reason)
    return found


class _Server(Child):
    """A server that says at /-/ready whether it can be used."""

    def __init__(self, name: str, argv: Sequence[str | Path], folder: Path, *, port: int) -> None:
        super().__init__(name, argv, folder)
        self.address = f"127.0.0.1:{port}"
        self.url = f"http://{self.address}"

    async def ready(self) -> None:
        async with aiohttp.ClientSession() as session:

            async def answers() -> bool:
                assert self.running, f"{self.name} ended at its start:\n{self.log.read_text()[-2000:]}"
                try:
                    async with session.get(f"{self.url}/-/ready") as answer:
                        return answer.status == 200
                except aiohttp.ClientConnectionError:
                    return False

            await until_told(answers, f"{self.name} is ready")

    async def get(self, path: str) -> Any:
        """Give what its API answers, as JSON."""
        async with aiohttp.ClientSession() as session, session.get(self.url + path) as answer:
            return await answer.json()


class Prometheus(_Server):
    """Scrapes exporters, and fires ShopDown{service} while `shop_up` is 0."""

    def __init__(
        self,
        folder: Path,
        *,
        scrapes: Sequence[str],
        alertmanagers: Sequence[Alertmanager] = (),
        first_scrape_after: str = EVERY,
        job: str = "shop",
        alerts: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """`scrapes`: host:port of each exporter. `first_scrape_after` its start: 5 s is Prometheus' default.

        `alerts`: further alerting rules.
        """
        port = free_port()
        folder.mkdir(parents=True)
        alert = {"alert": "ShopDown", "expr": "shop_up == 0", "labels": {"severity": "critical"}}
        alert |= {"annotations": {"summary": "{{ $labels.service }} is down"}}
        _write(folder / "alerts.yml", {"groups": [{"name": "shop", "interval": EVERY, "rules": [alert, *alerts]}]})
        targets = [{"targets": list(scrapes)}]
        _write(
            folder / "prometheus.yml",
            {
                "global": {"scrape_interval": EVERY, "scrape_timeout": EVERY, "evaluation_interval": EVERY},
                "rule_files": ["alerts.yml"],
                "scrape_configs": [{"job_name": job, "static_configs": targets}],
                "alerting": {
                    "alertmanagers": [{"static_configs": [{"targets": [one.address for one in alertmanagers]}]}]
                },
            },
        )
        argv = [
            binary("prometheus"), "--config.file=prometheus.yml", f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}", f"--rules.alert.resend-delay={RESEND_DELAY}",
            f"--scrape.discovery-reload-interval={first_scrape_after}",  # a hidden flag
            "--log.level=warn",
        ]  # fmt: skip
        super().__init__("prometheus", argv, folder, port=port)


class Alertmanager(_Server):
    """Posts each alert by itself, at once, with the wiring that the how-to recommends, only more often."""

    def __init__(self, folder: Path, *, posts_to: Sequence[str], gossip: int = 0, peers: Sequence[int] = ()) -> None:
        """`posts_to`: webhook URLs. `gossip`: the port on which it listens for its peers; 0: it has none."""
        port = free_port()
        folder.mkdir(parents=True)
        hooks = [{"url": url, "http_config": {"follow_redirects": False}} for url in posts_to]
        route = {
            "receiver": "reactor", "group_by": ["..."], "group_wait": "0s", "group_interval": "1s",
            "repeat_interval": "1m",
        }  # fmt: skip
        receivers = [{"name": "reactor", "webhook_configs": hooks}]
        _write(folder / "alertmanager.yml", {"route": route, "receivers": receivers})
        argv = [
            binary("prometheus-alertmanager", "alertmanager"), "--config.file=alertmanager.yml",
            f"--storage.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{port}",
            f"--cluster.listen-address={f'127.0.0.1:{gossip}' if gossip else ''}",
            *(f"--cluster.peer=127.0.0.1:{peer}" for peer in peers),
            # How long the second of a pair leaves an alert to the first: 15 s by default.
            "--cluster.peer-timeout=2s", "--cluster.gossip-interval=20ms", "--log.level=warn",
        ]  # fmt: skip
        super().__init__(folder.name, argv, folder, port=port)

    async def fire(self, service: str) -> None:
        """Say that ShopDown fires for a service, as Prometheus does."""
        alert = {"labels": {"alertname": "ShopDown", "service": service}}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.url}/api/v2/alerts", json=[alert]) as answer,
        ):
            answer.raise_for_status()

    async def firing(self) -> dict[str, dict[str, Any]]:
        """The alerts that fire, by their label `service`, as the API lists them."""
        return {alert["labels"]["service"]: alert for alert in await self.get("/api/v2/alerts")}


def _write(path: Path, document: object) -> None:
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
