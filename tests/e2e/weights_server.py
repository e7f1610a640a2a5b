"""The docs' example of the other side of a Webhook, as a process of its own."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from reactor.clients.balancers.webhook_balancer import Webhook
from reactor.clients.kubernetes_port import ApiUnavailable
from reactor.runtime.clock import Clock
from reactor.settings.balancer_settings import WebhookSettings as Settings
from tests.e2e.processes import Child
from tests.e2e.waiting import until_told
from tests.ports import free_port

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "weights_server.py"


class Server(Child):
    """The example."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.secret = folder / "secret"
        self.secret.write_text("s3cret\n", encoding="utf-8")
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/weights"
        super().__init__("weights-server", [sys.executable, EXAMPLE, str(port), self.secret], folder)

    def client(self, clock: Clock | None = None, **keys: Any) -> Webhook:
        given = {"secretFile": self.secret} | keys
        settings = Settings.model_validate({"kind": "Webhook", "url": self.url, **given})
        return Webhook("edge", settings, clock or Clock())

    async def ready(self) -> None:
        client = self.client()

        async def answers() -> bool:
            assert self.running
            with suppress(ApiUnavailable):
                return bool(await client.read())
            return False

        await until_told(answers, "the example answers")
        await client.close()
