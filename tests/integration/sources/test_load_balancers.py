"""Facts about a load balancer: its weights when they change, none while it is silent, and why it cannot be used."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pytest

from reactor.clients.balancers.balancer_port import LoadBalancer, WeightChange, Weights
from reactor.clients.balancers.connected import LoadBalancers
from reactor.clients.kubernetes_port import ApiUnavailable, Forbidden, NotFound
from reactor.runtime.clock import Clock
from reactor.runtime.errors import SettingsError
from reactor.settings.balancer_settings import HAProxySettings
from reactor.sources import balancer_inventory
from reactor.sources.source_context import SourceContext
from tests.integration.sources.conftest import Heard


@dataclass
class Given:
    """A load balancer that says what it is told to; implements LoadBalancer."""

    says: Weights | Exception = field(default_factory=lambda: Weights({"here": 1, "there": 0}, life="1"))
    name: str = "edge"
    every_seconds: float = 0.2
    timeout_seconds: float = 1
    readings: int = 0
    asked_at: datetime | None = None
    """Time of the first request."""

    async def read(self) -> Weights:
        self.readings += 1
        self.asked_at = self.asked_at or Clock().now()
        await asyncio.sleep(0.01)  # the answer is on its way
        if isinstance(self.says, Exception):
            raise self.says
        return self.says

    async def write(self, seen: Weights, change: WeightChange) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        """Nothing is open."""


@dataclass
class One(LoadBalancers):
    """The settings know this one."""

    own: Given

    def get(self, name: str, kind: str) -> LoadBalancer:
        assert (name, kind) == ("edge", "HAProxy")
        return self.own


@asynccontextmanager
async def reading(own: Given, heard: Heard) -> AsyncIterator[None]:
    nothing: Any = None
    world = SourceContext(Clock(), heard.tell, nothing, {}, nothing, load_balancers=One(own))
    world.scheduler.start()
    task = asyncio.create_task(balancer_inventory.run("edge", "HAProxy", world))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        world.scheduler.shutdown(wait=False)


async def test_the_current_state_is_told_once_and_again_when_it_changes(heard: Heard) -> None:
    own = Given(Weights({"here": 1, "there": 0}, life="1", configured={"here": 1, "there": 0}))
    async with reading(own, heard):
        await heard.until(lambda: bool(heard.routes))
        (first,) = heard.routes
        assert (first.object, first.life) == ("edge/HAProxy/edge", "1")
        assert [(one.service, one.weight) for one in first.backends] == [("here", 1), ("there", 0)]
        assert first.annotations == {"reactor/healthy-weights": '{"here": 1, "there": 0}'}
        seen = own.readings
        while own.readings < seen + 3:
            await asyncio.sleep(0.05)
        assert len(heard.routes) == 1
        own.says = Weights({"here": 1, "there": 0}, life="2")
        await heard.until(lambda: len(heard.routes) == 2)
        assert heard.routes[-1].life == "2"


@pytest.mark.parametrize(
    ("error", "exists", "problem"),
    [
        (NotFound("no such backend"), False, ""),
        (Forbidden("not with level user"), True, "not with level user"),
        (SettingsError("secretFile: no such file"), True, "secretFile: no such file"),
    ],
)
async def test_what_cannot_be_used_is_told_with_its_reason(
    heard: Heard, error: Exception, *, exists: bool, problem: str
) -> None:
    async with reading(Given(error), heard):
        await heard.until(lambda: bool(heard.routes))
    assert (heard.routes[0].exists, heard.routes[0].problem) == (exists, problem)


async def test_an_answer_is_dated_when_it_was_asked_for(heard: Heard) -> None:
    # What we ourselves write while it is on its way is newer.
    own = Given()
    async with reading(own, heard):
        await heard.until(lambda: bool(heard.routes))
    assert own.asked_at is not None
    assert heard.routes[0].observed_at <= own.asked_at


async def test_silence_is_no_news_and_is_logged_once(heard: Heard, caplog: pytest.LogCaptureFixture) -> None:
    own = Given(ApiUnavailable("no answer within 2 s"))
    async with reading(own, heard):
        while own.readings < 4:
            await asyncio.sleep(0.05)
        assert heard.routes == []
        assert caplog.text.count("a load balancer cannot be read") == 1
        own.says = Weights({"here": 1})
        await heard.until(lambda: bool(heard.routes))


def test_the_settings_have_to_have_it_and_of_this_kind() -> None:
    settings = HAProxySettings.model_validate({"kind": "HAProxy", "socket": "/x", "backend": "web"})
    known = LoadBalancers({"edge": settings}, Clock())
    with pytest.raises(SettingsError, match=r"loadBalancers\.egde: rules name it.*they name: edge"):
        known.get("egde", "HAProxy")
    with pytest.raises(SettingsError, match="rules call it Webhook, the settings HAProxy"):
        known.get("edge", "Webhook")
    assert known.get("edge", "HAProxy") is known.get("edge", "HAProxy")
