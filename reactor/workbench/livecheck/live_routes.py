"""Checks a TrafficFailover: its routes, their kind, their backends, and the permissions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

from bus.messages import RouteKind
from reactor.clients.api_versions import served
from reactor.clients.kubernetes_port import Forbidden, JsonObject, NotFound
from reactor.sources.kubernetes.route_projection import route_from
from reactor.workbench.livecheck.live import Live, Site, gravity, quoted
from reactor.workbench.rights import needed
from rules.core.errors import Problem
from rules.kinds.traffic.model import TrafficFailover
from rules.rulefile.route_kinds import RouteFormat, RouteKinds, kind_of

NOW = datetime(1970, 1, 1, tzinfo=UTC)
"""A projection carries a time, which is not used here."""


async def ask(live: Live, rule: TrafficFailover, site: Site, custom: RouteKinds) -> list[Problem]:
    """Ask the route's cluster."""
    route, here = rule.route, site.at("route")
    namespace = route.namespace or ""
    try:
        kind = kind_of(route.kind, route.custom_kind, custom)
    except KeyError:
        there = ", ".join(sorted(custom)) or "none"
        message = f"routeKinds.{route.custom_kind}: the settings do not name it (they name: {there})"
        return [here.at("customKind").says(message)]
    try:
        base = await served(live.api, kind)
    except NotFound as error:
        return [here.at("kind").says(str(error))]
    needs = needed.route(rule, kind)
    problems = await live.refusals(needs.observer, here, "error")
    problems += await live.refusals(needs.writes, here, gravity(rule))
    inside = f"{base}/namespaces/{quoted(namespace)}" if namespace else base
    try:
        if route.name is None:
            selected = await live.api.list(f"{inside}/{kind.plural}", label_selector=route.selector)
            message = f"{live.api.cluster}: no {route.called} has these labels yet"
            return problems if selected else [*problems, here.at("selector").says(message, "warning")]
        found = await live.found(f"{inside}/{kind.plural}/{quoted(route.name)}")
    except Forbidden:
        return problems  # said above
    if found is not None:
        return problems + _backends(live, rule, found, site, kind)
    if await live.sees_no(f"/api/v1/namespaces/{quoted(namespace)}"):
        return [*problems, here.at("namespace").says(f"{live.api.cluster}: there is no namespace {namespace}")]
    return [*problems, here.at("name").says(f"{live.api.cluster}: there is no {route.called} {namespace}/{route.name}")]


def _backends(live: Live, rule: TrafficFailover, found: JsonObject, site: Site, kind: RouteFormat) -> list[Problem]:
    route = rule.route
    own = (route.custom_kind, kind) if route.custom_kind is not None else None
    seen = route_from(live.api.cluster, cast("RouteKind", route.kind), found, route.rule, at=NOW, custom=own)
    what = f"{live.api.cluster}: {route.called} {route.namespace}/{route.name}"
    if seen.problem:
        return [site.at("route").says(f"{what} cannot be used: {seen.problem}")]
    services = list(dict.fromkeys(backend.service for backend in seen.backends))
    there = f"{what} has no backend %r; it has {', '.join(services)}"
    wrong = [
        site.at("backends", index, "service").says(there % backend.service)
        for index, backend in enumerate(rule.backends or ())
        if backend.service not in services
    ]
    if rule.backends is None and rule.primary is not None and rule.primary not in services:
        wrong.append(site.at("primary").says(there % rule.primary))
    return wrong
