"""Reactors that are started together with a cluster of three."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from reactor.process.app import App
from reactor.settings.model import Settings
from tests.contract.bus.servers import Member
from tests.ports import free_port

RULES = "apiVersion: reactor/v1\nrules:\n- {name: one, kind: Notification, match: 'service/**'}\n"


class Starting(Member):
    """One that is not waited for."""

    async def _answers(self) -> None:
        return


async def test_reactors_wait_for_a_cluster_that_was_just_started(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    routes = [free_port() for _ in range(3)]
    async with AsyncExitStack() as stack:
        servers = []
        for number, route in enumerate(routes):
            others = [other for other in routes if other != route]
            server = Starting(tmp_path / f"n{number}", name=f"n{number}", route=route, routes=others)
            servers.append(await stack.enter_async_context(server))
        settings = Settings.model_validate({
            "bus": {"url": [server.url for server in servers], "replicas": 3},
            "receiver": {"listen": "127.0.0.1:0"}, "rule_files": (str(tmp_path / "rules.yaml"),),
        })  # fmt: skip
        apps = [App(settings.model_copy(update={"name": name})) for name in ("a", "b")]
        async with asyncio.timeout(60):
            await asyncio.gather(*(stack.enter_async_context(app) for app in apps))
            while sum(len(app.decider.owned()) for app in apps if app.decider) < settings.bus.partitions:
                await asyncio.sleep(0.05)
