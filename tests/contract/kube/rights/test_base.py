"""The base lets traffic be moved, and nothing else; all of deploy/ is what a real server takes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from reactor.actions.traffic.weights import backends_of
from reactor.clients.route_entries import weights_of
from reactor.demo.kube.crds import load_definitions, shipped
from rules.rulefile.route_kinds import RouteFormat
from tests.contract.kube.objects import config_map
from tests.contract.kube.rights.acting import acting
from tests.kube.deployed import KUSTOMIZE, REAL_CRDS, ROUTE_CRDS, Deployed
from tests.unit.actions import builders as routes
from tests.unit.actions.route_samples import SAMPLES, Sample

SHIPPED = {one["metadata"]["name"]: one for one in shipped()}
ROUTES = [sample for sample in SAMPLES if sample.kind != "Custom"]


def definitions() -> list[Any]:
    """The kinds of routes: in the definitions of their projects where they are here, else in ours."""
    folders = [folder for folder in (REAL_CRDS, ROUTE_CRDS) if folder is not None and folder.is_dir()]
    files = [file for folder in folders for file in sorted(folder.glob("*.yaml"))]
    real = {name: one for one in load_definitions(files) if (name := one["metadata"]["name"]) in SHIPPED}
    return [*(SHIPPED | real).values()]


@pytest.mark.parametrize("sample", ROUTES, ids=[sample.name for sample in ROUTES])
async def test_the_base_lets_traffic_be_moved_and_told(us: Deployed, sample: Sample) -> None:
    kind, namespace = sample.described, us.admin.namespace
    await us.define(*definitions())
    version, group = await served(us, kind), kind.group
    made = await us.admin.post(
        us.admin.path(kind.plural, group=f"{group}/{version}"),
        sample.object([sample.whole, 0], version=version, namespace=namespace),
    )
    assert made.code == 201, made.body
    move = routes.set_weights({"p": 0, "s": sample.whole}, sample.ref(namespace))
    async with acting(us) as act:
        refused = await act(move)
        assert (refused.status, refused.reason, refused.wrote) == ("Failed", "Forbidden", False)
        assert "grant the verb 'get'" in refused.detail
        await us.grant("base")
        done = await act(move)
        assert (done.status, done.wrote) == ("Done", True), done.detail
        again = await act(move)
        assert (again.status, again.wrote) == ("Done", False), again.detail
    found = (await us.admin.get(us.admin.path(kind.plural, "checkout", f"{group}/{version}"))).body
    standing = backends_of(kind, found, sample.ref(namespace))
    weights = dict(zip([entry.service for entry in standing], weights_of(kind, standing), strict=True))
    assert weights == {"p": 0, "s": sample.whole} | sample.others
    before, after = (bare(sample, obj) for obj in (made.body, found))
    assert after == before, "nothing else has changed"
    events = (await us.admin.get(us.admin.path("events", group="events.k8s.io/v1"))).body["items"]
    assert [(one["regarding"]["kind"], one["regarding"]["name"]) for one in events] == [(sample.kind, "checkout")]


async def served(us: Deployed, kind: RouteFormat) -> str:
    """Give the first of our versions that the definition serves."""
    listed = (await us.admin.get(f"/apis/{kind.group}")).body["versions"]
    return next(version for version in kind.versions if version in {one["version"] for one in listed})


def bare(sample: Sample, obj: Any) -> Any:
    """The spec without the weights that were asked for."""
    found = copy.deepcopy(obj)
    for entry in backends_of(sample.described, obj, sample.ref(obj["metadata"]["namespace"])):
        one = found
        for token in entry.at.split("/")[1:]:
            one = one[int(token) if isinstance(one, list) else token]
        if entry.service in ("p", "s"):
            one.pop(entry.field, None)
    return found["spec"]


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
    """Asked with dryRun and strict validation: an unknown field would be a warning at most, and do nothing."""
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
