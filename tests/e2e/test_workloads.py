"""Workloads leave clusters that fail them, with all that they need, through the whole service."""

from __future__ import annotations

from asyncio import get_running_loop
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bus.messages import Health
from reactor.demo.kube import EmulatedCluster, Fault, Forbid, JsonObject, StatusError, writes
from reactor.demo.kube.call import ApiRequest
from rules.core.reasons import Held
from tests.e2e.members import NAMESPACE, Members
from tests.e2e.moving import document, group, holds, knows, records, remembers, rule, settled
from tests.e2e.service import Service
from tests.e2e.waiting import until, until_told


def reactor(members: Members, folder: Path, *rules: str) -> Service:
    """A reactor that looks after these clusters."""
    text = document(members.names, *rules)
    return Service(folder / "reactor", rules=text, settings={"clusters": members.settings()})


@pytest.fixture
async def five(tmp_path: Path) -> AsyncIterator[Members]:
    async with Members(tmp_path / "members", 5) as members:
        yield members


def everywhere(members: Members, secret: str) -> None:
    """Create a Secret in all clusters, as an operator for secrets has it: it is the one thing never remembered."""
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
            await until_told(partial(_waits_for, service, name), f"{name}: the purge waits for its cluster")
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
    return found is not None and any(owed.failed.startswith("ClusterUnreachable") for owed in found.outbox)


KEEPS = """
    cluster:
      purgeMode: Directly
      statePreservation:
        rules: [{aliasLabelName: shop.example.org/ran, jsonPath: "{.availableReplicas}"}]"""


async def test_state_of_a_copy_on_a_dead_cluster_is_a_label_of_the_new_one(tmp_path: Path) -> None:
    async with Members(tmp_path / "members", 3) as members:
        await members.run("job", "member1")
        everywhere(members, "job-key")
        async with reactor(members, tmp_path, rule("job", failover=KEEPS)) as service:
            await knows(service, {"job": {"member1"}}, clusters=3)
            await remembers(service, 4)
            await members["member1"].refuse()
            (new,) = await until(lambda: members.healthy("job") - {"member1"}, "job runs elsewhere")
        found = members[new].deployment("job")
        assert found is not None
        assert found["metadata"]["labels"]["shop.example.org/ran"] == "2"


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
                await members.settle("web", there)
                (purged,) = [write for write in members[here].writes("deployments") if write.verb == "delete"]
                assert purged.at >= members.since_healthy("web", there)
            members["member3"].crashing.add("web")
            held = (await holds(service, "web", Held.NO_LANDING_PLACE)).held
            assert held is not None
            assert "member1 was left and is blocked" in held.detail
            assert "member2 was left and is blocked" in held.detail
        assert members.on("web") == {"member3"}, "with nowhere to go it stays where it is"
        assert members.doubled() == []


async def test_when_half_of_all_clusters_fall_silent_nothing_moves_also_when_they_return_and_each_workload_says_so_once(
    tmp_path: Path,
) -> None:
    names = ("web", "cart", "mail")
    async with Members(tmp_path / "members", 4) as members:
        for name in names:
            await members.run(name, "member1", "member2")
        text = rule("shop", copies=2, every=True, guards=None, borne=12)  # both are noticed before either is left
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
                assert found is not None
                assert found.held is not None
                return all((one.observed_at - found.held.since).total_seconds() > since for one in signals)

            await until_told(looked_at_again, "every cluster was heard of several times since")
            # That a cluster that hangs is slow to be seen bad (SourceSilent) may have been said before.
            held = [(one["object"], one["held"] or "") for one in await records(service)]
            told = [object_ for object_, why in held if why.startswith(Held.WIDESPREAD_FAILURE)]
            assert sorted(told) == sorted(f"{NAMESPACE}/Deployment/{name}" for name in names), told

            for back in ("member1", "member2"):  # the first one must not let the workloads of the other go
                await members[back].come_back()
                await until_told(partial(_is_well, service, back), f"{back} is seen to be back", within=60)
            assert members.writes() == []


async def _is_well(service: Service, cluster: str) -> bool:
    census = next(one for one in await service.groups() if (one.rule, one.object) == ("shop", "*"))
    return census.state.clusters[cluster].status is Health.HEALTHY


def refused(monkeypatch: pytest.MonkeyPatch, cluster: str, name: str, words: str) -> None:
    """Let the quota of a cluster refuse a new Deployment, in the API server's own words. The emulator has no quotas."""
    real = writes.insert

    def insert(there: EmulatedCluster, call: ApiRequest, new: JsonObject, **more: Any) -> Any:
        if (there.name, call.resource.kind, call.name) == (cluster, "Deployment", name):
            raise StatusError(403, "Forbidden", f'deployments.apps "{name}" is forbidden: {words}')
        return real(there, call, new, **more)

    monkeypatch.setattr("reactor.demo.kube.patching.insert", insert)


async def test_what_cannot_move_says_why_and_stays_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every mistake that a world can have, at once: none hides another, and each is mended by itself."""
    targets = {"homeless": "member2", "poor": "member3", "secretive": "member4", "lost": "member9"}
    async with Members(tmp_path / "members", 4) as members:
        for name in targets:
            await members.run(name, "member1")
        members["member2"].cluster.delete("namespaces", NAMESPACE)
        refused(monkeypatch, "member3", "poor", "exceeded quota: apps, requested: count/deployments.apps=1")
        unreadable = Fault(Forbid(), verb="get", resource="secrets", name="secretive-key")
        forbidden = members["member1"].cluster.faults.add(unreadable)
        rules = (rule(name, failover=BY_APPLICATION, on=("member1", to)) for name, to in targets.items())
        async with reactor(members, tmp_path, *rules) as service:
            for name in targets:
                await knows(service, {name: {"member1"}}, clusters=4)
            for name in targets:
                members["member1"].crashing.add(name)
            told = {}
            for name, reason, words in (
                ("homeless", Held.ACTION_FAILED, "NamespaceMissing: member2: "),
                ("poor", Held.ACTION_FAILED, "QuotaExceeded: member3: wrote ConfigMap/poor-settings"),
                ("secretive", Held.ACTION_FAILED, "Forbidden: member4: "),
                ("lost", Held.NO_LANDING_PLACE, "member9 is not known"),
            ):
                held = (await holds(service, name, reason)).held
                assert held is not None
                assert words in held.detail
                told[name] = (f"{reason}: ", words)
            assert "rule=lost cluster=member9" in service.log.read_text("utf-8")
            shown = " ".join((await service.printed("status")).split())  # a long line is broken where the terminal ends
            for told_words in told.values():
                assert all(" ".join(part.split()) in shown for part in told_words), shown  # also after further tries
            assert all(members.on(name) == {"member1"} for name in targets)
            assert not members["member2"].has()

            members["member2"].cluster.ensure_namespace(NAMESPACE)
            forbidden.remove()
            await members.settle("homeless", "member2")
            await members.settle("secretive", "member4")

            members["member1"].cluster.delete("deployments", "poor", NAMESPACE)
            held = (await holds(service, "poor", Held.WORKLOAD_NOT_FOUND)).held
            assert held is not None
            assert "its placement on member3 was under way" in held.detail
            assert members["member3"].has() == needs("poor")
        assert members.doubled() == []
