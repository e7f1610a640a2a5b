"""The base lets traffic be moved, and nothing else; all of deploy/ is what a real server takes."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from bus.messages import RouteRef
from reactor.demo.kube.crds import load, shipped
from tests.contract.kube.objects import config_map
from tests.contract.kube.rights.acting import acting, here
from tests.kube.deployed import KUSTOMIZE, REAL_CRDS, Deployed
from tests.unit.actions import builders as routes

GATEWAY = "gateway.networking.k8s.io/v1"
SPLITS = "split.smi-spec.io/v1alpha2"
ROUTES = {
    "TrafficSplit": (routes.split([("p", 1), ("s", 0)]), "trafficsplits", SPLITS),
    "HTTPRoute": (routes.http_route(routes.refs([("p", 1), ("s", 0)])), "httproutes", GATEWAY),
    "GRPCRoute": (routes.http_route(routes.refs([("p", 1), ("s", 0)]), kind="GRPCRoute"), "grpcroutes", GATEWAY),
}


def definitions() -> list[Any]:
    """The kinds of routes: in the definitions of their projects if they are here, else in ours."""
    wanted = {one["metadata"]["name"] for one in shipped()}
    real = load(sorted(REAL_CRDS.glob("*.yaml"))) if REAL_CRDS.is_dir() else iter(shipped())
    return [one for one in real if one["metadata"]["name"] in wanted]


@pytest.mark.parametrize("kind", ROUTES)
async def test_the_base_lets_traffic_be_moved_and_told(us: Deployed, kind: Any) -> None:
    obj, plural, version = ROUTES[kind]
    await us.define(*definitions())
    made = await us.admin.post(us.admin.path(plural, group=version), here(us, obj))
    assert made.code == 201, made.body
    ref = RouteRef(cluster="it", kind=kind, namespace=us.admin.namespace, name="checkout")
    move = routes.set_weights({"p": 0, "s": 1}, ref)
    async with acting(us) as act:
        refused = await act(move)
        assert (refused.status, refused.reason, refused.wrote) == ("Failed", "Forbidden", False)
        assert "grant the verb 'get'" in refused.detail
        await us.grant("base")
        done = await act(move)
        assert (done.status, done.wrote) == ("Done", True), done.detail
        again = await act(move)
        assert (again.status, again.wrote) == ("Done", False), again.detail
    found = (await us.admin.get(us.admin.path(plural, "checkout", version))).body
    assert routes.weights_of(found) == [("p", 0), ("s", 1)]
    events = (await us.admin.get(us.admin.path("events", group="events.k8s.io/v1"))).body["items"]
    assert [(one["regarding"]["kind"], one["regarding"]["name"]) for one in events] == [(kind, "checkout")]


async def test_no_part_lets_us_do_what_it_does_not_say(us: Deployed) -> None:
    await us.admin.post(us.admin.path("configmaps"), config_map("a"))
    await us.grant("base")
    asked = [
        ("get", "", "secrets"), ("delete", "", "pods"), ("create", "", "pods"), ("patch", "", "nodes"),
        ("patch", "apps", "deployments"), ("delete", "split.smi-spec.io", "trafficsplits"), ("get", "", "configmaps"),
        ("create", "rbac.authorization.k8s.io", "clusterroles"),
    ]  # fmt: skip
    for verb, group, resource in asked:
        assert not await us.may(verb=verb, group=group, resource=resource, namespace=us.admin.namespace), resource


async def test_all_that_deploy_installs_is_accepted_to_the_last_field(us: Deployed) -> None:
    """Asked with dryRun and strict validation: a field that nobody knows would be a warning at most, and do nothing."""
    for path in sorted(KUSTOMIZE.rglob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            version = document.get("apiVersion", "")
            if "kind" not in document or version.startswith(("kustomize.", "reactor/")):
                continue
            served = (await us.admin.get(f"/api/{version}" if "/" not in version else f"/apis/{version}")).body
            kind = next(
                one for one in served["resources"] if one["kind"] == document["kind"] and "/" not in one["name"]
            )
            group = version if "/" in version else ""
            base = us.admin.path(kind["name"], group=group)
            if not kind["namespaced"]:
                base = base.replace(f"/namespaces/{us.admin.namespace}", "")
            document["metadata"].pop("namespace", None)
            asked = await us.admin.post(base, document, dryRun="All", fieldValidation="Strict")
            # 409: it is there already, on a cluster that has us.
            assert asked.code in (201, 409), (path.name, document["kind"], asked.body)
