"""The demo's world: three emulated clusters, a service in each, a gateway with traffic, and the reactor's files.

Everything listens on loopback only, on free ports, and lives in one temporary folder.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, YamlConfigSettingsSource

from reactor.demo import scene
from reactor.demo.children import Child, child
from reactor.demo.kube import Emulator, write_kubeconfig
from reactor.demo.tally import TrafficSecond, TrafficTotal
from reactor.runtime.clock import Clock
from reactor.settings.model import Settings

SLOW_SECONDS = 0.3
PARTITIONS = 4
"""One process decides for one route: more would only be more leases to renew."""


@dataclass(slots=True)
class DemoWorld:
    """World of the demo: its clusters, services and traffic, and the ways to change them."""

    folder: Path
    emulator: Emulator
    services: Mapping[str, str]
    """The URL of each backend's service."""
    gateway: Child
    http: aiohttp.ClientSession
    traffic: TrafficTotal = field(default_factory=TrafficTotal)

    @property
    def rules(self) -> Path:
        """The rule file."""
        return self.folder / "rules.yaml"

    @property
    def config(self) -> Path:
        """The settings file."""
        return self.folder / "reactor.yaml"

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig with one context for each cluster."""
        return self.folder / "kubeconfig"

    def alert(self, *, firing: bool) -> Path:
        """The body of a post as Alertmanager makes it."""
        return self.folder / ("firing.json" if firing else "resolved.json")

    def settings(self) -> Settings:
        """Give the settings of the demo's reactor."""
        return read_settings(self.config)

    async def tell(self, service: str, *, broken: bool) -> None:
        """Break a service, or heal it."""
        async with self.http.post(f"{self.services[service]}/{'break' if broken else 'heal'}", raise_for_status=True):
            pass

    async def slow(self, service: str, percent: int) -> None:
        """Let so many of a service's answers be errors, and all of them slow."""
        url = f"{self.services[service]}/break?percent={percent}&seconds={SLOW_SECONDS}"
        async with self.http.post(url, raise_for_status=True):
            pass

    async def listen(self) -> None:
        """Count the gateway's traffic, without end. Raises ChildFailed when the gateway has ended."""
        while True:
            self.traffic.add(TrafficSecond.from_json(await self.gateway.line()))


def read_settings(path: Path) -> Settings:
    """Read a settings file and nothing else: the caller's environment must not point the demo at a bus of theirs."""

    class DemoSettings(Settings):
        model_config = SettingsConfigDict(yaml_file=path)

        @classmethod
        def settings_customise_sources(
            cls, settings_cls: type[BaseSettings], *_: PydanticBaseSettingsSource, **__: PydanticBaseSettingsSource
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return (YamlConfigSettingsSource(settings_cls),)

    return DemoSettings()


@asynccontextmanager
async def world(folder: Path, clock: Clock) -> AsyncIterator[DemoWorld]:
    """Build it, and take it down again. Raises ChildFailed."""
    async with AsyncExitStack() as stack:
        emulator = await stack.enter_async_context(Emulator(clock=clock.now))
        scene.furnish(emulator)
        services = await _services(stack, folder)
        gateway = await stack.enter_async_context(_gateway(folder, emulator, services))
        http = await stack.enter_async_context(aiohttp.ClientSession())
        built = DemoWorld(folder, emulator, services, gateway, http)
        _write_files(built, clock)
        yield built


async def _services(stack: AsyncExitStack, folder: Path) -> dict[str, str]:
    """Start one service for each backend, and give their URLs when they answer."""
    started = {
        name: await stack.enter_async_context(
            child(name, "reactor.demo.service", "--port", "0", "--name", name, log=folder / f"{name}.log")
        )
        for name in scene.BACKENDS
    }
    urls = await asyncio.gather(*(service.first_line() for service in started.values()))
    return dict(zip(started, urls, strict=True))


def _gateway(folder: Path, emulator: Emulator, services: Mapping[str, str]) -> Any:
    backends = [f"--backend={name}={url}/" for name, url in services.items()]
    return child(
        "gateway", "reactor.demo.gateway", "--api", emulator.url(scene.HOME),
        "--route", f"TrafficSplit/{scene.NAMESPACE}/{scene.ROUTE}", "--rate", str(scene.REQUESTS_PER_SECOND), *backends,
        log=folder / "gateway.log",
    )  # fmt: skip


def _write_files(built: DemoWorld, clock: Clock) -> None:
    """Everything that a person would write by hand."""
    built.rules.write_text(scene.rule_file(built.services), "utf-8")
    write_kubeconfig(built.kubeconfig, built.emulator, scene.BACKENDS.values(), current=scene.HOME)
    clusters = {name: {"kubeconfig": str(built.kubeconfig), "context": name} for name in scene.BACKENDS.values()}
    settings = {
        "name": "demo",
        "bus": {"store": str(built.folder / "nats"), "partitions": PARTITIONS},
        "receiver": {"listen": "127.0.0.1:0"},
        "web": {"listen": "127.0.0.1:0"},
        "clusters": clusters,
        "ruleFiles": [str(built.rules)],
    }
    built.config.write_text(yaml.safe_dump(settings, sort_keys=False), "utf-8")
    for firing in (True, False):
        built.alert(firing=firing).write_text(json.dumps(scene.alert(firing=firing, at=clock.now()), indent=2), "utf-8")
