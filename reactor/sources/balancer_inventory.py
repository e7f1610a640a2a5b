"""The weights of a load balancer, read every few seconds: no load balancer says by itself that they have changed.

Where it does not answer, nothing is told: its weights are not known. Where it answers what cannot be used, that is told
as the route's problem, so that `reactor status` shows it.
"""

from __future__ import annotations

import asyncio
import json
import logging

from bus.messages import Backend, LoadBalancerKind, Route
from reactor.clients.balancers.balancer_port import LoadBalancer, Weights
from reactor.clients.changes import ReadInterval
from reactor.clients.kubernetes_port import NotFound
from reactor.runtime import telemetry
from reactor.runtime.errors import Retryable, SettingsError, Terminal
from reactor.sources.republisher import Republisher
from reactor.sources.source_context import SourceContext
from reactor.sources.standing_fact import LONG_AGO
from reactor.sources.ticker import Ticker
from rules.kinds.traffic.route_state import HEALTHY_ANNOTATION

REFRESH_SECONDS = 30.0
PROBLEM_CHARACTERS = 500
log = logging.getLogger(__name__)


async def run(name: str, kind: LoadBalancerKind, world: SourceContext) -> None:
    """Read until cancelled. Raises SettingsError."""
    reader = _BalancerPoll(world.load_balancers.get(name, kind), kind, world)
    pace = Ticker(
        world, reader.read, name=reader.name, every_seconds=reader.balancer.every_seconds,
        timeout_seconds=reader.balancer.timeout_seconds,
    )  # fmt: skip
    async with asyncio.TaskGroup() as group:
        group.create_task(pace.run())
        group.create_task(reader.standing.keep(lambda: LONG_AGO if pace.alive and not reader.complaint else None))


class _BalancerPoll:
    def __init__(self, balancer: LoadBalancer, kind: LoadBalancerKind, world: SourceContext) -> None:
        self.balancer = balancer
        self.name = f"loadBalancer/{balancer.name}"
        self.complaint = ""
        """Reason why the load balancer does not answer; empty: it does."""
        self._kind = kind
        self._clock = world.clock
        self.standing: Republisher[Route] = Republisher(
            world.tell, world.clock, on_facts_lost=world.on_facts_lost, period_seconds=REFRESH_SECONDS
        )

    async def read(self, *, extra: bool) -> None:  # noqa: ARG002 - each answer is complete
        """Take one reading."""
        began = self._clock.now()
        route = Route(kind=self._kind, name=self.balancer.name, observed_at=began)
        try:
            found = await self.balancer.read()
        except NotFound as error:
            self._complain("NotFound", str(error))
            route = route.model_copy(update={"exists": False})
        except (Terminal, SettingsError) as error:  # also a secret that cannot be read
            self._complain(type(error).__name__, str(error))
            route = route.model_copy(update={"problem": str(error)[:PROBLEM_CHARACTERS]})
        except Retryable as error:
            if self._clock.standstill.ended_at <= began:  # else we interrupted it ourselves
                self._complain(type(error).__name__, str(error))
            return
        else:
            route = as_route(route, found)
            if self.complaint:
                log.info("a load balancer answers again", extra={"source": self.name})
        if self._clock.standstill.ended_at > began:
            return
        self.complaint = ""
        before = self.standing.get(route.object)
        changed = before is None or route.model_copy(update={"observed_at": before.observed_at}) != before
        # Dated when it was asked for: what we ourselves write while the answer is on its way is newer.
        await self.standing.say(route.object, route, changed=changed, look=ReadInterval(began, began))

    def _complain(self, reason: str, words: str) -> None:
        telemetry.source_errors.labels(self.name, reason).inc()
        if words != self.complaint:
            log.warning("a load balancer cannot be read", extra={"source": self.name, "reason": words})
        self.complaint = words


def as_route(route: Route, found: Weights) -> Route:
    """Give the route with what was read. Pure."""
    known = {HEALTHY_ANNOTATION: json.dumps(dict(found.configured), sort_keys=True)} if found.configured else {}
    try:
        backends = tuple(Backend(service=name, weight=weight) for name, weight in found.by_name.items())
    except ValueError as error:
        return route.model_copy(update={"problem": f"cannot be used: {error}"[:PROBLEM_CHARACTERS]})
    return route.model_copy(update={"backends": backends, "annotations": known, "life": found.life})
