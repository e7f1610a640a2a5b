"""Checks a rule on a load balancer: that it answers, and has the rule's backends."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from bus.messages import Mode
from reactor.clients.balancers.connected import LoadBalancers
from reactor.runtime.errors import ReactorError
from reactor.workbench.livecheck.live import Site
from rules.core.errors import Problem
from rules.kinds.traffic.model import TrafficFailover
from rules.loader import LoadedParts


async def ask(reading: LoadedParts, balancers: LoadBalancers) -> list[Problem]:
    """Ask each that a rule names. A rule that is off asks nothing."""
    rules = [
        (rule, Site(document, at))
        for rule, document, at in reading.rules
        if isinstance(rule, TrafficFailover) and not rule.route.in_cluster and rule.mode is not Mode.OFF
    ]
    try:
        found = await asyncio.gather(*(_asked(rule, site, balancers) for rule, site in rules))
    finally:
        await balancers.close()
    return [problem for problems in found for problem in problems]


async def _asked(rule: TrafficFailover, site: Site, balancers: LoadBalancers) -> Sequence[Problem]:
    try:
        weights = (await balancers.get(rule.route.name or "", rule.route.kind).read()).by_name
    except ReactorError as error:
        return [site.at("route", "name").says(str(error))]
    return list(_missing(rule, site, list(weights)))


def _missing(rule: TrafficFailover, site: Site, there: Sequence[str]) -> Iterable[Problem]:
    for index, backend in enumerate(rule.backends or ()):
        if backend.service not in there:
            message = (
                f"{rule.route.kind} {rule.route.name} has no backend {backend.service!r}; it has {', '.join(there)}"
            )
            yield site.at("backends", index, "service").says(message)
