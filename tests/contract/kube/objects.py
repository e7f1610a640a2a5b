"""Small valid objects, as every API server accepts them."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.kube.api import PATIENCE, Api


def config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> Any:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name} | ({"labels": labels} if labels else {}),
        "data": data,
    }


def deployment(name: str, replicas: int = 1, image: str = "registry.invalid/web:1") -> Any:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": image}]},
            },
        },
    }


def pod(name: str, **labels: str) -> Any:
    """A pod that no scheduler takes, so that no kubelet ever changes it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "schedulerName": "nobody",
            "automountServiceAccountToken": False,
            "containers": [{"name": "web", "image": "registry.invalid/web:1"}],
        },
    }


def budget(name: str, minimum: int, **labels: str) -> Any:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"minAvailable": minimum, "selector": {"matchLabels": labels}},
    }


def definition(group: str) -> Any:
    """A custom kind Widget with everything a structural schema can say that we use."""
    spec = {
        "type": "object",
        "required": ["size"],
        "properties": {
            "size": {"type": "integer", "minimum": 0, "maximum": 10},
            "color": {"type": "string", "enum": ["red", "green"], "default": "red"},
            "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
            "weight": {"x-kubernetes-int-or-string": True},
            "note": {"type": "string", "nullable": True},
            "parts": {
                "type": "array",
                "maxItems": 3,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "type": "object",
                    "required": ["name"],
                    "properties": {"name": {"type": "string"}, "count": {"type": "integer", "default": 1}},
                },
            },
            "backends": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"service": {"type": "string"}, "weight": {"type": "integer"}},
                },
            },
            "settings": {"type": "object", "additionalProperties": {"type": "string"}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
    status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "required": ["spec"], "properties": {"spec": spec, "status": status}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


class Widgets:
    """The Widget kind of one test: its group is the test's own, so that tests on one server never meet."""

    def __init__(self, api: Api) -> None:
        self.group = f"{api.namespace}.example.com"
        self.definition = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{self.group}"
        self._api = api

    def path(self, name: str = "", *, subresource: str = "") -> str:
        return self._api.path("widgets", name, f"{self.group}/v1", subresource=subresource)

    def widget(self, name: str, **spec: Any) -> Any:
        return {"apiVersion": f"{self.group}/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}

    async def install(self) -> None:
        """Register the kind and wait until it is served."""
        definitions = self.definition.rpartition("/")[0]
        created = await self._api.post(definitions, definition(self.group))
        assert created.code == 201, created.body
        async with asyncio.timeout(PATIENCE):
            # Establishing a kind is announced before every handler of the server knows of it: ask until it answers.
            while (await self._api.get(self.path())).code != 200:
                await asyncio.sleep(0.05)

    async def remove(self) -> None:
        await self._api.delete(self.definition)
