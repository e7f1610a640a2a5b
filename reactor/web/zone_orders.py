"""Orders of the zones of a rule, as `reactor zone` gives them."""

from __future__ import annotations

from collections.abc import Sequence

from bus.messages import FailbackZone, IsolateZone, RetryZone
from reactor.runtime.visible import visible
from reactor.views.zone_removal import continuation, not_to_continue, not_to_remove, removal
from reactor.views.zone_words import group_of, in_words, planned
from reactor.web.operation_order import Operation, PlanBasis, ShownPlan
from reactor.web.order_body import Text
from reactor.web.page_access import Denied
from rules.core.group import Group
from rules.kinds.zone.model import ZoneIsolation
from rules.kinds.zone.state import Isolation, ZoneState


class IsolateZoneOrder(Operation):
    """A zone is taken out of service."""

    zone: Text
    force: bool = False
    allow_single_zone: tuple[Text, ...] = ()

    def shown(self, basis: PlanBasis) -> ShownPlan:
        """See Operation."""
        rule = basis.rules.get(self.rule)
        if not isinstance(rule, ZoneIsolation) or rule.zone(self.zone) is None:
            raise Denied(404, f"no ZoneIsolation rule of this process is called {self.rule} and has {self.zone}")
        allowed, group = self.allow_single_zone, group_of(basis.groups, rule)
        plan = planned(rule, group, self.zone, basis.now, force=self.force, allowed=allowed)
        guards = tuple((str(one.reason), one.passed) for one in plan.guards)
        steps = tuple(one.step for one in plan.failover)
        command = IsolateZone(
            rule=self.rule, zone=self.zone, force=self.force, allow_single_zone=allowed, **basis.words
        )
        refused = tuple(visible(f"{one.reason}: {one.detail}") for one in plan.guards if not one.passed)
        about = (self.zone, plan.mode, rule.mode, guards, steps)
        return ShownPlan(command, in_words(rule, plan), about, refused)


class FailbackZoneOrder(Operation):
    """An isolated zone is brought back."""

    force: bool = False

    def shown(self, basis: PlanBasis) -> ShownPlan:
        """See Operation."""
        return _removing(self.rule, basis, running=False, force=self.force)


class AbortZoneOrder(Operation):
    """An isolation that is being carried out is undone."""

    def shown(self, basis: PlanBasis) -> ShownPlan:
        """See Operation."""
        return _removing(self.rule, basis, running=True, force=False)


class RetryZoneOrder(Operation):
    """A step that has failed is tried again."""

    def shown(self, basis: PlanBasis) -> ShownPlan:
        """See Operation."""
        _, isolation = _isolated(basis.groups, self.rule)
        if why := not_to_continue(isolation):
            raise Denied(409, f"{self.rule}: {why}")
        command = RetryZone(rule=self.rule, zone=isolation.zone, **basis.words)
        about = (isolation.zone, isolation.phase, isolation.failure)
        return ShownPlan(command, continuation(self.rule, isolation), about)


def _removing(name: str, basis: PlanBasis, *, running: bool, force: bool) -> ShownPlan:
    group, isolation = _isolated(basis.groups, name)
    if why := not_to_remove(isolation, running=running, force=force):
        raise Denied(409, f"{name}: {why}")
    rule = basis.rules.get(name)
    text = removal(rule if isinstance(rule, ZoneIsolation) else None, group, isolation, force=force)
    command = FailbackZone(rule=name, zone=isolation.zone, force=force, **basis.words)
    return ShownPlan(command, text, (isolation.zone, isolation.phase, isolation.status, isolation.touched))


def _isolated(groups: Sequence[Group], rule: str) -> tuple[Group, Isolation]:
    for group in groups:
        if group.rule == rule and isinstance(group.state, ZoneState) and group.state.isolation is not None:
            return group, group.state.isolation
    raise Denied(409, f"{rule}: no zone is isolated or being isolated")
