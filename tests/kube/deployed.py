"""The reactor as deploy/ installs it: its ServiceAccount on a real API server, with what deploy/ grants and no more."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from reactor.clients.kubernetes_api import Kubernetes, connect
from reactor.settings.server_settings import ClusterSettings
from tests.kube.api import PATIENCE, Api, Server

ROOT = Path(__file__).resolve().parents[2]
KUSTOMIZE = ROOT / "deploy/kustomize"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
REAL_CRDS = ROOT.parent / "shared" / "crds"
"""The definitions of the projects themselves, where a copy of them lies beside the repository."""
ROUTE_CRDS = Path(os.environ["ROUTE_CRDS"]) if os.environ.get("ROUTE_CRDS") else None
"""Another folder of such definitions, for kinds of routes."""


def kubeconfig(server: Server, path: Path) -> Path:
    """Write down how to reach a server with a token, for the product's own client; its certificate is not checked."""
    token = server.headers.get("Authorization", "").removeprefix("Bearer ")
    document = {
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": server.url, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "us", "user": {"token": token} if token else {}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "us"}}],
    }  # fmt: skip
    path.write_text(yaml.safe_dump(document))
    return path


def manifests(part: str) -> Iterator[Any]:
    """Give the roles and bindings of `base`, or of a component by its name."""
    folder = KUSTOMIZE / part if part == "base" else KUSTOMIZE / "components" / part
    yield from yaml.safe_load_all((folder / "rbac.yaml").read_text())


@dataclass
class Deployed:
    """The ServiceAccount `reactor` of the test's namespace. All roles are copies under names of the test's own."""

    admin: Api
    folder: Path
    made: list[str] = field(default_factory=list)
    """Paths of what lives outside of the namespace."""

    @property
    def user(self) -> str:
        return f"system:serviceaccount:{self.admin.namespace}:reactor"

    async def grant(self, *parts: str) -> None:
        """Bind the roles of these parts of deploy/, and wait until the server knows of every right that they give."""
        for part in parts:
            for one in manifests(part):
                if one["kind"] == "ClusterRole":
                    await self._role(one)
                elif one["kind"] == "ClusterRoleBinding":
                    await self._bound(one)

    async def _role(self, role: Any) -> None:
        name = self._named(role["metadata"]["name"])
        await self._make(f"{RBAC}/clusterroles", {**role, "metadata": {"name": name}})

    async def _bound(self, binding: Any) -> None:
        name, role = binding["metadata"]["name"], binding["roleRef"]["name"]
        here = [{**subject, "namespace": self.admin.namespace} for subject in binding["subjects"]]
        ref = {**binding["roleRef"], "name": self._named(role)}
        body = {**binding, "metadata": {"name": self._named(name)}, "roleRef": ref, "subjects": here}
        await self._make(f"{RBAC}/clusterrolebindings", body)
        granted = await self.admin.get(f"{RBAC}/clusterroles/{ref['name']}")
        for rule in granted.body["rules"]:
            await self._known(rule)

    async def bind_here(self, part: str, role: str) -> None:
        """Bind one role of a part in the test's namespace, as its page says for roles that come without a binding."""
        await self._role(next(one for one in manifests(part) if one["metadata"]["name"] == role))
        named = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": self._named(role)}
        subject = {"kind": "ServiceAccount", "name": "reactor", "namespace": self.admin.namespace}
        path = f"{RBAC}/namespaces/{self.admin.namespace}/rolebindings"
        made = await self.admin.post(path, {"metadata": {"name": role}, "roleRef": named, "subjects": [subject]})
        assert made.code == 201, made.body
        granted = await self.admin.get(f"{RBAC}/clusterroles/{named['name']}")
        for rule in granted.body["rules"]:
            await self._known(rule, namespace=self.admin.namespace)

    async def _make(self, collection: str, body: Any) -> None:
        done = await self.admin.post(collection, body)
        assert done.code == 201, done.body
        self.made.append(f"{collection}/{body['metadata']['name']}")

    async def _known(self, rule: Any, namespace: str = "") -> None:
        """A binding is in force some moments after it was made."""
        async with asyncio.timeout(PATIENCE):
            for group, resource, verb, name in _asked(rule):
                plural, _, subresource = resource.partition("/")
                asked = {"group": group, "resource": plural, "subresource": subresource, "verb": verb, "name": name}
                asked |= {"namespace": namespace} if namespace else {}
                while not await self.may(**asked):
                    await asyncio.sleep(0.05)

    async def may(self, **asked: str) -> bool:
        """Ask the server whether the reactor may do this."""
        body = {"spec": {"user": self.user, "groups": ["system:authenticated"], "resourceAttributes": asked}}
        return bool((await self.admin.post(REVIEWS, body)).body["status"]["allowed"])

    async def token(self) -> str:
        """Have a token of the ServiceAccount made, as a Pod gets it."""
        path = self.admin.path("serviceaccounts", "reactor", subresource="token")
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        made = await self.admin.post(path, asked)
        assert made.code == 201, made.body
        return str(made.body["status"]["token"])

    async def kubeconfig(self) -> Path:
        """Write down how the reactor reaches the server."""
        ours = replace(self.admin.server, headers={"Authorization": f"Bearer {await self.token()}"})
        return kubeconfig(ours, self.folder / f"{self.admin.namespace}.kubeconfig")

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Kubernetes]:
        """Give the product's own client, as the ServiceAccount."""
        api = await connect("it", ClusterSettings(kubeconfig=await self.kubeconfig()))
        try:
            yield api
        finally:
            await api.close()

    async def define(self, *definitions: Any) -> None:
        """Have kinds served, in the server's own definition where it has one; ours are taken away again."""
        for definition in definitions:
            path, spec = f"{CRDS}/{definition['metadata']['name']}", definition["spec"]
            version = next(one["name"] for one in spec["versions"] if one["storage"])
            served = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"
            async with asyncio.timeout(PATIENCE):
                # One that another test has just taken away stays for a moment, and serves nothing new.
                while "deletionTimestamp" in (found := await self.admin.get(path)).body["metadata"]:
                    await asyncio.sleep(0.05)
                if found.code == 404:
                    await self._make(CRDS, definition)
                while (await self.admin.get(served)).code != 200:
                    await asyncio.sleep(0.05)

    async def leave(self) -> None:
        """Take away what lives outside of the namespace."""
        for path in reversed(self.made):
            await self.admin.delete(path)

    def _named(self, name: str) -> str:
        return f"{name}-{self.admin.namespace}"


def _asked(rule: Any) -> Sequence[tuple[str, str, str, str]]:
    return [
        (group, resource, verb, name)
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", [""])
    ]


async def settled(admin: Api, folder: Path) -> Deployed:
    """Make the ServiceAccount, without any right."""
    made = await admin.post(admin.path("serviceaccounts"), {"metadata": {"name": "reactor"}})
    assert made.code == 201, made.body
    return Deployed(admin, folder)
