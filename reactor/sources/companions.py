"""Has the other backends of a route looked at as soon as a probe finds one of them bad, where no window is awaited.

An act needs a look at whatever is to get traffic that is no older than the failure (decision 21). The decider asks for
it once it has read of the failure; asked for here, the look is on its way by then, and the patch comes some
milliseconds sooner. It changes nothing but that: what is lacking is asked for all the same.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping

from bus.errors import Unavailable
from bus.messages import Fact, Health, Observation, RefreshRequest
from reactor.sources.refresh import RefreshRequests
from rules.rulefile.model import Rule, TrafficFailover
from rules.rulefile.sources import Probe, Source

log = logging.getLogger(__name__)

COMPANIONS_MAX = 16
"""So many others are asked at most; the decider asks for the rest."""


class Companions:
    """Which probes see the other backends of a route without toleration."""

    def __init__(self, rules: Iterable[Rule], sources: Iterable[Source], requests: RefreshRequests) -> None:
        self._requests = requests
        probes: dict[str, list[str]] = defaultdict(list)
        for source in sources:
            if isinstance(source, Probe):
                probes[source.target].append(source.name)
        self._of = _companions(rules, probes)

    async def looked_at(self, fact: Fact) -> None:
        """Ask for a look at the others if this is the first observation of a failure. While the bus is away none is
        made."""
        if not isinstance(fact, Observation) or fact.status is not Health.UNHEALTHY or fact.since != fact.observed_at:
            return
        for source, target in sorted(self._of.get(fact.target, {}).items())[:COMPANIONS_MAX]:
            request = RefreshRequest(targets=(target,), not_before=fact.observed_at)
            try:
                await self._requests.ask(source, request)
            except Unavailable as error:
                log.debug("the decider will ask for this look", extra={"source": source, "reason": str(error)})
                return


def _companions(rules: Iterable[Rule], probes: Mapping[str, list[str]]) -> dict[str, dict[str, str]]:
    """Give for each target of a probe the probes of its companions, each with its target."""
    out: dict[str, dict[str, str]] = defaultdict(dict)
    for rule in rules:
        if not isinstance(rule, TrafficFailover) or rule.toleration_seconds:
            continue
        seen = [target for one in rule.backends or () if (target := one.target) is not None and target in probes]
        for target in seen:
            out[target] |= {name: other for other in seen if other != target for name in probes[other]}
    return dict(out)
