"""People at the command line, on a real service: stop everything, let it go on, and ask why."""

from __future__ import annotations

import json
import re
import signal
from asyncio import get_running_loop
from pathlib import Path
from typing import Any

from rules.core.reasons import Held
from tests.e2e.alerts import body, firing
from tests.e2e.conftest import MakeReactor
from tests.e2e.rulefiles import ALERTS, document, failover
from tests.e2e.service import Reactor, Service
from tests.e2e.shop import Shop
from tests.e2e.waiting import until, until_told

WORDS = ("--comment", "INC-7", "--by", "ann", "--yes")


async def test_a_global_stop_is_honoured_until_it_is_lifted_and_every_word_is_in_the_audit(
    shop: Shop, reactor: MakeReactor, tmp_path: Path
) -> None:
    shop.splits(["cart"], "fallback")
    key = tmp_path / "audit.key"
    key.write_text("secret of the audit, 32 bytes or more\n")
    async with reactor(document(ALERTS, rules=failover(toleration=0)), audit={"keyFile": str(key)}) as service:
        await service.settled(1)
        asked = get_running_loop().time()
        said = await service.printed("pause", "*", *WORDS)
        assert 'paused by reactor as "ann"' in said, said
        print(f"asked → seen to be paused: {get_running_loop().time() - asked:.1f} s, the command's own start included")
        assert await service.post(body(firing("cart"))) == 200
        await until_held(service)
        assert shop.writes() == []

        assert "resumed" in await service.printed("resume", "*", *WORDS)
        await until(lambda: shop.moves("cart"), "what was held is done once it may")
        records = [
            json.loads(line) for line in (await service.printed("audit", "export")).splitlines() if line[0] == "{"
        ]
        commands = [record["because"] for record in records if record["object"] == "*"]
        assert commands == [['reactor as "ann" said Pause: INC-7'], ['reactor as "ann" said Resume: INC-7']]

        id_ = re.search(r"shop/east/shop/TrafficSplit/cart/\d+", json.dumps(records))
        assert id_ is not None
        told = await service.printed("explain", id_[0])
        for link in ("am Unhealthy", "PrimaryUnhealthy", "held Paused", "generation", "Done"):
            assert link in told, told
        assert "Different 0" in await service.printed("replay")
        verdict = json.loads(await service.printed("audit", "verify", "-o", "json"))
        assert (verdict["breaches"], verdict["tested"]["unsigned"]) == ([], 0), verdict
        assert verdict["tested"]["chain"] >= len(records)
        key.write_text("the secret of somebody else, as long as ours\n")
        code, said = await service.answered("audit", "verify")
        assert (code, "forged: it was not signed with this key" in said) == (1, True), said


async def test_what_is_rejected_is_not_asked_for_again_until_a_person_approves_it(
    shop: Shop, reactor: MakeReactor
) -> None:
    shop.splits(["cart"], "fallback")
    async with reactor(document(ALERTS, rules=failover(toleration=0, mode="Approve"))) as service:
        await service.settled(1)
        assert await service.post(body(firing("cart"))) == 200
        await until_held(service, Held.AWAITING_APPROVAL)
        said = await service.printed("reject", "shop", "--for", "30m", *WORDS)
        assert "asks: SetWeights weights cart=0 fallback=1" in said, said
        assert "refuse it for 30m" in said, said
        assert 'rejected by reactor as "ann" until ' in said.splitlines()[-1], said
        assert 'Rejected: by reactor as "ann": INC-7; not asked again before' in await service.printed("status")
        audited = await service.printed("audit", "export")
        assert 'reactor as \\"ann\\" said Reject for 1800 s: INC-7' in audited, audited
        assert shop.writes() == []

        said = await service.printed("approve", "shop", *WORDS)
        assert "approved" in said.splitlines()[-1], said
        await until(lambda: shop.moves("cart"), "the newest word counts")
        told = await service.printed("explain", "shop/east/shop/TrafficSplit/cart/1")
        assert 'rejected by reactor as "ann" until ' in told, told
        assert 'held Rejected: by reactor as "ann": INC-7; not asked again before ' in told, told
        # The step that acts took the word; on a busy machine one before it did, which asked its sources for a new look.
        assert re.search(r'ann: Approve: INC-7|approved by reactor as "ann" at .*: INC-7', told), told
        assert "Different 0" in await service.printed("replay")
        code, said = await service.answered("reject", "shop", *WORDS)
        assert (code, "shop waits for no approval" in said) == (1, True), said


async def test_the_status_is_followed_as_lines_of_json_until_it_is_stopped(shop: Shop, reactor: MakeReactor) -> None:
    shop.splits(["cart"], "fallback")
    async with reactor(document(ALERTS, rules=failover(toleration=0))) as service:
        await service.settled(1)
        words = ["status", "--watch", "-o", "json", "--config", str(service.config)]
        signal.signal(
            signal.SIGINT, signal.default_int_handler
        )  # a CI in the background ignores it, and children with it
        async with Reactor("watch", words, service.folder) as watch:

            def seen() -> list[dict[str, Any]]:
                return [row for line in watch.log.read_text().splitlines() for row in json.loads(line)]

            await until(lambda: watch.log.exists() and seen(), "it shows what stands")
            assert [(row["state"], row["failedOver"], row["weights"]) for row in seen()] == [
                ("Watching", False, {"cart": 1, "fallback": 0})
            ]
            assert await service.post(body(firing("cart"))) == 200
            moved = {"cart": 0, "fallback": 1}
            await until(lambda: (seen()[-1]["failedOver"], seen()[-1]["weights"]) == (True, moved), "it follows")
            watch.process.send_signal(signal.SIGINT)
            await until(lambda: not watch.running, "it ends")
            assert watch.process.returncode == 0


async def until_held(service: Service, reason: Held = Held.PAUSED) -> None:
    async def held() -> bool:
        return any(group.held is not None and group.held.reason == reason for group in await service.groups())

    await until_told(held, f"the rule says that it holds: {reason}")
