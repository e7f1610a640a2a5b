"""One server as it is asked, and the place in a rule file that a finding is about."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote

from bus.messages import Mode
from reactor.clients.instant_queries import Queries
from reactor.clients.kubernetes_port import Forbidden, JsonObject, KubeApi, NotFound
from reactor.workbench.rights.grant import Grant
from rules.core.errors import Problem
from rules.rulefile.model import Rule
from rules.rulefile.yaml import Document, Path

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@dataclass(frozen=True, slots=True)
class Site:
    """A place in a rule file."""

    document: Document
    path: Path

    def at(self, *more: str | int) -> Site:
        """Give a place inside of it."""
        return Site(self.document, (*self.path, *more))

    def says(self, message: str, severity: str = "error") -> Problem:
        """Give a finding there, or at the nearest thing that is written down."""
        return self.document.problem(self.path, message, severity=severity)


@dataclass(slots=True)
class Live:
    """One cluster."""

    api: KubeApi
    _allowed: dict[tuple[str, ...], bool] = field(default_factory=dict)

    async def found(self, path: str) -> JsonObject | None:
        """Give the object, or None where it is not there. Raises as KubeApi does."""
        try:
            return await self.api.get(path)
        except NotFound:
            return None

    async def sees_no(self, path: str) -> bool:
        """True if it is surely not there. What we may not look at may be."""
        try:
            return await self.found(path) is None
        except Forbidden:
            return False

    async def refusals(self, grants: Iterable[Grant], site: Site, severity: str) -> list[Problem]:
        """Give one finding for each resource that we may not use as we have to."""
        problems = []
        for grant in grants:
            denied = [verb for verb in grant.verbs if not await self._may(verb, grant)]
            if denied:
                resource = f"{grant.resource}.{grant.group}" if grant.group else grant.resource
                where = f"namespace {grant.namespace}" if grant.namespace else "all namespaces"
                message = f"{self.api.cluster}: we may not {', '.join(denied)} {resource} in {where}: grant it by RBAC"
                problems.append(site.says(message, severity))
        return problems

    async def _may(self, verb: str, grant: Grant) -> bool:
        key = (verb, grant.group, grant.resource, grant.namespace, grant.name)
        if key not in self._allowed:
            resource, _, subresource = grant.resource.partition("/")
            asked = {"verb": verb, "group": grant.group, "resource": resource, "subresource": subresource}
            asked |= {"namespace": grant.namespace, "name": grant.name}
            body = {
                "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
                "spec": {"resourceAttributes": {name: value for name, value in asked.items() if value}},
            }  # fmt: skip
            answer = await self.api.create(REVIEWS, body)
            self._allowed[key] = bool((answer.get("status") or {}).get("allowed"))
        return self._allowed[key]


AsksCluster = Callable[[Live], Awaitable[list[Problem]]]
AsksPrometheus = Callable[[Queries], Awaitable[list[Problem]]]


class ClusterJob(NamedTuple):
    """Question to a cluster, and its place in the rule file."""

    server: str
    site: Site
    ask: AsksCluster


class PrometheusJob(NamedTuple):
    """Question to a Prometheus, and its place in the rule file."""

    server: str
    site: Site
    ask: AsksPrometheus


Job = ClusterJob | PrometheusJob


def gravity(rule: Rule) -> str:
    """Severity of a missing permission: an error for a rule that acts, a warning for one that only rehearses."""
    return "error" if rule.mode in (Mode.ENFORCE, Mode.APPROVE) else "warning"


def quoted(text: str) -> str:
    """One segment of a path."""
    return quote(text, safe="")
