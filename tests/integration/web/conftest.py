"""A process with the role web on a nats-server of its own, which decides, and whose page is asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bus.messages import Backend, Health, Observation, Route
from reactor.process.app import App
from reactor.route.publisher import FactPublisher
from reactor.settings.model import Settings
from rules.engine.routing import Routing
from rules.loader import load_rules

ROLES = frozenset({"decider", "router", "web"})
EAST, WEST = "service/east/shop/checkout", "service/west/shop/checkout"
PAY = "service/east/shop/pay"
XSS = '<img src=x onerror="document.title=\'owned\'"><script>document.title="owned"</script>'
TOKENS = {"vera": "view", "anna": "approve", "otto": "operate"}
RULES = """
apiVersion: reactor/v1
rules:
- name: checkout
  kind: TrafficFailover
  mode: Enforce
  route: {cluster: east, kind: TrafficSplit, namespace: shop, name: checkout}
  backends:
    - {service: checkout, target: service/east/shop/checkout}
    - {service: checkout-west, target: service/west/shop/checkout}
  tolerationSeconds: 300
- name: pay
  kind: TrafficFailover
  mode: Approve
  route: {cluster: east, kind: TrafficSplit, namespace: shop, name: pay}
  backends:
    - {service: pay, target: service/east/shop/pay}
    - {service: pay-west, target: service/west/shop/checkout}
  tolerationSeconds: 0
"""


@dataclass
class Scene:
    """A process, what a source would say to it, and a client of its page."""

    app: App
    publisher: FactPublisher
    http: aiohttp.ClientSession

    @property
    def url(self) -> str:
        """URL of its page."""
        return self.app.web_url

    async def see(self, target: str, status: Health, detail: str = "") -> None:
        """Publish what a source would say."""
        now = self.app.clock.now()
        await self.publisher.publish(Observation(target=target, status=status, observed_at=now, detail=detail))

    async def list_route(self, name: str) -> None:
        """Publish a route with everything on its primary."""
        backends = (Backend(service=name, weight=1), Backend(service=f"{name}-west", weight=0))
        await self.publisher.publish(
            Route(cluster="east", kind="TrafficSplit", namespace="shop", name=name, backends=backends,
                  observed_at=self.app.clock.now())
        )  # fmt: skip

    async def break_checkout(self, detail: str = "HTTP 503") -> dict[str, Any]:
        """A window opens. Gives its group."""
        await self.list_route("checkout")
        await self.see(WEST, Health.HEALTHY)
        await self.see(EAST, Health.HEALTHY)
        await self.group("checkout", lambda row: len(row["targets"]) == 2)
        await self.see(EAST, Health.UNHEALTHY, detail)
        return await self.group("checkout", lambda row: row["state"] == "Tolerating" and row["backends"])

    async def ask_for_approval(self) -> dict[str, Any]:
        """A rule in mode Approve wants to act. Gives its group."""
        await self.list_route("pay")
        await self.see(WEST, Health.HEALTHY)
        await self.see(PAY, Health.UNHEALTHY, "HTTP 500")
        return await self.group("pay", lambda row: row["hold"] and row["hold"]["reason"] == "AwaitingApproval")

    async def group(self, rule: str, holds: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """Wait until the group of a rule is so, as the API gives it."""
        headers = {"Authorization": f"Bearer {token('vera')}"} if self.app.settings.web.users else {}
        async with asyncio.timeout(60):
            while True:
                async with self.http.get(f"{self.url}/api/v1/groups?rule={rule}", headers=headers) as answer:
                    groups = (await answer.json())["groups"]
                for row in groups:
                    if holds(row):
                        found: dict[str, Any] = row
                        return found
                await asyncio.sleep(0.05)  # what is waited for has no event of its own

    async def get(self, path: str, **headers: str) -> tuple[int, Any]:
        """Give the status and the JSON of an answer."""
        async with self.http.get(f"{self.url}{path}", headers=headers) as answer:
            return answer.status, await answer.json()


def token(name: str) -> str:
    """The token of one of TOKENS."""
    return f"token-of-{name}-0123456789"


def bearer(name: str) -> dict[str, str]:
    """The header with which one of TOKENS asks."""
    return {"Authorization": f"Bearer {token(name)}"}


Start = Callable[..., Awaitable[Scene]]


def settings(folder: Path, *, users: bool = False, rules: str = RULES, **web: Any) -> Settings:
    """The settings of the process: read-only, or with the users of TOKENS."""
    (folder / "rules.yaml").write_text(rules)
    if users:
        for name in TOKENS:
            (folder / name).write_text(token(name))
        web["users"] = [
            {"name": name, "role": role, "tokenFile": str(folder / name)} for name, role in TOKENS.items()
        ]  # fmt: skip
    return Settings.model_validate(
        {
            "ruleFiles": [str(folder / "rules.yaml")], "name": "me",
            "clusters": {"east": {"kubeconfig": str(folder / "none"), "region": "eu"}},
            "prometheus": {"main": {"url": "http://127.0.0.1:9"}}, "receiver": {"listen": "127.0.0.1:0"},
            "web": {"listen": "127.0.0.1:0", **web}, "bus": {"store": str(folder / "nats"), "partitions": 4},
        }
    )  # fmt: skip


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Start a process with these settings of its page."""
    async with AsyncExitStack() as stack:

        async def begin(**given: Any) -> Scene:
            return await stack.enter_async_context(running(settings(tmp_path, **given)))

        yield begin


@asynccontextmanager
async def running(given: Settings, roles: frozenset[str] = ROLES) -> AsyncIterator[Scene]:
    """Run the process while the block runs."""
    # The cookie jar takes cookies of addresses too: loopback has no name.
    jar = aiohttp.CookieJar(unsafe=True)
    rules = Path(given.rule_files[0]).read_text()
    async with App(given, roles) as app, aiohttp.ClientSession(cookie_jar=jar) as http:
        routing = Routing.of(load_rules([("rules.yaml", rules)]))
        yield Scene(app, FactPublisher(app.bus, routing, 4, app.clock, source="/test"), http)
