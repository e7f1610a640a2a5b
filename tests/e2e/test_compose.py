"""docker-compose.yml, unchanged: its own alert moves the traffic of its own gateway, and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.composed import Composed, composed, why_not
from tests.e2e.waiting import until_told

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())


async def answers(here: Composed) -> str:
    """Name of the service that answers a request to the gateway."""
    said = await here.curl(f"http://{here.hosts['gateway']}:8080/")
    return str(json.loads(said)["service"]) if said.startswith("{") else said


async def test_an_alert_of_the_compose_file_moves_traffic_and_it_comes_back(tmp_path: Path) -> None:
    async with composed(tmp_path) as here:

        async def watched() -> bool:
            return "Watching" in (await here.run("viewer", ["reactor", "status"]))[1]

        await until_told(watched, "the rule knows both services")
        assert await answers(here) == "checkout"
        await here.curl("--request", "POST", f"http://{here.hosts['checkout']}:8080/break")

        async def away() -> bool:
            return await answers(here) == "checkout-west"

        await until_told(away, "checkout-west answers")
        code, said = await here.run("viewer", ["reactor", "audit", "export"])
        assert code == 0, said
        moves = [json.loads(line) for line in said.splitlines() if '"rule":"shop"' in line.replace(" ", "")]
        assert "alert" in json.dumps(moves[-1]), "an alert has moved it"
        assert "ServiceFails" in json.dumps(moves[-1]), moves[-1]
        await here.curl("--request", "POST", f"http://{here.hosts['checkout']}:8080/heal")

        async def home() -> bool:
            return await answers(here) == "checkout"

        await until_told(home, "checkout answers again", within=120)
        code, said = await here.run("viewer", ["reactor", "pause", "shop", "--for", "1h", "--comment", "no"])
        assert code != 0, "a viewer may only look"
