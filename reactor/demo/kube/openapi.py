"""Part of `/openapi/v3` that kubectl asks for before it writes: whether the server validates fields itself.

Without it kubectl refuses to create or apply anything. The schemas themselves are not served; a custom resource is
checked by its definition when it is written.
"""

from __future__ import annotations

from reactor.demo.kube.crds import Catalog
from reactor.demo.kube.errors import no_such_path
from reactor.demo.kube.objects import JsonObject
from reactor.demo.kube.resources import Resource

_ROOT = "/openapi/v3"
_PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
    for name in ("dryRun", "fieldManager", "fieldValidation", "force")
]


def openapi(catalog: Catalog, path: str) -> JsonObject | None:
    """Answer a path under /openapi/v3; None when it is another path."""
    if not path.startswith(_ROOT):
        return None
    within = path.removeprefix(_ROOT).strip("/")
    if not within:
        served = ["api/v1"] + [
            f"apis/{group}/{version}" for group, versions in catalog.groups().items() for version in versions
        ]
        return {"paths": {one: {"serverRelativeURL": f"{_ROOT}/{one}"} for one in served}}
    match within.split("/"):
        case ["api", version]:
            resources = catalog.within("", version)
        case ["apis", group, version]:
            resources = catalog.within(group, version)
        case _:
            raise no_such_path()
    paths = dict(_path(within, one) for one in resources)
    return {"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "emulator"}, "paths": paths}


def _path(within: str, resource: Resource) -> tuple[str, JsonObject]:
    place = "namespaces/{namespace}/" if resource.namespaced else ""
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    patch = {"parameters": _PARAMETERS, "x-kubernetes-group-version-kind": kind, "responses": {}}
    return f"/{within}/{place}{resource.plural}/{{name}}", {"patch": patch}
