"""Fixtures of most of these tests: a shop in an emulated cluster, and the reactor as a process that observes it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from reactor.demo.kube import Emulator, write_kubeconfig
from reactor.runtime.clock import Clock
from tests.e2e.service import Service
from tests.e2e.shop import Shop

MakeReactor = Callable[..., Service]


@asynccontextmanager
async def opened() -> AsyncIterator[Shop]:
    """A shop whose service `fallback` is ready."""
    async with Emulator(clock=Clock().now) as emulator:
        shop = Shop(emulator)
        shop.endpoints("fallback", ready=2)
        yield shop


def for_shop(shop: Shop, folder: Path) -> MakeReactor:
    """Give what makes reactors that know the shop's cluster; `async with` runs one."""
    kubeconfig = write_kubeconfig(folder / "kubeconfig", shop.emulator)
    clusters = {"east": {"kubeconfig": str(kubeconfig), "context": "east"}}

    def make(
        rules: str, *, name: str = "reactor", failpoint: str = "", clock_wrong_by: float = 0, **settings: Any
    ) -> Service:
        return Service(
            folder / name, rules=rules, settings={"clusters": clusters, **settings}, name=name, failpoint=failpoint,
            clock_wrong_by=clock_wrong_by,
        )  # fmt: skip

    return make


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    """A shop of the test's own."""
    async with opened() as shop:
        yield shop


@pytest.fixture
def reactor(shop: Shop, tmp_path: Path) -> MakeReactor:
    """Make a reactor that looks after the shop; `async with` runs it."""
    return for_shop(shop, tmp_path)
