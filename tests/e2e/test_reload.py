"""Rule files change while the reactor runs: it uses the new ones, or the old ones and says why."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from bus.embedded import EmbeddedServer
from reactor.demo.kube import Delay, Fault
from tests.e2e.alerts import body, firing
from tests.e2e.conftest import MakeReactor
from tests.e2e.rulefiles import ALERTS, document, failover, reloaded, rewrite
from tests.e2e.service import Service
from tests.e2e.shop import Shop
from tests.e2e.waiting import until, until_told

SHOP = failover()
OTHER = failover("other", selector="team=other")
MISTAKES = "apiVersion: reactor/v1\nrules:\n- name: shop\n  kind: TrafficFailover\n  rute: {}\n- kind: Nothing\n"
TOLERATION = 8.0
SOON = 15.0
"""Seconds: three times what is promised, for a busy machine, and half the time until all is published again."""


async def test_a_changed_file_is_taken_without_a_new_process(shop: Shop, reactor: MakeReactor) -> None:
    shop.split("checkout", "fallback")
    shop.split("cart", "fallback", labels={"team": "other"})
    async with reactor(document(ALERTS, rules=SHOP)) as service:
        await service.settled(1)
        pid, children = service.process.pid, service.children()
        rewrite(service, document(ALERTS, rules=SHOP + OTHER), now=False)
        await reloaded(service, "changed")
        await service.settled(2)
        assert await service.post(body(firing("checkout"), firing("cart"))) == 200
        await until(lambda: (shop.moves("checkout"), shop.moves("cart")) == (["away"], ["away"]), "both rules act")
        assert (service.process.pid, service.children()) == (pid, children)
        assert "added=other" in service.log.read_text()


@pytest.mark.alone
async def test_an_open_window_keeps_its_start_over_a_reload(shop: Shop, reactor: MakeReactor) -> None:
    shop.split("checkout", "fallback")
    rules = failover(toleration=TOLERATION)
    async with reactor(document(ALERTS, rules=rules)) as service:
        await service.settled(1)
        assert await service.post(body(firing("checkout"))) == 200
        opened = shop.east.monotonic()

        async def window_is_open() -> bool:
            return any(member.window for group in await service.groups() for member in group.members.values())

        await until_told(window_is_open, "the window is open")
        for times, more in enumerate((OTHER, "", OTHER), 1):
            await asyncio.sleep(1)  # some of the window passes under each rule set
            rewrite(service, document(ALERTS, rules=rules + more))
            await reloaded(service, "changed", times)
        assert shop.east.monotonic() - opened < TOLERATION, "the machine is too slow for this test"
        await until(lambda: shop.moves("checkout") == ["away"], "it is acted on")
        waited = shop.writes("checkout")[0].at - opened
    print(f"a window of {TOLERATION:g} s, over three reloads: acted on after {waited:.2f} s")
    assert TOLERATION - 0.2 <= waited < TOLERATION + 2


async def test_files_with_mistakes_change_nothing_and_are_told_of_once(shop: Shop, reactor: MakeReactor) -> None:
    shop.split("checkout", "fallback")
    good = document(ALERTS, rules=SHOP)
    async with reactor(good) as service:
        await service.settled(1)
        rewrite(service, MISTAKES, now=False)
        await reloaded(service, "invalid")
        assert await service.metric("reactor_rule_files_invalid") == 1
        where = service.folder / "rules.yaml"
        seen = await service.printed("status")
        assert f"{where}:5:3: " in seen
        assert "its rule files cannot be used" in seen
        assert json.loads(await service.printed("members", "-o", "json"))["processes"][0]["problems"]

        assert await service.post(body(firing("checkout"))) == 200
        await until(lambda: shop.moves("checkout") == ["away"], "the rules of before act")

        service.folder.joinpath("rules.yaml").unlink()
        await reloaded(service, "failed")
        rewrite(service, good, now=False)
        await reloaded(service, "unchanged")
        assert await service.metric("reactor_rule_files_invalid") == 0
        assert "cannot be used" not in await service.printed("status")
        log = service.log.read_text()
    told = [line for line in log.splitlines() if "cannot be used" in line and "level=error" in line]
    assert sum(":5:3:" in line for line in told) == 1
    assert sum("no such rule file" in line for line in told) == 1
    assert "Traceback" not in log


async def test_the_same_rules_in_other_words_disturb_nothing(shop: Shop, reactor: MakeReactor) -> None:
    shop.split("checkout", "fallback")
    async with reactor(document(ALERTS, rules=SHOP)) as service:
        await service.settled(1)
        service.process.send_signal(signal.SIGHUP)
        await reloaded(service, "unchanged")
        rewrite(service, "# a comment\n" + document(ALERTS, rules=SHOP), now=False)
        await reloaded(service, "unchanged", 2)
        assert await service.metric("reactor_rule_reloads_total", result="changed") == 0
        assert await service.metric("reactor_partitions_owned") == 64


async def test_a_rule_that_is_removed_leaves_nothing_behind(shop: Shop, reactor: MakeReactor) -> None:
    shop.split("checkout", "fallback")
    shop.split("cart", "fallback", labels={"team": "other"})
    shop.split("books", "fallback", labels={"team": "third"})
    third = SHOP + failover("third", selector="team=third", toleration=4)
    async with reactor(
        document(ALERTS, rules=third + failover("other", selector="team=other", toleration=4))
    ) as service:
        await service.settled(3)
        assert await service.post(body(firing("cart"))) == 200
        assert await service.post(body(firing("books"))) == 200
        rewrite(service, document(ALERTS, rules=third))
        await reloaded(service, "changed")
        assert await service.post(body(firing("checkout"))) == 200
        await until(lambda: shop.moves("checkout") == ["away"], "the rule that is left acts")

        async def only_shop() -> bool:
            return {group.rule for group in await service.groups()} == {"shop", "third"}

        await until_told(only_shop, "nothing is remembered of the rule that is gone")
        await until(lambda: shop.moves("books") == ["away"], "a window of the same length, begun later, is over")
    assert shop.moves("cart") == []


async def test_an_action_that_is_under_way_is_done_once(shop: Shop, reactor: MakeReactor) -> None:
    """The executor's roles end in the middle of its write; whether that arrived, only the next look can tell."""
    shop.split("checkout", "fallback")
    slow = shop.east.faults.add(Fault(Delay(2.0), verb="patch", resource="trafficsplits", name="checkout"))
    async with reactor(document(ALERTS, rules=SHOP)) as service:
        await service.settled(1)
        assert await service.post(body(firing("checkout"))) == 200
        await until(lambda: slow.hits, "the write is under way")
        rewrite(service, document(ALERTS, rules=SHOP + OTHER))
        await reloaded(service, "changed")
        await until_told(lambda: nothing_owed(service), "its outcome is known")
    assert shop.moves("checkout") == ["away"]


async def nothing_owed(service: Service) -> bool:
    groups = [group for group in await service.groups() if group.rule == "shop" and group.state.route]
    return any(("checkout", 0) in group.state.route.backends and not group.outbox for group in groups)


async def test_a_configmap_that_kubernetes_swaps_is_noticed(shop: Shop, reactor: MakeReactor, tmp_path: Path) -> None:
    shop.split("cart", "fallback", labels={"team": "other"})
    mount = tmp_path / "mount"

    def project(version: str, text: str) -> None:
        """As the kubelet does: a folder of its own for each version, and one symlink that is renamed over the old."""
        (mount / version).mkdir(parents=True)
        (mount / version / "rules.yaml").write_text(text)
        os.utime(mount / version / "rules.yaml", (0, 0))
        (mount / "..data_tmp").symlink_to(version)
        (mount / "..data_tmp").rename(mount / "..data")
        if not (mount / "rules.yaml").is_symlink():
            (mount / "rules.yaml").symlink_to("..data/rules.yaml")

    project("..2026_01", document(ALERTS, rules=SHOP))
    async with reactor("", ruleFiles=[f"{mount}/*.yaml"]) as service:
        project("..2026_02", document(ALERTS, rules=OTHER))
        await reloaded(service, "changed")
        await service.settled(1)
        assert await service.post(body(firing("cart"))) == 200
        await until(lambda: shop.moves("cart") == ["away"], "the new rules act")


async def test_no_post_is_lost_while_rules_change(shop: Shop, reactor: MakeReactor) -> None:
    names = [f"s{number:02d}" for number in range(60)]
    shop.splits([*names, "last"], "fallback")
    async with reactor(document(ALERTS, rules=SHOP)) as service:
        await service.settled(len(names) + 1)
        codes: list[int] = []

        async def send() -> None:
            for name in names:
                while (code := await service.post(body(firing(name)))) != 200:
                    codes.append(code)
                    await asyncio.sleep(0.1)
                codes.append(code)
                await asyncio.sleep(0.1)

        sending = asyncio.create_task(send())
        for times, more in enumerate((OTHER, "", OTHER), 1):
            rewrite(service, document(ALERTS, rules=SHOP + more))
            await reloaded(service, "changed", times)
        assert not sending.done(), "the posts came during the reloads"
        await sending
        assert set(codes) <= {200, 503}
        await until(lambda: {write.name for write in shop.writes()} == set(names), "every alert is acted on")
        assert await service.post(body(firing("last"))) == 200
        await until(lambda: shop.moves("last") == ["away"], "an alert that came after all others is acted on")
        assert {name: shop.moves(name) for name in names} == {name: ["away"] for name in names}


@pytest.fixture
async def nats(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    """A bus that two reactors share."""
    async with EmbeddedServer(tmp_path / "nats") as server:
        yield server


@asynccontextmanager
async def pair(reactor: MakeReactor, rules: str, nats: EmbeddedServer) -> AsyncIterator[tuple[Service, Service]]:
    bus = {"url": nats.url}
    async with reactor(rules, name="one", bus=bus) as one, reactor(rules, name="two", bus=bus) as two:
        yield one, two


async def test_a_fleet_of_which_half_has_the_new_rules_doubles_and_loses_nothing(
    shop: Shop, reactor: MakeReactor, nats: EmbeddedServer
) -> None:
    """Also those are acted on that only the new rules know of, once all processes have them."""
    old = [f"old-{number:02d}" for number in range(12)]
    new = [f"new-{number:02d}" for number in range(12)]
    shop.splits([*old, "old-last"], "fallback")
    for name in (*new, "new-last"):
        shop.split(name, "fallback", labels={"team": "other"})
    newer = ALERTS.replace("name: am\n", "name: am2\n")
    after = document(ALERTS, newer, rules=SHOP + OTHER)
    async with pair(reactor, document(ALERTS, rules=SHOP), nats) as (one, two):
        await one.settled(len(old) + 1)
        rewrite(one, after)
        await reloaded(one, "changed")
        seen = await one.printed("members")
        assert "rules differ" in seen
        for name in (*old, *new):
            code = await one.post(body(firing(name)), to="am2" if name in new else "am")
            assert code == 200
        await until(lambda: all(shop.moves(name) for name in old), "what both know of is acted on")
        rewrite(two, after)
        await reloaded(two, "changed")
        assert "rules differ" not in await one.printed("members")
        # Also a route that an owner with the old rules has read.
        acted = "what the new rules know of is acted on"
        await until(lambda: all(shop.moves(name) for name in new), acted, within=SOON)
        for name, source in (("old-last", "am"), ("new-last", "am2")):
            assert await one.post(body(firing(name)), to=source) == 200
            await until(lambda name=name: bool(shop.moves(name)), "an alert that came after all others is acted on")  # type: ignore[misc]
    assert {name: shop.moves(name) for name in (*old, *new)} == {name: ["away"] for name in (*old, *new)}


async def test_a_post_is_answered_while_the_rules_change_and_readiness_says_so(
    shop: Shop, reactor: MakeReactor
) -> None:
    async with reactor(document(ALERTS, rules=SHOP)) as service:
        reasons: set[str] = set()

        async def look() -> None:
            async with aiohttp.ClientSession() as session:
                while True:
                    async with session.get(f"{service.url}/readyz") as answer:
                        reasons.update((await answer.json()).get("reasons", ()))
                    await asyncio.sleep(0.02)

        looking = asyncio.create_task(look())
        rewrite(service, document(ALERTS, rules=SHOP + OTHER))
        await reloaded(service, "changed")
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        assert reasons <= {"the rules are being changed"}
