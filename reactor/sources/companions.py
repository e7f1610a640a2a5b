"""Requests looks at the other backends of a route as soon as one is found bad, where no window is awaited.

An act needs a look at whatever is to get traffic that is no older than the failure (decision 21). The decider asks for
it once it has read of the failure; asked for here, the look is on its way by then, and the patch comes some
milliseconds sooner. It changes nothing but that: what is lacking is asked for all the same.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from bus.errors import Unavailable
from bus.messages import Fact, Health, Observation, RefreshRequest
from reactor.sources.refresh import RefreshRequests
from rules.kinds.traffic.model import TrafficFailover
from rules.lint.coverage import feeds, wants
from rules.rulefile.feeds import Consumer, Producers
from rules.rulefile.model import Rule
from rules.rulefile.overlap import is_plain
from rules.rulefile.sources import EndpointsWatch, LoadedSource, Probe

log = logging.getLogger(__name__)

COMPANIONS_MAX = 16
"""Most other backends that are asked for; the decider asks for the rest."""


class Companions:
    """Probes and watches that see the other backends of a route without toleration, where its rule names them."""

    def __init__(self, rules: Iterable[Rule], sources: Iterable[LoadedSource], requests: RefreshRequests) -> None:
        self._requests = requests
        self._of = _companions(rules, Producers(feeds((one for one in sources if _may_look(one)), ())))

    async def looked_at(self, facts: Iterable[Fact]) -> None:
        """Ask for looks at the others if these are first observations of failures; not while the bus is away."""
        for fact in facts:
            if not isinstance(fact, Observation) or fact.status is not Health.UNHEALTHY:
                continue
            if fact.since == fact.observed_at and (of := self._of.get(fact.target)) is not None:
                others = {one for seers in of for one in seers if one[1] != fact.target}
                await self._ask(sorted(others)[:COMPANIONS_MAX], fact.observed_at)

    async def _ask(self, others: Iterable[tuple[str, str]], not_before: datetime) -> None:
        targets: dict[str, list[str]] = defaultdict(list)
        for source, target in others:
            targets[source].append(target)
        for source, some in targets.items():
            try:
                await self._requests.ask(source, RefreshRequest(targets=tuple(some), not_before=not_before))
            except Unavailable as error:
                log.debug("the decider will ask for this look", extra={"source": source, "reason": str(error)})
                return


def _may_look(source: LoadedSource) -> bool:
    return isinstance(source, Probe | EndpointsWatch)


def _companions(rules: Iterable[Rule], producers: Producers) -> dict[str, list[tuple[tuple[str, str], ...]]]:
    """Give for each target of a backend, and for each of its rules, who can be asked about what: source and target."""
    out: dict[str, list[tuple[tuple[str, str], ...]]] = defaultdict(list)
    for rule in rules:
        if not isinstance(rule, TrafficFailover) or rule.toleration_seconds:
            continue
        targets = [target for need in wants(rule) for target in need.targets if is_plain(target)]
        seers = tuple(
            (one.source.name, target)
            for target in targets
            for one in producers.heard(Consumer(target, rule.signals))
            if one.source is not None
        )
        for target in targets if seers else ():
            out[target].append(seers)
    return dict(out)
