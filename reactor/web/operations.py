"""Operations that people with the role operate may order on the page, by name; and the orders of whole rules among
them."""

from __future__ import annotations

from collections.abc import Mapping

from bus.messages import Pause, Resume
from reactor.runtime.durations import duration
from reactor.views.pausing import matching, pause_plan
from reactor.web.operation_order import Operation, PlanBasis, ShownPlan
from reactor.web.order_body import Seconds
from reactor.web.page_access import Denied
from reactor.web.traffic_orders import FailbackTrafficOrder, FailoverTrafficOrder, ReleaseTrafficOrder
from reactor.web.zone_orders import AbortZoneOrder, FailbackZoneOrder, IsolateZoneOrder, RetryZoneOrder
from rules.engine.pauses import PAUSES
from rules.rulefile.targets import matches


class PauseOrder(Operation):
    """A pause for the rules whose names match."""

    for_seconds: Seconds | None = None

    def shown(self, basis: PlanBasis) -> ShownPlan:
        """See Operation."""
        length = f"for {duration(self.for_seconds)}" if self.for_seconds is not None else "until they are resumed"
        command = Pause(rule=self.rule, for_seconds=self.for_seconds, **basis.words)
        return _pausing("pause", command, basis, f", {length}")


class ResumeOrder(Operation):
    """The end of a pause."""

    def shown(self, basis: PlanBasis) -> ShownPlan:
        """See Operation."""
        return _pausing("resume", Resume(rule=self.rule, **basis.words), basis)


OPERATIONS: Mapping[str, type[Operation]] = {
    "pause": PauseOrder, "resume": ResumeOrder,
    "failover-traffic": FailoverTrafficOrder, "failback-traffic": FailbackTrafficOrder,
    "release-traffic": ReleaseTrafficOrder,
    "isolate-zone": IsolateZoneOrder, "failback-zone": FailbackZoneOrder, "abort-zone": AbortZoneOrder,
    "retry-zone": RetryZoneOrder,
}  # fmt: skip
"""Operations by the last part of the path."""


def _pausing(verb: str, command: Pause | Resume, basis: PlanBasis, length: str = "") -> ShownPlan:
    pattern, mine = command.rule, matching(basis.groups, command.rule)
    paused = any(one.rule == PAUSES and matches(pattern, one.object) for one in basis.groups)
    if not (mine or paused or pattern == "*" or any(matches(pattern, name) for name in basis.rules)):
        raise Denied(404, f"no rule is called {pattern}")
    names = tuple(sorted({group.rule for group in mine}))
    held = tuple(one.held.about or one.object for one in mine if one.held is not None) if verb == "resume" else ()
    return ShownPlan(command, pause_plan(verb, pattern, mine, length), (verb, names, held))
