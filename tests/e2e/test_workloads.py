"""Workloads leave clusters that fail them, with all that they need, through the whole service."""

from __future__ import annotations

from asyncio import get_running_loop
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rules.reasons import Held
from tests.e2e.members import NAMESPACE, Members
from tests.e2e.moving import document, group, holds, knows, records, remembers, rule
from tests.e2e.service import Service
from tests.e2e.waiting import until, until_told

LATE = 2.0
"""Seconds that a busy machine may take over what is due."""


def reactor(members: Members, folder: Path, *rules: str, more: str = "") -> Service:
    """A reactor that looks after these clusters."""
    text = document(members.names, *rules, more=more)
    return Service(folder / "reactor", rules=text, settings={"clusters": members.settings()})


@pytest.fixture
async def five(tmp_path: Path) -> AsyncIterator[Members]:
    async with Members(tmp_path / "members", 5) as members:
        yield members


def everywhere(members: Members, secret: str) -> None:
    """Let a Secret stand in all clusters, as an operator for secrets has it: it is the one thing never remembered."""
    found = members["member1"].cluster.get("secrets", secret, NAMESPACE)
    for name in members.names[1:]:
        members[name].cluster.create({**found, "metadata": {"name": secret, "namespace": NAMESPACE}})


def needs(name: str) -> set[str]:
    kinds = ("ConfigMap/{}-settings", "Secret/{}-key", "ServiceAccount/{}-account", "PersistentVolumeClaim/{}-data")
    return {kind.format(name) for kind in kinds}


async def test_workloads_leave_a_dead_cluster_with_all_they_need_and_are_purged_there_when_it_is_back(
    five: Members, tmp_path: Path
) -> None:
    """web has two copies, so it is never without; cart has one, and is without only until its new one is ready."""
    await five.run("web", "member1", "member2")
    await five.run("cart", "member1")
    everywhere(five, "cart-key")
    async with reactor(five, tmp_path, rule("web", copies=2), rule("cart")) as service:
        await knows(service, {"web": {"member1", "member2"}, "cart": {"member1"}}, clusters=5)
        await remembers(service, 8)
        dead = five["member1"]
        lost = await dead.refuse()
        await until(lambda: five.healthy("web") >= {"member2", "member3"}, "web runs on a third cluster")
        (new,) = await until(lambda: five.healthy("cart"), "cart runs elsewhere")
        assert five.gaps("web", lost) == []
        ((began, ended),) = five.gaps("cart", lost)
        print(f"cart: lost → ready elsewhere {ended - began:.2f} s")
        assert ended == five.since_healthy("cart", new)
        assert five["member3"].has() == {*needs("web"), "Deployment/web", "Secret/cart-key"}
        assert five[new].has() >= {*needs("cart"), "Deployment/cart"}

        for name in ("web", "cart"):
            await until_told(lambda name=name: _waits_for(service, name), f"{name}: the purge waits for its cluster")  # type: ignore[misc]
        assert dead.writes() == []
        back = await dead.come_back()
        await until(lambda: not dead.has() & {"Deployment/web", "Deployment/cart"}, "the old copies are purged")
        print(f"back → purged {get_running_loop().time() - back:.2f} s")
        assert dead.has() == {*needs("web"), *needs("cart")}, "what copies need is left where it is"
        await settled(service, "web", "cart")
    assert five.on("web") == {"member2", "member3"}
    assert five.on("cart") == {new}
    assert five.gaps("web", lost) == []
    assert len(five.gaps("cart", lost)) == 1
    assert {write.verb for write in dead.writes("deployments")} == {"delete"}
    assert five.doubled() == []


async def _waits_for(service: Service, name: str) -> bool:
    found = await group(service, name)
    return found is not None and any(owed.failed.startswith("ClusterUnreachable") for owed in found.owed)


async def settled(service: Service, *names: str, rule: str = "") -> None:
    """Wait until nothing moves any more, and nothing is owed."""

    async def all_done() -> bool:
        found = [await group(service, name, rule) for name in names]
        return all(one is not None and one.workload and not one.workload.moves and not one.owed for one in found)

    await until_told(all_done, f"nothing is under way any more for {', '.join(names)}")


BY_APPLICATION = """
    application:
      decisionConditions: {tolerationSeconds: 1}
      purgeMode: Gracefully
      gracePeriodSeconds: 60
      blockPredecessorSeconds: 600"""


async def test_a_workload_that_crashes_moves_on_and_not_back_to_where_it_crashed(tmp_path: Path) -> None:
    async with Members(tmp_path / "members", 3) as members:
        await members.run("web", "member1")
        async with reactor(members, tmp_path, rule("web", failover=BY_APPLICATION)) as service:
            await knows(service, {"web": {"member1"}}, clusters=3)
            for here, there in (("member1", "member2"), ("member2", "member3")):
                members[here].crashing.add("web")
                await until(lambda there=there: members.healthy("web") == {there}, f"web runs on {there}")  # type: ignore[misc]
                await until(lambda there=there: members.on("web") == {there}, f"web is purged on {here}")  # type: ignore[misc]
                (purged,) = [write for write in members[here].writes("deployments") if write.verb == "delete"]
                assert purged.at >= members.since_healthy("web", there)
            members["member3"].crashing.add("web")
            held = (await holds(service, "web", Held.NO_LANDING_PLACE)).held
            assert held is not None
            print(held.detail)
            assert "member1 was left and is blocked" in held.detail
            assert "member2 was left and is blocked" in held.detail
        assert members.on("web") == {"member3"}, "with nowhere to go it stays where it is"
        assert members.doubled() == []


async def test_when_half_of_all_clusters_fall_silent_nothing_moves_and_each_workload_says_so_once(
    tmp_path: Path,
) -> None:
    names = ("web", "cart", "mail")
    async with Members(tmp_path / "members", 4) as members:
        for name in names:
            await members.run(name, "member1", "member2")
        text = rule("shop", copies=2, every=True, guards=None, borne=8)  # both are noticed before either is left
        async with reactor(members, tmp_path, text) as service:
            await knows(service, {name: {"member1", "member2"} for name in names}, clusters=4, rule="shop")
            for silent in ("member1", "member2"):
                members[silent].hang()
            for name in names:
                await holds(service, name, Held.WIDESPREAD_FAILURE, "shop")

            async def looked_at_again(since: float = 5.0) -> bool:
                census = next(one for one in await service.groups() if (one.rule, one.object) == ("shop", "*"))
                signals = [signal for member in census.members.values() for signal in member.signals.values()]
                found = await group(service, names[0], "shop")
                assert found is not None and found.held is not None  # noqa: PT018 - one thought
                return all((one.observed_at - found.held.since).total_seconds() > since for one in signals)

            await until_told(looked_at_again, "every cluster was heard of several times since")
            told = [one["object"] for one in await records(service) if one["held"] is not None]
            assert sorted(told) == sorted(f"{NAMESPACE}/Deployment/{name}" for name in names), told
            assert members.writes() == []
