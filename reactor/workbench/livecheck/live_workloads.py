"""Checks a WorkloadFailover or ClusterTaint: kinds, workloads, namespaces and permissions in all its clusters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from reactor.actions.karmada.switches import DEPLOYMENT, fights
from reactor.actions.outcomes import Declined
from reactor.actions.workload.paths import base, kind_of
from reactor.clients.kubernetes_port import Forbidden, NotFound
from reactor.workbench.livecheck.live import ClusterJob, Live, Site, gravity, quoted
from reactor.workbench.rights import needed
from rules.core.errors import Problem
from rules.kinds.cluster_taint.model import ClusterTaint
from rules.kinds.workload.causes import policy_of
from rules.kinds.workload.checks import unbounded
from rules.kinds.workload.copy_needs import clusters_of
from rules.kinds.workload.model import Policy, WorkloadFailover
from rules.kinds.workload.state import WorkloadState
from rules.rulefile.targets import matches
from rules.rulefile.yaml import Document

_POLICIES = "/apis/policy.karmada.io/v1alpha1"
_WORK, _CLUSTER = "work.karmada.io", "cluster.karmada.io"
KARMADA = "karmada"
"""The control plane, by its name in the settings."""


@dataclass(slots=True)
class Sought:
    """A workload that has to be in one of several clusters: known only when all of them were asked."""

    site: Site
    what: str
    waiting: set[str]
    """Clusters that have not answered."""
    is_there: bool = False
    asked: list[str] = field(default_factory=list)

    def problems(self) -> list[Problem]:
        """Give the finding, where every cluster has answered that it is not there."""
        if self.is_there or self.waiting:
            return []
        return [self.site.says(f"none of the clusters {', '.join(sorted(self.asked))} has {self.what}")]


def jobs(rule: WorkloadFailover, site: Site, known: list[str], sought: list[Sought]) -> Iterator[ClusterJob]:
    """Give what is asked of each cluster where copies may be. `known`: those of the settings."""
    if rule.carrier == "Karmada":
        yield ClusterJob(KARMADA, site.at("carrier"), partial(_karmada, rule=rule, site=site))
        return
    names = clusters_of(rule.placement)
    names = tuple(known) if names == ("*",) else names
    mine = [
        Sought(site.at("resourceSelectors", index, "name"), f"the {one.kind} {one.namespace}/{one.name}", set(names))
        if one.name is not None and one.namespace is not None
        else None
        for index, one in enumerate(rule.resource_selectors)
    ]
    sought += [one for one in mine if one is not None]
    for name in names:
        yield ClusterJob(name, site.at("placement"), partial(_member, rule=rule, site=site, sought=mine))


async def _member(live: Live, rule: WorkloadFailover, site: Site, sought: list[Sought | None]) -> list[Problem]:
    problems: list[Problem] = []
    for index, one in enumerate(rule.resource_selectors):
        here = site.at("resourceSelectors", index)
        try:
            kind = await kind_of(live.api, one.api_version, one.kind)
        except Declined as error:
            problems.append(here.at("kind").says(str(error)))
            continue
        namespace = (one.namespace or "") if kind.namespaced else ""
        needs = needed.workload(rule, one, kind.plural, namespace)
        problems += await live.refusals(needs.executor, here, "error")
        problems += await live.refusals(needs.writes, here, gravity(rule))
        if namespace and await live.sees_no(f"/api/v1/namespaces/{quoted(namespace)}"):
            message = f"{live.api.cluster}: there is no namespace {namespace}: no copy can be placed there"
            problems.append(here.at("namespace").says(message, "warning"))
        wanted = sought[index]
        if wanted is not None:
            inside = f"{base(one.api_version)}/namespaces/{quoted(namespace)}" if namespace else base(one.api_version)
            await _seek(live, f"{inside}/{kind.plural}/{quoted(one.name or '')}", wanted)
    return problems


async def _seek(live: Live, path: str, wanted: Sought) -> None:
    try:
        found = await live.found(path)
    except Forbidden:
        return  # not known; that we may not look is said already
    wanted.is_there = wanted.is_there or found is not None  # only now: others have answered meanwhile
    wanted.asked.append(live.api.cluster)
    wanted.waiting.discard(live.api.cluster)


async def _karmada(live: Live, rule: WorkloadFailover, site: Site) -> list[Problem]:
    problems = await _served(live, site)
    if problems:
        return problems
    needs = needed.karmada(rule)
    problems += await live.refusals(needs.observer, site.at("carrier"), "error")
    problems += await live.refusals(needs.writes, site.at("carrier"), gravity(rule))
    try:
        found = await live.found(DEPLOYMENT)
    except Forbidden:
        found = None  # most control planes do not show it
    problems += [site.at("carrier").says(f"{live.api.cluster}: {one}", gravity(rule)) for one in fights(found or {})]
    problems += await _policies(live, rule, site)
    for name in clusters_of(rule.placement):
        if name != "*" and await live.sees_no(f"/apis/{_CLUSTER}/v1alpha1/clusters/{quoted(name)}"):
            problems.append(site.at("placement").says(f"{live.api.cluster}: there is no member cluster {name}"))
    for index, one in enumerate(rule.resource_selectors):
        here = site.at("resourceSelectors", index)
        sought = Sought(here.at("name"), f"the {one.kind} {one.namespace}/{one.name}", {live.api.cluster})
        try:
            kind = await kind_of(live.api, one.api_version, one.kind)
        except Declined as error:
            problems.append(here.at("kind").says(str(error)))
            continue
        if one.name is not None and (one.namespace is not None or not kind.namespaced):
            inside = f"/namespaces/{quoted(one.namespace)}" if one.namespace and kind.namespaced else ""
            await _seek(live, f"{base(one.api_version)}{inside}/{kind.plural}/{quoted(one.name)}", sought)
            problems += sought.problems()
    return problems


async def _policies(live: Live, rule: WorkloadFailover, site: Site) -> list[Problem]:
    """Warnings for what the policies that the rule honours leave without a bound."""
    problems: list[Problem] = []
    if rule.policies is None:
        return problems
    for plural in ("propagationpolicies", "clusterpropagationpolicies"):
        try:
            found = await live.api.list(f"{_POLICIES}/{plural}", label_selector=rule.policies.selector)
        except (Forbidden, NotFound):
            continue  # said already
        for one in found:
            policy = policy_of(rule, WorkloadState(policy=json.dumps(one.get("spec") or {})))
            if not isinstance(policy, Policy) or policy.failover is None:
                continue
            name = "/".join(part for part in (one["metadata"].get("namespace"), one["metadata"]["name"]) if part)
            problems += [
                site.at("policies").says(f"{live.api.cluster}: {name}: {told.path}: {told.message}", "warning")
                for told in unbounded(policy.failover, Document(""), ("failover",))
            ]
    return problems


async def _served(live: Live, site: Site) -> list[Problem]:
    for group, version in ((_WORK, "v1alpha2"), (_CLUSTER, "v1alpha1")):
        if await live.found(f"/apis/{group}/{version}") is None:
            message = f"{live.api.cluster}: serves no {group}/{version}: this is no Karmada control plane"
            return [site.at("carrier").says(message)]
    return []


async def taint(live: Live, rule: ClusterTaint, site: Site) -> list[Problem]:
    """Problems of a ClusterTaint on the Karmada control plane."""
    if problems := await _served(live, site):
        return problems
    needs = needed.taint()
    problems = await live.refusals(needs.observer, site.at("match"), "error")
    problems += await live.refusals(needs.writes, site.at("match"), gravity(rule))
    try:
        names = [str(one["metadata"]["name"]) for one in await live.api.list(f"/apis/{_CLUSTER}/v1alpha1/clusters")]
    except Forbidden:
        return problems
    if not any(matches(rule.match, f"cluster/{name}") for name in names):
        there = ", ".join(sorted(names)) or "none"
        problems.append(site.at("match").says(f"{live.api.cluster}: no member cluster is meant; there are {there}"))
    return problems
