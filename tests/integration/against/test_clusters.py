"""`reactor check --against`, on emulated clusters: what is not there is told at its place, and nothing is written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from reactor.demo.kube import Emulator, write_kubeconfig
from reactor.demo.kube.crds import load_definitions
from reactor.demo.kube.faults import Fault, Forbid, StatusFault
from reactor.runtime.clock import Clock
from reactor.workbench.livecheck import SETTINGS
from reactor.workbench.livecheck.livecheck_run import ask
from rules.loader import examine
from tests.e2e.control_plane import DEFINITIONS
from tests.e2e.shop import Shop

RULES = """apiVersion: reactor/v1
sources:
  - {name: readiness, kind: EndpointsWatch, cluster: east, namespace: shop}
rules:
  - name: checkout
    kind: TrafficFailover
    mode: Enforce
    route: {cluster: east, kind: TrafficSplit, namespace: shop, name: checkout}
    backends:
      - {service: checkout}
      - {service: fallback}
    recoverySeconds: 60
"""
DEPLOYMENT = {
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "nginx", "namespace": "shop"},
    "spec": {
        "replicas": 1, "selector": {"matchLabels": {"app": "nginx"}},
        "template": {"metadata": {"labels": {"app": "nginx"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}},
    },
}  # fmt: skip
MOVED = """apiVersion: reactor/v1
rules:
  - name: nginx
    kind: WorkloadFailover
    mode: Enforce
    resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, namespace: shop, name: nginx}]
    placement: {clusterAffinity: {clusterNames: [east, west]}}
    failover: {cluster: {}}
"""
ZONES = """apiVersion: reactor/v1
rules:
  - name: zones
    kind: ZoneIsolation
    mode: Enforce
    cluster: east
    zones: [{name: a}, {name: b}]
    steps: [Fence, ShiftTraffic]
"""


class World:
    """Emulated clusters, and settings that name them."""

    def __init__(self, emulator: Emulator, folder: Path) -> None:
        self.emulator, self.folder = emulator, folder
        self.shop = Shop(emulator)
        self.east = self.shop.east
        self.east.ensure_namespace("shop")
        self.east.ensure_namespace("kube-node-lease")
        self.clusters: dict[str, Any] = {}

    def settings(self, *names: str, **more: Any) -> Path:
        kubeconfig = write_kubeconfig(self.folder / "kubeconfig", self.emulator)
        clusters = {name: {"kubeconfig": str(kubeconfig), "context": name} for name in names}
        file = self.folder / "reactor.yaml"
        file.write_text(yaml.safe_dump({"clusters": clusters | self.clusters, **more}))
        return file

    async def asked(self, text: str, *names: str, words: tuple[str, ...] = (SETTINGS,), **more: Any) -> list[str]:
        """Ask, and give the findings as `line: path: message`."""
        reading = examine([("f.yaml", text)])
        assert reading.problems == []
        before = len(self.emulator.writes)
        found = await ask(reading, words, self.settings(*(names or ("east",)), **more), self.folder)
        assert [write.resource for write in [*self.emulator.writes][before:]] == [], "nothing is written"
        assert all(one.file == "f.yaml" and one.column > 1 for one in found)
        return [f"{one.line}: {one.path}: {one.message}" for one in sorted(found)]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with Emulator(clock=Clock().now) as emulator:
        yield World(emulator, tmp_path)


async def test_nothing_is_said_where_all_of_it_is_there(world: World) -> None:
    world.shop.split("checkout", "fallback")
    assert await world.asked(RULES) == []


async def test_a_route_that_is_not_there_is_told_at_its_name(world: World) -> None:
    assert await world.asked(RULES) == ["8: rules[0].route.name: east: there is no TrafficSplit shop/checkout"]


async def test_a_namespace_that_is_not_there_is_told_instead_of_what_is_not_in_it(world: World) -> None:
    text = RULES.replace("TrafficSplit, namespace: shop", "TrafficSplit, namespace: pay")
    assert await world.asked(text) == ["8: rules[0].route.namespace: east: there is no namespace pay"]
    text = RULES.replace(
        "EndpointsWatch, cluster: east, namespace: shop", "EndpointsWatch, cluster: east, namespace: pay"
    )
    world.shop.split("checkout", "fallback")
    assert await world.asked(text) == ["3: sources[0].namespace: east: there is no namespace pay"]


async def test_a_backend_that_the_route_does_not_have_is_told(world: World) -> None:
    world.shop.split("checkout", "other")
    [found] = await world.asked(RULES)
    assert found == (
        "11: rules[0].backends[1].service: east: TrafficSplit shop/checkout has no backend 'fallback'; "
        "it has checkout, other"
    )


async def test_a_kind_that_the_cluster_does_not_serve_is_told(world: World) -> None:
    world.emulator.cluster("bare", crds=[]).ensure_namespace("shop")
    [found] = await world.asked(RULES.replace("cluster: east", "cluster: bare"), "bare")
    assert found.startswith("8: rules[0].route.kind: bare: serves trafficsplits.split.smi-spec.io in none of ")
    assert "install its CRDs" in found


async def test_labels_that_no_route_has_are_told(world: World) -> None:
    world.shop.split("checkout", "fallback")
    start, end = RULES.index("    backends:"), RULES.index("    recovery")
    text = RULES.replace("name: checkout}", "selector: team=%s}").replace(RULES[start:end], "")
    assert await world.asked(text % "shop") == []
    assert await world.asked(text % "pay") == ["8: rules[0].route.selector: east: no TrafficSplit has these labels yet"]


@pytest.mark.parametrize(
    ("fault", "finding"),
    [
        (Fault(Forbid(), verb="patch", resource="trafficsplits"),
         "8: rules[0].route: east: we may not patch trafficsplits.split.smi-spec.io in namespace shop"),
        (Fault(Forbid(), verb="create", resource="events.events.k8s.io"),
         "8: rules[0].route: east: we may not create events.events.k8s.io in namespace shop"),
        (Fault(Forbid(), resource="trafficsplits"),
         "8: rules[0].route: east: we may not get, list, watch trafficsplits.split.smi-spec.io in namespace shop"),
        (Fault(Forbid(), verb="watch", resource="endpointslices"),
         "3: sources[0]: east: we may not watch endpointslices.discovery.k8s.io in namespace shop"),
    ],
)  # fmt: skip
async def test_a_permission_that_is_missing_is_told_with_its_verbs(world: World, fault: Fault, finding: str) -> None:
    world.shop.split("checkout", "fallback")
    world.east.faults.add(fault)
    assert f"{finding}: grant it by RBAC" in await world.asked(RULES)


async def test_a_rule_in_dry_run_is_only_warned_that_it_could_not_act(world: World) -> None:
    world.shop.split("checkout", "fallback")
    world.east.faults.add(Fault(Forbid(), verb="patch"))
    reading = examine([("f.yaml", RULES.replace("Enforce", "DryRun"))])
    [found] = await ask(reading, [SETTINGS], world.settings("east"), world.folder)
    assert found.severity == "warning"
    assert await world.asked(RULES.replace("Enforce", "Off")) == []


async def test_a_server_that_is_away_is_one_finding(world: World, tmp_path: Path) -> None:
    world.shop.split("checkout", "fallback")
    dead = tmp_path / "dead"
    dead.write_text(
        (write_kubeconfig(tmp_path / "k", world.emulator, ["east"])).read_text().replace("/c/east", "/c/no")
    )
    away = yaml.safe_load(dead.read_text())
    away["clusters"][0]["cluster"]["server"] = "http://127.0.0.1:9"
    dead.write_text(yaml.safe_dump(away))
    world.clusters = {"west": {"kubeconfig": str(dead), "context": "east"}}
    more = RULES + RULES.partition("rules:\n")[2].replace("name: checkout\n", "name: again\n").replace("east", "west")
    [found] = await world.asked(more, "east")
    assert found.startswith("16: rules[1].route.cluster: west cannot be asked: west: GET /version got no answer")


async def test_a_server_that_breaks_off_is_one_finding(world: World) -> None:
    world.shop.split("checkout", "fallback")
    world.east.faults.add(Fault(StatusFault(503), resource="trafficsplits"))
    [found] = await world.asked(RULES)
    assert "rules[0]" in found
    assert "east cannot be asked any more: " in found
    assert "503" in found


async def test_a_cluster_that_the_settings_do_not_name_is_told(world: World) -> None:
    found = await world.asked(RULES, "west")
    assert found == ["3: sources[0].cluster: clusters.east: the settings do not name it (they name: west)"]


async def test_people_to_tell_that_the_settings_do_not_name_are_told(world: World) -> None:
    world.shop.split("checkout", "fallback")
    text = RULES + "    notify: [oncall, nobody]\n"
    assert await world.asked(text, notifiers={"oncall": {}}) == [
        "13: rules[0].notify[1]: notifiers.nobody: the settings do not name it (they name: oncall)"
    ]


async def test_a_url_is_used_for_every_cluster_and_a_name_for_one(world: World) -> None:
    west = world.emulator.cluster("west")
    west.ensure_namespace("shop")
    url = world.emulator.url("west")
    missing = ["8: rules[0].route.name: east: there is no TrafficSplit shop/checkout"]
    assert await world.asked(RULES, words=(url,)) == missing
    assert await world.asked(RULES, words=(f"east={url}",)) == missing
    assert await world.asked(RULES, words=(f"other={url}",)) == [], "only what is named is asked"
    world.shop.split("checkout", "fallback")
    assert await world.asked(RULES, words=(world.emulator.url("east"),)) == []
    assert await world.asked(RULES, words=(SETTINGS, f"west={url}")) == []


async def test_a_context_of_the_kubeconfig_names_a_cluster(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.shop.split("checkout", "fallback")
    file = write_kubeconfig(world.folder / "home", world.emulator)
    monkeypatch.setattr("kubernetes.aio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(file))
    assert await world.asked(RULES, words=("east=east",)) == []
    [found] = await world.asked(RULES, words=("east=no-such-context",))
    assert "clusters.east" in found
    assert "no-such-context" in found


async def test_a_url_without_a_server_is_a_finding(world: World) -> None:
    reading = examine([("f.yaml", RULES)])
    [found] = await ask(reading, ["http://127.0.0.1:9"], None, world.folder)
    assert found.file == "http://127.0.0.1:9"
    assert "cannot be asked" in found.message


# --- the other kinds -----------------------------------------------------------------------------------------------


async def test_a_workload_has_to_be_in_one_of_its_clusters(world: World) -> None:
    west = world.emulator.cluster("west")
    west.ensure_namespace("shop")
    assert await world.asked(MOVED, "east", "west") == [
        "6: rules[0].resourceSelectors[0].name: none of the clusters east, west has the Deployment shop/nginx"
    ]
    west.create(DEPLOYMENT)
    assert await world.asked(MOVED, "east", "west") == []


async def test_a_workload_needs_its_namespace_and_its_permissions_in_every_cluster(world: World) -> None:
    west = world.emulator.cluster("west")
    world.east.create(DEPLOYMENT)
    west.faults.add(Fault(Forbid(), verb="create", resource="pods/eviction"))
    west.faults.add(Fault(Forbid(), verb="delete", resource="deployments"))
    here = "6: rules[0].resourceSelectors[0]"
    assert await world.asked(MOVED, "east", "west") == [
        f"{here}: west: we may not create pods/eviction in namespace shop: grant it by RBAC",
        f"{here}: west: we may not delete deployments.apps in namespace shop: grant it by RBAC",
        "6: rules[0].resourceSelectors[0].namespace: west: there is no namespace shop: no copy can be placed there",
    ]


async def test_a_kind_of_workload_that_is_not_served_is_told(world: World) -> None:
    text = MOVED.replace("apps/v1, kind: Deployment", "example.com/v1, kind: Widget").replace("[east, west]", "[east]")
    [found] = await world.asked(text)
    assert found.startswith("6: rules[0].resourceSelectors[0].kind: east: serves no Widget of example.com/v1")


async def test_zones_are_those_that_nodes_carry(world: World) -> None:
    def node(name: str, zone: str) -> None:
        labels = {"topology.kubernetes.io/zone": zone}
        world.east.create(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {}}
        )

    node("one", "a")
    node("two", "c")
    assert await world.asked(ZONES) == [
        "7: rules[0].zones: east: nodes also carry c: list all zones, or the rest is misjudged",
        "7: rules[0].zones[1].name: east: no node carries topology.kubernetes.io/zone=b; there are a, c",
    ]


async def test_only_the_permissions_of_a_zone_rules_own_steps_are_asked_for(world: World) -> None:
    for name in ("a", "b"):
        metadata = {"name": name, "labels": {"topology.kubernetes.io/zone": name}}
        world.east.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}})
    world.east.faults.add(Fault(Forbid(), verb="create", resource="pods/eviction"))
    world.east.faults.add(Fault(Forbid(), verb="delete", resource="pods"))
    assert await world.asked(ZONES) == []
    evacuating = ZONES.replace("ShiftTraffic]", "ShiftTraffic, Evacuate]")
    may_not = "6: rules[0].cluster: east: we may not {} in all namespaces: grant it by RBAC"
    assert await world.asked(evacuating) == [may_not.format("create pods/eviction")]
    forced = evacuating + "    force: AfterTimeout\n"
    assert await world.asked(forced) == [may_not.format("create pods/eviction"), may_not.format("delete pods")]


async def test_a_karmada_control_plane_has_to_be_one_and_to_know_the_clusters(world: World) -> None:
    text = MOVED.replace("mode: Enforce", "mode: Enforce\n    carrier: Karmada")
    [found] = await world.asked(text, "karmada")
    assert "karmada" in found
    world.emulator.clusters.pop("karmada", None)
    plane = world.emulator.cluster("karmada", crds=[*load_definitions([DEFINITIONS])])
    plane.ensure_namespace("shop")
    plane.create({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "east"},
                  "spec": {"syncMode": "Push"}})  # fmt: skip
    bindings = "resourcebindings.work.karmada.io"
    plane.faults.add(Fault(Forbid(), verb="patch", resource=bindings))
    assert await world.asked(text, "karmada") == [
        f"6: rules[0].carrier: karmada: we may not patch {bindings} in all namespaces: grant it by RBAC",
        "7: rules[0].resourceSelectors[0].name: none of the clusters karmada has the Deployment shop/nginx",
        "8: rules[0].placement: karmada: there is no member cluster west",
    ]
    labels = {"app": "manager"}
    container = {"name": "m", "image": "karmada-controller-manager:v1.19.0", "args": ["--feature-gates=AllBeta=true"]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    metadata = {"name": "karmada-controller-manager", "namespace": "karmada-system"}
    plane.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
                  "spec": {"selector": {"matchLabels": labels}, "template": template}})  # fmt: skip
    fights = [one for one in await world.asked(text, "karmada") if "feature gate Failover on" in one]
    assert [one.partition(": ")[0] for one in fights] == ["6"], "Karmada would fail over beside the rule"


POLICIES = """\
apiVersion: reactor/v1
rules:
  - name: karmada
    kind: WorkloadFailover
    mode: Enforce
    carrier: Karmada
    policies: {selector: failover=reactor}
"""


async def test_a_policy_that_bounds_nothing_is_told_where_the_rule_selects_it(world: World) -> None:
    plane = world.emulator.cluster("karmada", crds=[*load_definitions([DEFINITIONS])])
    plane.ensure_namespace("shop")
    for name, label, seconds in (("short", "reactor", 3), ("long", "reactor", 300), ("other", "nobody", 3)):
        conditions = {"tolerationSeconds": seconds}
        plane.create({
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
            "metadata": {"name": name, "namespace": "shop", "labels": {"failover": label}},
            "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
                     "failover": {"application": {"decisionConditions": conditions, "purgeMode": "Gracefully"}}},
        })  # fmt: skip
    found = await world.asked(POLICIES, "karmada")
    at = "7: rules[0].policies: karmada: shop/short: failover.application.decisionConditions.tolerationSeconds"
    words = "a workload that is bad everywhere moves every 3 s: write at least 10, or 0, which backs off"
    assert [one for one in found if "bad everywhere" in one] == [f"{at}: {words}"]


@pytest.mark.parametrize(
    ("source", "resource"),
    [("{name: s, kind: NodeWatch, cluster: east}", "pods"), ("{name: s, kind: LeaseWatch, cluster: east}", "leases"),
     ("{name: s, kind: WorkloadWatch, cluster: east}", "statefulsets"),
     ("{name: s, kind: EndpointsWatch, cluster: east}", "services")],
)  # fmt: skip
async def test_sources_that_watch_a_cluster_need_to_be_let(world: World, source: str, resource: str) -> None:
    world.east.ensure_namespace("karmada-cluster")
    labels = {"topology.kubernetes.io/zone": "a"}
    world.east.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": labels}, "spec": {}})
    text = f"apiVersion: reactor/v1\nsources: [{source}]\n"
    assert await world.asked(text) == []
    world.east.faults.add(Fault(Forbid(), verb="watch", resource=resource))
    [found] = await world.asked(text)
    assert f"we may not watch {resource}" in found


async def test_a_cluster_probe_needs_an_answer_only(world: World) -> None:
    world.east.faults.add(Fault(Forbid()))
    assert await world.asked("apiVersion: reactor/v1\nsources: [{name: s, kind: ClusterProbe, cluster: east}]\n") == []


async def test_many_clusters_are_asked_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reactor.clients.api_transport.CONNECT_SECONDS", 60.0)  # one process serves all thirty
    names = [f"c{number}" for number in range(30)]
    for name in names:
        world.emulator.cluster(name).ensure_namespace("shop")
    listed = ", ".join(names)
    async with asyncio.timeout(60):
        [found] = await world.asked(MOVED.replace("[east, west]", f"[{listed}]"), *names)
    assert "has the Deployment shop/nginx" in found


CUSTOM_RULES = RULES.replace("kind: TrafficSplit", "kind: Custom, customKind: Pool")
POOL = {"group": "example.com", "plural": "pools", "versions": ["v1"], "backends": "spec.backends", "name": "service"}


async def test_a_kind_of_route_that_the_settings_lack_is_told(world: World) -> None:
    other = {"Other": POOL}
    [found] = await world.asked(CUSTOM_RULES, routeKinds=other)
    assert found == (
        "8: rules[0].route.customKind: routeKinds.Pool: the settings do not name it (they name: Other)"
    )  # fmt: skip


async def test_a_kind_of_route_of_the_settings_is_looked_for_as_they_say(world: World) -> None:
    [found] = await world.asked(CUSTOM_RULES, routeKinds={"Pool": POOL})
    assert found.startswith("8: rules[0].route.kind: east: serves pools.example.com in none of v1")
    splits = POOL | {"group": "split.smi-spec.io", "plural": "trafficsplits", "versions": ["v1alpha2"]}
    world.shop.split("checkout", "other")
    [found] = await world.asked(CUSTOM_RULES, routeKinds={"Pool": splits})
    assert found.startswith("11: rules[0].backends[1].service: east: Pool shop/checkout has no backend 'fallback'")
