"""Orders of the routes of a rule, as `reactor traffic` gives them."""

from __future__ import annotations

from bus.messages import FailbackTraffic, FailoverTraffic, Mode, ReleaseTraffic, TrafficCommand
from reactor.runtime.visible import visible
from reactor.views.traffic_plan import REFUSED, planned
from reactor.web.operation_order import Operation, PlanBasis, ShownPlan
from reactor.web.order_body import Seconds, Text
from reactor.web.page_access import Denied
from rules.summary import route_of


class FailoverTrafficOrder(Operation):
    """Traffic away from its primary."""

    object: Text | None = None
    to: tuple[Text, ...] = ()
    for_seconds: Seconds | None = None
    force: bool = False

    def shown(self, basis: PlanBasis) -> ShownPlan:
        """See Operation."""
        command = FailoverTraffic(
            rule=self.rule, object=self.object, to=self.to, for_seconds=self.for_seconds, force=self.force,
            **basis.words,
        )  # fmt: skip
        return _moving(command, basis)


class FailbackTrafficOrder(Operation):
    """Traffic back to its primary."""

    object: Text | None = None
    for_seconds: Seconds | None = None
    force: bool = False

    def shown(self, basis: PlanBasis) -> ShownPlan:
        """See Operation."""
        command = FailbackTraffic(
            rule=self.rule, object=self.object, for_seconds=self.for_seconds, force=self.force, **basis.words
        )
        return _moving(command, basis)


class ReleaseTrafficOrder(Operation):
    """The rule decides by itself again."""

    object: Text | None = None

    def shown(self, basis: PlanBasis) -> ShownPlan:
        """See Operation."""
        return _moving(ReleaseTraffic(rule=self.rule, object=self.object, **basis.words), basis)


def _moving(command: TrafficCommand, basis: PlanBasis) -> ShownPlan:
    mine = [
        one for one in basis.groups
        if one.rule == command.rule and route_of(one) is not None and command.object in (None, one.object)
    ]  # fmt: skip
    if not mine:
        raise Denied(404, f"{command.rule} moves no such traffic")
    if all(group.mode is Mode.OFF for group in mine):
        raise Denied(409, f"{command.rule} is in mode Off: it moves nothing, not even on a command")
    rule = basis.rules.get(command.rule)
    lines = [visible(planned(rule, group, command, basis.now)) for group in mine]
    refused = tuple(line for line in lines if REFUSED in line)
    return ShownPlan(command, "\n".join(lines), tuple(lines), refused)
