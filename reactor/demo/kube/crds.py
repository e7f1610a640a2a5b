"""The kinds a cluster serves: the built-in ones, and those that CustomResourceDefinitions add and take away."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from reactor.demo.kube.errors import no_such_path
from reactor.demo.kube.objects import JsonObject
from reactor.demo.kube.resources import BUILT_IN, Column, Resource

_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_SHIPPED = Path(__file__).parent / "crds"


@lru_cache(maxsize=1)
def shipped() -> tuple[JsonObject, ...]:
    """Give the definitions in the folder `crds`: all kinds of routes, as small as will do."""
    return tuple(load_definitions(path for path in sorted(_SHIPPED.glob("*.yaml"))))


def load_definitions(paths: Iterable[Path]) -> Iterator[JsonObject]:
    """Read every CustomResourceDefinition in these YAML files."""
    for path in paths:
        for document in yaml.load_all(path.read_text("utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition":
                yield document


def resources_of(definition: JsonObject) -> Iterator[Resource]:
    """Give one resource for each served version of a definition."""
    spec = definition["spec"]
    names = spec["names"]
    for version in spec["versions"]:
        if not version.get("served", True):
            continue
        yield Resource(
            group=spec["group"],
            version=version["name"],
            plural=names["plural"],
            kind=names["kind"],
            namespaced=spec["scope"] == "Namespaced",
            # A scale subresource of a custom resource needs paths we do not follow.
            subresources=("status",) if "status" in (version.get("subresources") or {}) else (),
            short_names=tuple(names.get("shortNames") or ()),
            fields=tuple(one["jsonPath"].lstrip(".") for one in version.get("selectableFields") or ()),
            generation=True,
            schema=(version.get("schema") or {}).get("openAPIV3Schema") or {},
            columns=tuple(_column(one) for one in version.get("additionalPrinterColumns") or ()),
        )


def _column(column: dict[str, Any]) -> Column:
    return Column(column["name"], column["jsonPath"], column.get("type", "string"), column.get("priority", 0))


def accepted(definition: JsonObject, time: str) -> JsonObject:
    """Give the status of a definition that is being served."""
    spec = definition["spec"]
    names = {"singular": spec["names"]["kind"].lower(), "listKind": f"{spec['names']['kind']}List"} | spec["names"]
    stored = [version["name"] for version in spec["versions"] if version.get("storage")]
    conditions = [
        {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": time}
        for kind, reason, message in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]
    return {"conditions": conditions, "acceptedNames": names, "storedVersions": stored}


def _priority(version: str) -> tuple[int, int, int]:
    """Order versions as upstream prefers them: v2, v1, v1beta2, v1beta1, v1alpha1."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return (9, 0, 0)
    stage = {None: 0, "beta": 1, "alpha": 2}[found[2]]
    return (stage, -int(found[1]), -int(found[3] or 0))


class Catalog:
    """Every resource one cluster serves."""

    def __init__(self) -> None:
        self._resources = {(one.group, one.version, one.plural): one for one in BUILT_IN}

    def at(self, group: str, version: str, plural: str) -> Resource:
        """Find a resource by its path; 404 where there is none."""
        found = self._resources.get((group, version, plural))
        if found is None:
            raise no_such_path()
        return found

    def of_kind(self, api_version: str, kind: str) -> Resource:
        """Find a resource by the apiVersion and kind of an object; 404 where there is none."""
        for one in self._resources.values():
            if one.kind == kind and one.group_version == api_version:
                return one
        raise no_such_path()

    def named(self, name: str) -> Resource:
        """Find a resource as people name it: `pods`, `trafficsplits`, `trafficsplits.split.smi-spec.io`."""
        found = [one for one in self._resources.values() if name in (one.plural, one.qualified, *one.short_names)]
        if not found:
            raise no_such_path()
        return min(found, key=lambda one: (one.stored_as is not None, _priority(one.version)))

    def define(self, definition: JsonObject) -> None:
        """Serve what this definition says, and nothing it used to say."""
        self.forget(definition)
        for one in resources_of(definition):
            self._resources[one.group, one.version, one.plural] = one

    def forget(self, definition: JsonObject) -> None:
        group, plural = definition["spec"]["group"], definition["spec"]["names"]["plural"]
        for key in [key for key in self._resources if key[0] == group and key[2] == plural]:
            del self._resources[key]

    def stored(self) -> list[Resource]:
        """Give one resource for each collection of objects."""
        return list({one.collection: one for one in self._resources.values()}.values())

    def groups(self) -> dict[str, list[str]]:
        """Give the versions of each named group, the preferred one first."""
        found: dict[str, set[str]] = {}
        for one in self._resources.values():
            if one.group:
                found.setdefault(one.group, set()).add(one.version)
        return {group: sorted(versions, key=_priority) for group, versions in found.items()}

    def within(self, group: str, version: str) -> list[Resource]:
        """Give the resources of one group and version; 404 when it is not served."""
        found = [one for one in self._resources.values() if (one.group, one.version) == (group, version)]
        if not found:
            raise no_such_path()
        return found
