"""A process of the earlier release and one of this one share a fleet, as in the middle of an upgrade."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from bus.embedded import EmbeddedServer
from tests import earlier
from tests.e2e.alerts import body, firing
from tests.e2e.conftest import MakeReactor
from tests.e2e.processes import Child
from tests.e2e.rulefiles import ALERTS, document, failover
from tests.e2e.service import Service, environment
from tests.e2e.shop import Shop
from tests.e2e.waiting import until, until_told

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(bool(earlier.lacks()), reason=earlier.lacks()), pytest.mark.xdist_group("earlier release")
]  # fmt: skip
SERVICES = ("cart", "checkout", "search")
RULES = document(ALERTS, rules=failover(toleration=1))


class EarlierService(Service):
    """`reactor run` of the earlier release. `site`: where it is installed."""

    def __init__(self, site: Path, folder: Path, **given: Any) -> None:
        super().__init__(folder, **given)
        self._argv = [sys.executable, "-m", "reactor.cli.main", *self._argv]
        self._environment = environment() | {"PYTHONPATH": str(site), "PYTHONUNBUFFERED": "1"}

    async def _begun(self) -> Any:
        return await Child._begun(self)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return earlier.installed(tmp_path_factory.mktemp("earlier"))


async def test_two_releases_side_by_side_decide_as_one_and_either_goes_on_alone(
    shop: Shop, reactor: MakeReactor, site: Path, tmp_path: Path
) -> None:
    shop.splits(SERVICES, "fallback")
    async with AsyncExitStack() as stack:
        nats = await stack.enter_async_context(EmbeddedServer(tmp_path / "nats"))
        settings = {"clusters": {"east": {"kubeconfig": str(tmp_path / "kubeconfig"), "context": "east"}}}
        old = EarlierService(
            site, tmp_path / "old", rules=RULES, settings=settings | {"bus": {"url": nats.url}}, name="old"
        )
        new = reactor(RULES, name="new", bus={"url": nats.url})
        await stack.enter_async_context(old)  # first: what it makes on the bus is what the new one finds
        await stack.enter_async_context(new)
        assert Path(f"/proc/{old.process.pid}/environ").read_text().count(f"PYTHONPATH={site}{chr(0)}") == 1
        await new.settled(len(SERVICES))

        async def both_decide() -> bool:
            return all([await one.metric("reactor_partitions_owned") > 0 for one in (old, new)])

        await until_told(both_decide, "each release decides for a part of the groups")
        for one in (old, new):  # both get every alert, as from a pair of Alertmanagers
            for name in SERVICES:
                assert await one.post(body(firing(name))) == 200
        await until(lambda: all(shop.moves(name) for name in SERVICES), "each service is failed over")

        await new.stop()  # a roll back: what the new one has stored is read by the old one
        shop.splits(["late"], "fallback")
        assert await old.post(body(firing("late"))) == 200
        await until(lambda: shop.moves("late") == ["away"], "the earlier release goes on alone")
        await new.start()
        await old.stop()  # the upgrade is complete
        shop.splits(["later"], "fallback")
        assert await new.post(body(firing("later"))) == 200
        await until(lambda: shop.moves("later") == ["away"], "this release goes on alone")
        assert await new.metric("reactor_quarantined_messages_total") == 0
    everything = (*SERVICES, "late", "later")
    assert {name: shop.moves(name) for name in everything} == {name: ["away"] for name in everything}
