"""Discovery: what a client asks before it asks for anything (`/version`, `/api`, `/apis`, one group's resources)."""

from __future__ import annotations

from reactor.demo.kube.crds import Catalog
from reactor.demo.kube.errors import no_such_path
from reactor.demo.kube.objects import JsonObject
from reactor.demo.kube.resources import Resource

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_SUBRESOURCE_VERBS = ["get", "patch", "update"]


def version(number: str) -> JsonObject:
    """Give `/version` for a release such as "1.34"."""
    major, minor = number.split(".")[:2]
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{major}.{minor}.0+emulator",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    }


def discover(catalog: Catalog, path: str) -> JsonObject | None:
    """Answer a discovery path; None when it is the path of a resource."""
    parts = path.strip("/").split("/")
    match parts:
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            groups = [_group(name, versions) for name, versions in sorted(catalog.groups().items())]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ["apis", group]:
            versions = catalog.groups().get(group)
            if versions is None:
                raise no_such_path()
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, versions)}
        case ["api", version]:
            return _resources(catalog.within("", version), version)
        case ["apis", group, version]:
            return _resources(catalog.within(group, version), f"{group}/{version}")
    return None


def _group(name: str, versions: list[str]) -> JsonObject:
    served = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": served, "preferredVersion": served[0]}


def _resources(resources: list[Resource], group_version: str) -> JsonObject:
    listed: list[JsonObject] = []
    for resource in resources:
        one = {
            "name": resource.plural,
            "singularName": resource.kind.lower(),
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": _VERBS,
        }
        listed.append(one | ({"shortNames": list(resource.short_names)} if resource.short_names else {}))
        listed += [_subresource(resource, name) for name in resource.subresources]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": listed}


def _subresource(resource: Resource, name: str) -> JsonObject:
    served: JsonObject = {
        "name": f"{resource.plural}/{name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _SUBRESOURCE_VERBS,
    }
    if name == "eviction":
        return served | {"group": "policy", "version": "v1", "kind": "Eviction", "verbs": ["create"]}
    if name == "scale":
        return served | {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    return served
