"""docs/how-to/upgrade-and-restart.md, followed: each of its commands is run, in its order, on a real nats-server."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from bus.embedded import EmbeddedServer
from tests.e2e.conftest import MakeReactor
from tests.e2e.natscli import nats, why_not
from tests.e2e.service import Service
from tests.e2e.shop import Shop
from tests.e2e.waiting import until, until_told

pytestmark = pytest.mark.long

PAGE = Path(__file__).parents[2] / "docs/how-to/upgrade-and-restart.md"
RULES = """
apiVersion: reactor/v1
sources:
- {name: ends, kind: EndpointsWatch, cluster: east, namespace: shop, refreshSeconds: 1}
rules:
- name: shop
  kind: TrafficFailover
  mode: Enforce
  route: {cluster: east, kind: TrafficSplit, namespace: shop, selector: team=shop}
  tolerationSeconds: 1
  recoverySeconds: 1
"""
URL = "nats://nats.nats:4222"
"""The address of NATS on the page."""


def commands(heading: str) -> list[str]:
    """Give the shell blocks of a section of the page."""
    section = PAGE.read_text("utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = re.findall(r"^ *```sh\n(.*?)^ *```", section, re.MULTILINE | re.DOTALL)
    assert found, heading
    return [re.sub(r"^ {4}", "", one, flags=re.MULTILINE) for one in found]


async def followed(heading: str, service: Service, bus: str) -> str:
    """Run the commands of a section beside the settings file; give what they print."""
    printed = ""
    folders = [str(one.parent) for one in (nats(), Path(shutil.which("reactor") or "")) if one]
    environment = os.environ | {"PATH": os.pathsep.join([*folders, os.environ["PATH"]])}
    for block in commands(heading):
        process = await asyncio.create_subprocess_exec(
            "bash", "-euo", "pipefail", "-c", block.replace(URL, bus), cwd=service.folder, env=environment,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        said = (await process.communicate())[0].decode()
        assert process.returncode == 0, f"{heading}:\n{block}\n{said}"
        printed += said
    return printed


async def audit(service: Service) -> list[Any]:
    """All decisions that are on record."""
    said = await service.printed("audit", "export")
    return [json.loads(line) for line in said.splitlines() if line.startswith("{")]


async def away(shop: Shop, name: str) -> None:
    shop.endpoints(name, ready=0)
    await until(lambda: shop.moves(name)[-1:] == ["away"], f"{name} is failed over")


async def on_record(service: Service, count: int) -> list[Any]:
    """Wait until so many decisions are on record: a decision is stored with its action, the outcome after it."""

    async def enough() -> list[Any] | None:
        found = await audit(service)
        return found if len(found) >= count else None

    return await until_told(enough, f"{count} decisions are on record")


@pytest.mark.skipif(bool(why_not()), reason=why_not())
async def test_each_command_of_the_page_does_what_it_says(shop: Shop, reactor: MakeReactor, tmp_path: Path) -> None:
    names = ("cart", "checkout")
    for name in names:
        shop.endpoints(name, ready=2)
    shop.splits(names, "fallback")
    async with EmbeddedServer(tmp_path / "nats") as server:
        service = reactor(RULES, bus={"url": server.url})
        async with service:
            await service.settled(2)
            said = await followed("Upgrade", service, server.url)
            assert "64, each with a living owner" in said, said
            await away(shop, "checkout")
            before = await on_record(service, 1)
            await followed("Back up", service, server.url)
            await service.stop()
            await server.stop()
            shutil.rmtree(server.folder / "store")
            await server.start()
            said = await followed("A wiped bus", service, server.url)
            assert await audit(service) == before
            await service.start()
            await service.settled(2)
            assert shop.moves("checkout") == ["away"], "what had been done is not done again"
            shop.endpoints("checkout", ready=2)
            await until(lambda: shop.moves("checkout") == ["away", "home"], "and it comes home")
            both = await on_record(service, len(before) + 1)
            await service.stop()

            said = await followed("Change the number of partitions", service, server.url)
            assert (service.folder / "audit.jsonl").read_text().count("\n") >= len(both)
            with pytest.raises(AssertionError, match="set up with 16: use 16"):
                await service.start()
            settings = yaml.safe_load(service.config.read_text())
            settings["bus"]["partitions"] = 16
            service.config.write_text(yaml.safe_dump(settings))
            await service.start()
            await service.settled(2)
            assert await service.metric("reactor_partitions_owned") == 16
            await away(shop, "cart")
            await on_record(service, len(both) + 1)
            code, said = await service.answered("audit", "verify")
            assert code == 0, said
    assert {name: shop.moves(name) for name in names} == {"cart": ["away"], "checkout": ["away", "home"]}
