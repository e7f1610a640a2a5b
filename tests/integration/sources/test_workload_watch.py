"""Health of workloads, and where copies are, from a cluster that has its bad days."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from bus.messages import CopyRecord, Fact, Health, WorkloadCopy
from reactor.demo.kube import CutWatch, EmulatedCluster, Fault, Forbid, JsonObject, Reset, StatusFault
from reactor.runtime.errors import SettingsError
from reactor.sources.kubernetes import workload_watch
from reactor.sources.kubernetes.workload_health import RULES
from reactor.sources.kubernetes.workload_kinds import BUILT_IN, ServedKind
from reactor.sources.source_context import SourceContext
from rules.rulefile.sources import BuiltInKind, CustomKind, HealthScript, WorkloadWatch
from tests.contract.kube.objects import definition
from tests.integration.sources.conftest import Heard, Repeats, Running

NGINX = "workload/east/shop/Deployment/nginx"
WIDGET = "workload/east/shop/Widget/left"


def source(*kinds: BuiltInKind | CustomKind, **more: Any) -> WorkloadWatch:
    return WorkloadWatch(name="workloads", kind="WorkloadWatch", cluster="east", kinds=kinds or ("Deployment",), **more)


def deployment(name: str = "nginx", replicas: int = 2, namespace: str = "shop", **labels: str) -> JsonObject:
    return {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    }  # fmt: skip


def settle(east: EmulatedCluster, *, available: int, name: str = "nginx") -> None:
    """Write the status that the Deployment controller would write."""
    found = east.get("deployments", name, "shop")
    wanted = found["spec"]["replicas"]
    status = {
        "observedGeneration": found["metadata"]["generation"], "updatedReplicas": wanted,
        "availableReplicas": available,
    }  # fmt: skip
    east.patch("deployments", name, {"status": status}, "shop", status=True)


def widget(east: EmulatedCluster, phase: str) -> None:
    east.create({
        "apiVersion": "test.example.com/v1", "kind": "Widget", "metadata": {"name": "left", "namespace": "shop"},
        "spec": {"size": 1}, "status": {"phase": phase, "conditions": [{"type": "Ready", "status": phase}]},
    })  # fmt: skip


def copy(**wanted: Any) -> Any:
    def holds(fact: Fact) -> bool:
        return isinstance(fact, WorkloadCopy) and all(getattr(fact, key) == value for key, value in wanted.items())

    return holds


def test_every_built_in_kind_has_a_rule() -> None:
    for kind, (api_version, plural) in BUILT_IN.items():
        assert (ServedKind(api_version, kind, plural).group, kind) in RULES


async def test_what_rules_want_carried_over_of_the_status_goes_along_with_the_copy(
    running: Running, east: EmulatedCluster, world: SourceContext, heard: Heard
) -> None:
    east.create(deployment())
    settle(east, available=2)
    wants = replace(world, preserved=frozenset({"{.availableReplicas}", "{.nothing}"}))
    async with running(workload_watch.run(source(), wants)):
        await heard.heard(copy(state={"{.availableReplicas}": "2"}))
        settle(east, available=1)
        await heard.heard(copy(state={"{.availableReplicas}": "1"}))


async def test_a_deployment_is_healthy_while_it_is_rolled_out_and_available(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.create(deployment())
    async with running(workload_watch.run(source(), world)):
        await heard.status(NGINX, Health.UNHEALTHY)
        settle(east, available=2)
        said = await heard.status(NGINX, Health.HEALTHY)
        assert (said.detail, said.signal) == ("2 replicas available", "workloads")
        settle(east, available=1)
        said = await heard.status(NGINX, Health.UNHEALTHY)
        assert said.detail == "1 of 2 replicas available"


async def test_each_copy_is_told_with_its_uid_its_labels_and_its_size(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    made = east.create(deployment(team="pay"))
    async with running(workload_watch.run(source(), world)):
        found = await heard.heard(copy(name="nginx"))
        assert isinstance(found, WorkloadCopy)
        assert (found.object, found.cluster, found.api_version) == ("shop/Deployment/nginx", "east", "apps/v1")
        assert (found.uid, found.labels, found.replicas) == (made["metadata"]["uid"], {"team": "pay"}, 2)
        told = len(heard.inventory)
        settle(east, available=2)  # a status alone is no news about the copy
        east.patch("deployments", "nginx", {"spec": {"replicas": 5}}, "shop")
        await heard.heard(copy(replicas=5))
        assert len(heard.inventory) == told + 1


async def test_each_copy_is_told_with_what_it_says_of_itself(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    made = east.create(deployment())
    marks = {
        "reactor/decision": "nginx/shop/Deployment/nginx/7", "reactor/evicting": "nginx/shop/Deployment/nginx/7",
        "reactor/evicting-because": "Recovered", "reactor/evicting-for": "west,south", "reactor/placed-for": "west",
    }  # fmt: skip
    async with running(workload_watch.run(source(), world)):
        created_at = datetime.fromisoformat(made["metadata"]["creationTimestamp"])
        await heard.heard(copy(record=CopyRecord(created_at=created_at)))
        east.patch("deployments", "nginx", {"metadata": {"annotations": marks}}, "shop")
        said = CopyRecord(
            created_at=created_at, rule="nginx", placed_for=("west",), leaves="Recovered", stays=("west", "south"),
        )  # fmt: skip
        await heard.heard(copy(record=said))


async def test_a_deleted_workload_is_a_copy_that_is_gone_and_its_health_unknown(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    made = east.create(deployment())
    async with running(workload_watch.run(source(refresh_seconds=1), world)):
        settle(east, available=2)
        await heard.status(NGINX, Health.HEALTHY)
        east.delete("deployments", "nginx", "shop")
        gone = await heard.heard(copy(exists=False))
        said = await heard.status(NGINX, Health.UNKNOWN)
        assert isinstance(gone, WorkloadCopy)
        assert (gone.uid, said.detail) == (made["metadata"]["uid"], "the Deployment is gone")
        east.create(deployment(replicas=0))
        settle(east, available=0)
        await heard.status(NGINX, Health.HEALTHY)
        await heard.heard(copy(exists=True, replicas=0))


async def test_a_target_that_a_changed_label_has_left_is_unknown(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.create(deployment(team="pay"))
    settle(east, available=2)
    async with running(workload_watch.run(source(target="custom/team/{team}", refresh_seconds=1), world)):
        await heard.status("custom/team/pay", Health.HEALTHY)
        east.patch("deployments", "nginx", {"metadata": {"labels": {"team": "risk"}}}, "shop")
        await heard.status("custom/team/pay", Health.UNKNOWN)
        await heard.status("custom/team/risk", Health.HEALTHY)
        told = len(heard.observations)
        await heard.until(lambda: len(heard.observations) >= told + 2)
        assert {one.target for one in heard.observations[told:]} == {"custom/team/risk"}
        east.delete("deployments", "nginx", "shop")
        await heard.status("custom/team/risk", Health.UNKNOWN)


async def test_of_several_workloads_of_one_target_the_worst_speaks_whatever_their_kinds(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    for name in ("a", "b"):
        east.create(deployment(name, team="pay"))
        settle(east, available=2, name=name)
    claim = {"metadata": {"name": "c", "namespace": "shop", "labels": {"team": "pay"}}, "status": {"phase": "Lost"}}
    async with running(
        workload_watch.run(source("Deployment", "PersistentVolumeClaim", target="custom/team/{team}"), world)
    ):
        await heard.status("custom/team/pay", Health.HEALTHY)
        east.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": {}, **claim})
        await heard.status("custom/team/pay", Health.UNHEALTHY)
        told = len(heard.observations)
        settle(east, available=1, name="a")
        settle(east, available=2, name="a")
        east.delete("persistentvolumeclaims", "c", "shop")
        await heard.status("custom/team/pay", Health.HEALTHY)
        settle(east, available=1, name="b")
        await heard.status("custom/team/pay", Health.UNHEALTHY)
    assert [one.status for one in heard.observations[told:]] == [Health.HEALTHY, Health.UNHEALTHY]


async def test_only_the_namespace_and_the_selector_that_are_asked_for_are_seen(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.create(deployment("far", namespace="far", app="shop"))
    east.create(deployment("other", app="other"))
    east.create(deployment(app="shop"))
    async with running(workload_watch.run(source(namespace="shop", selector="app=shop"), world)):
        await heard.status(NGINX, Health.UNHEALTHY)
        await heard.heard(copy(name="nginx"))
    assert {observation.target for observation in heard.observations} == {NGINX}
    assert len(heard.inventory) == 1


async def test_a_watch_that_is_lost_is_silent_and_never_healthy(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, monkeypatch: pytest.MonkeyPatch,
    repeats: Repeats,
) -> None:  # fmt: skip
    monkeypatch.setattr("reactor.clients.reflector.GRACE_SECONDS", 0.3)
    monkeypatch.setattr("reactor.sources.republisher.TICKS_PER_PERIOD", 10)
    east.create(deployment())
    settle(east, available=2)
    async with running(workload_watch.run(source(refresh_seconds=1, stale_seconds=3), world)):
        said = await heard.status(NGINX, Health.HEALTHY)
        assert said.stale_seconds == 3
        lost = east.faults.add(Fault(Reset()))
        east.cut_watches()
        await repeats.more(10)  # more than the grace: health and copies are looked at by a loop each
        told, copies = len(heard.observations), len(heard.inventory)
        await repeats.more(26)  # more than the period in which each is said again
        assert (len(heard.observations), len(heard.inventory)) == (told, copies)
        lost.remove()
        await heard.until(lambda: len(heard.observations) > told and len(heard.inventory) > copies)


async def test_what_happened_while_the_watch_was_cut_is_caught_up_with(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.create(deployment())
    east.create(deployment("cart"))
    settle(east, available=2)
    async with running(workload_watch.run(source(), world)):
        await heard.status(NGINX, Health.HEALTHY)
        outage = east.faults.add(Fault(StatusFault(500), resource="deployments"))
        east.cut_watches(CutWatch())
        east.delete("deployments", "cart", "shop")
        settle(east, available=0)
        east.compact()
        outage.remove()
        await heard.status(NGINX, Health.UNHEALTHY)
        await heard.heard(copy(name="cart", exists=False))


async def test_a_kind_that_may_not_be_read_silences_no_other(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    east.faults.add(Fault(Forbid(), resource="statefulsets"))
    east.create(deployment())
    missing = CustomKind(api_version="nowhere.example.com/v1", kind="Nothing")
    async with running(workload_watch.run(source("StatefulSet", missing, "Deployment", refresh_seconds=1), world)):
        await heard.status(NGINX, Health.UNHEALTHY)
        told = len(heard.observations)
        await heard.until(lambda: len(heard.observations) > told)


async def test_a_custom_resource_uses_its_ready_condition(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running
) -> None:
    async with running(workload_watch.run(source(CustomKind(api_version="test.example.com/v1", kind="Widget")), world)):
        # Its CRD is installed while the source already waits for it.
        east.install(definition("test.example.com"))
        widget(east, "True")
        await heard.status(WIDGET, Health.HEALTHY)
        not_ready = {"conditions": [{"type": "Ready", "status": "False"}]}
        east.patch("widgets", "left", {"status": not_ready}, "shop", status=True)
        await heard.status(WIDGET, Health.UNHEALTHY)
        found = await heard.heard(copy(kind="Widget"))
    assert isinstance(found, WorkloadCopy)
    assert (found.api_version, found.replicas) == ("test.example.com/v1", None)


SCRIPTS = [
    pytest.param("lua", "function InterpretHealth(o) return o.status.phase == 'Up' end", id="lua"),
    pytest.param("cel", "object.status.phase == 'Up'", id="cel"),
]


@pytest.mark.parametrize(("language", "script"), SCRIPTS)
async def test_a_script_judges_instead_of_the_built_in_rule(
    world: SourceContext, heard: Heard, east: EmulatedCluster, running: Running, language: str, script: str
) -> None:
    pytest.importorskip({"lua": "lupa", "cel": "cel_expr_python"}[language], reason=f"the extra {language} is missing")
    east.install(definition("test.example.com"))
    widget(east, "Up")
    kind = CustomKind(api_version="test.example.com/v1", kind="Widget")
    health = HealthScript.model_validate({language: script})
    async with running(workload_watch.run(source(kind, health=health), world)):
        await heard.status(WIDGET, Health.HEALTHY)
        east.patch("widgets", "left", {"status": {"phase": "Down"}}, "shop", status=True)
        await heard.status(WIDGET, Health.UNHEALTHY)
        east.patch("widgets", "left", {"status": {"phase": None}}, "shop", status=True)
        await heard.status(WIDGET, Health.UNKNOWN if language == "cel" else Health.UNHEALTHY)


@pytest.mark.parametrize(("language", "script"), SCRIPTS)
async def test_a_script_does_not_run_unless_the_settings_allow_it(
    world: SourceContext, language: str, script: str
) -> None:
    health = HealthScript.model_validate({language: script})
    with pytest.raises(SettingsError, match=f"add {language} to healthScripts"):
        await workload_watch.run(source(health=health), replace(world, health_scripts=frozenset()))
