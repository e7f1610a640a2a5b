"""Taints on Cluster objects, and a Karmada that fails over by itself."""

from __future__ import annotations

from typing import Any

import pytest

from bus.messages import Taint
from reactor.clients.kubernetes_port import JsonObject
from reactor.demo.kube import Fault, StatusFault
from tests.integration.actions.karmada.conftest import Plane, binding
from tests.unit.actions.workload.builders import evict, set_taints

BROWNOUT = Taint(key="reactor/brownout", effect="NoExecute")
THEIRS = {"key": "maintenance", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}
OURS = {"key": "reactor/brownout", "effect": "NoExecute", "timeAdded": "2100-01-01T00:00:00Z"}


def member(plane: Plane, *taints: JsonObject) -> None:
    spec: JsonObject = {"syncMode": "Push"} | ({"taints": [*taints]} if taints else {})
    meta = {"name": "member1"}
    plane.karmada.create(
        {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": meta, "spec": spec}
    )


def taints(plane: Plane) -> list[JsonObject]:
    return [*(plane.karmada.get("clusters", "member1")["spec"].get("taints") or [])]


def asked(*taints: Taint, **more: Any) -> Any:
    return set_taints("member1", *taints, carrier="Karmada", **more)


@pytest.mark.parametrize("standing", [(), (THEIRS,)])
async def test_a_taint_is_put_beside_those_of_others_with_its_time(plane: Plane, standing: Any) -> None:
    member(plane, *standing)
    for wrote in (True, False):
        outcome = await plane.do(asked(BROWNOUT))
        assert (outcome.status, outcome.wrote) == ("Done", wrote)
    assert taints(plane) == [*standing, OURS]


async def test_a_taint_that_is_there_keeps_its_time(plane: Plane) -> None:
    known = {**OURS, "timeAdded": "2025-05-05T05:05:05Z"}
    member(plane, known)
    await plane.do(asked(BROWNOUT))
    assert taints(plane) == [known]
    assert (await plane.do(asked(BROWNOUT))).wrote is False


async def test_a_taint_that_another_writer_had_put_there_stays_when_the_rule_is_done_with_it(plane: Plane) -> None:
    member(plane, OURS)
    await plane.do(asked(BROWNOUT))
    await plane.do(asked(before=(BROWNOUT,), generation=2))
    assert taints(plane) == [OURS]


async def test_a_taint_of_two_rules_is_taken_off_with_the_last_of_them(plane: Plane) -> None:
    member(plane, THEIRS)
    other = {"rule": "errors", "id": "errors/cluster/member1/1"}
    await plane.do(asked(BROWNOUT))
    await plane.do(asked(BROWNOUT, **other))
    for last in (False, True):
        keys = {"generation": 2} | (other if last else {})
        for wrote in (True, False):
            assert (await plane.do(asked(before=(BROWNOUT,), **keys))).wrote is wrote
        assert taints(plane) == [THEIRS] + ([] if last else [OURS])
    noted = plane.karmada.get("clusters", "member1")["metadata"]["annotations"]
    assert "reactor/taints" not in noted


async def test_only_what_the_rule_put_on_is_taken_off(plane: Plane) -> None:
    member(plane, THEIRS, OURS)  # by a version that left no note
    await plane.do(asked(before=(BROWNOUT,)))
    assert taints(plane) == [THEIRS]


async def test_a_rule_whose_memory_was_wiped_takes_its_taint_off_all_the_same(plane: Plane) -> None:
    member(plane)
    await plane.do(asked(BROWNOUT))
    await plane.do(asked(generation=2))
    assert taints(plane) == []


@pytest.mark.parametrize("text", ["no json", "[]", '{"reactor/brownout:NoExecute": 7}'])
async def test_a_note_that_a_person_has_edited_says_nothing(plane: Plane, text: str) -> None:
    member(plane)
    noted = {"metadata": {"annotations": {"reactor/taints": text}}}
    plane.karmada.patch("clusters", "member1", noted)
    await plane.do(asked(BROWNOUT))
    await plane.do(asked(before=(BROWNOUT,), generation=2))
    assert taints(plane) == []


async def test_a_conflict_is_read_again(plane: Plane) -> None:
    member(plane)
    plane.karmada.faults.add(Fault(StatusFault(409), verb="patch", count=2))
    assert (await plane.do(asked(BROWNOUT))).status == "Done"
    assert len(plane.writes()) == 1


async def test_a_cluster_that_is_no_member_is_said(plane: Plane) -> None:
    outcome = await plane.do(asked(BROWNOUT))
    assert (outcome.status, outcome.reason) == ("Failed", "ObjectMissing")


def manager(*args: str) -> JsonObject:
    container = {"name": "m", "image": "karmada-controller-manager:v1.15.0", "command": ["/bin/manager", *args]}
    spec = {"selector": {}, "template": {"spec": {"containers": [container]}}}
    meta = {"name": "karmada-controller-manager", "namespace": "karmada-system"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}


async def test_we_do_not_act_beside_a_karmada_that_fails_over_by_itself(plane: Plane) -> None:
    plane.karmada.create(binding())
    plane.karmada.create(manager("--feature-gates=Failover=true"))
    outcome = await plane.do(evict("member1", carrier="Karmada"))
    assert (outcome.status, outcome.reason, plane.writes()) == ("Failed", "KarmadaSwitch", [])
    assert "Failover" in outcome.detail
    plane.karmada.apply(manager("--feature-gates=Failover=false"))
    assert (await plane.do(evict("member1", carrier="Karmada"))).status == "Done"


async def test_taints_are_put_on_for_a_karmada_that_acts_on_them(plane: Plane) -> None:
    member(plane)
    plane.karmada.create(manager("--feature-gates=Failover=true", "--enable-no-execute-taint-eviction=true"))
    assert (await plane.do(asked(BROWNOUT))).status == "Done"
    assert taints(plane) == [OURS]


async def test_switches_are_not_asked_for_with_every_action(plane: Plane) -> None:
    plane.karmada.create(binding())
    plane.karmada.create(manager())
    looks = plane.karmada.faults.add(Fault(StatusFault(503), verb="get", resource="deployments", count=1))
    assert (await plane.do(evict("member1", carrier="Karmada"))).reason == "ClusterUnreachable"
    assert looks.hits == 1
    assert (await plane.do(evict("member1", carrier="Karmada"))).status == "Done"
    looks = plane.karmada.faults.add(Fault(StatusFault(503), verb="get", resource="deployments"))
    assert (await plane.do(evict("member2", carrier="Karmada"))).status == "Done"
    assert looks.hits == 0
