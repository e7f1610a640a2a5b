"""Verb, resource and object of a request, read from its method and path as upstream's RequestInfo does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from reactor.demo.kube.crds import Catalog
from reactor.demo.kube.errors import StatusError, bad_request, method_not_allowed, no_such_path
from reactor.demo.kube.objects import NamespacedName
from reactor.demo.kube.resources import Resource

_ON_OBJECT = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_ON_COLLECTION = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
WRITES = frozenset(("create", "update", "patch", "delete", "deletecollection"))


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """One request to one kind of object."""

    verb: str
    """The word RBAC uses: get, list, watch, create, update, patch, delete, deletecollection."""
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    media_type: str = "application/json"
    agent: str = "emulator"

    @property
    def key(self) -> NamespacedName:
        return self.namespace, self.name

    def on(self, namespace: str, name: str, *, verb: str) -> ApiRequest:
        """Give the same call for one object."""
        return replace(self, namespace=namespace, name=name, verb=verb)

    @property
    def manager(self) -> str:
        """The field manager: as asked for, or the program's name in the User-Agent, as upstream."""
        return self.query.get("fieldManager") or self.agent.split("/")[0] or "unknown"

    @property
    def dry_run(self) -> bool:
        return self.flag_all("dryRun")

    def flag_all(self, name: str) -> bool:
        """Read a parameter whose only legal value is All."""
        value = self.query.get(name, "")
        if value not in ("", "All"):
            raise StatusError(422, "Invalid", f'{name}: Unsupported value: "{value}": supported values: "All"')
        return value == "All"

    def flag(self, name: str) -> bool:
        return self.query.get(name, "").lower() in ("true", "1")

    def number(self, name: str) -> int:
        """Read a whole number; 0 where it is not given."""
        text = self.query.get(name) or "0"
        if not text.isascii() or not text.isdigit():
            raise bad_request(f'{name}: Invalid value: "{text}": must be a number')
        return int(text)


def parse(
    catalog: Catalog, method: str, path: str, query: Mapping[str, str], *, media_type: str = "", agent: str = ""
) -> ApiRequest:
    """Read a request under /api or /apis; 404 or 405 where the API has nothing of that kind."""
    resource, namespace, rest = _locate(catalog, [part for part in path.split("/") if part])
    name, subresource = [*rest, "", ""][:2]
    if len(rest) > 2 or (subresource and subresource not in resource.subresources):
        raise no_such_path()
    if namespace and not resource.namespaced:
        raise no_such_path()
    verbs = _ON_OBJECT if name else _ON_COLLECTION
    if subresource == "eviction":
        verbs = {"POST": "create"}
    verb = verbs.get(method)
    needs_namespace = resource.namespaced and not namespace and (name or method != "GET")
    if verb is None or needs_namespace or (subresource and verb == "delete"):
        raise method_not_allowed()
    if method == "GET" and not subresource and query.get("watch", "").lower() in ("true", "1"):
        verb = "watch"
    return ApiRequest(verb, resource, namespace, name, subresource, query, media_type, agent)


def _locate(catalog: Catalog, parts: list[str]) -> tuple[Resource, str, list[str]]:
    if parts[0] == "api" and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise no_such_path()
    namespace = ""
    # /namespaces/x/pods is a path to pods; /namespaces/x and /namespaces/x/status are paths to the namespace.
    if rest[0] == "namespaces" and len(rest) >= 3 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    return catalog.at(group, version, rest[0]), namespace, rest[1:]
