"""Which groups of routes listen to which targets: the rule may name them, or the route's own backends do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from bus.messages import Observation, Route
from rules.core.group import Group
from rules.engine.routing import Routing
from rules.kinds.traffic.interests import explicit_targets
from rules.kinds.traffic.kind import service_target
from rules.kinds.traffic.route_state import PRIMARY_ANNOTATION, route_ref
from rules.rulefile.model import OnAllDown, TrafficFailover

Key = tuple[str, str]
"""Rule and object."""
HEARD_MAX = 100_000
"""How many targets' last observations are kept for groups that may still appear."""


class Watching:
    """The targets of all groups of routes, and what was last heard of each target."""

    def __init__(self, routing: Routing) -> None:
        self._routing = routing
        self._watchers: dict[str, set[Key]] = defaultdict(set)
        self._targets: dict[Key, frozenset[str]] = {}
        self._heard: dict[str, dict[str, Observation]] = {}

    def heard(self, fact: Observation) -> list[Key]:
        """Keep what was said, and give the groups that listen to it."""
        if fact.target in self._heard or len(self._heard) < HEARD_MAX:
            said = self._heard.setdefault(fact.target, {})
            last = said.get(fact.signal)
            if last is None or fact.observed_at >= last.observed_at:  # else it comes late, and is no news
                said[fact.signal] = fact
        return sorted(self._watchers.get(fact.target, ()))

    def keep(self, group: Group, before: Group | None) -> None:
        """Follow the group's route."""
        rule = self._routing.rules[group.rule]
        if not isinstance(rule, TrafficFailover) or (before is not None and before.route is group.route):
            return
        key, route = (group.rule, group.object), group.route
        services, primary = ([service for service, _ in route.backends], route.primary) if route else ([], None)
        # One that has only just been opened finds what was said before with its route.
        found = route is not None or rule.route.selector is None
        targets = _targets(rule, group.object, services, primary) if found else frozenset()
        for target in self._targets.get(key, frozenset()) - targets:
            self._watchers[target].discard(key)
        for target in targets:
            self._watchers[target].add(key)
        self._targets[key] = targets

    def forget(self, key: Key) -> None:
        """The group is no more."""
        for target in self._targets.pop(key, ()):
            self._watchers[target].discard(key)

    def earlier(self, key: Key, fact: Route) -> list[Observation]:
        """What was heard of backends that the route has (again) while its group did not listen to them."""
        return [one for target in sorted(self.gained(key, fact)) for one in self._heard.get(target, {}).values()]

    def gained(self, key: Key, fact: Route) -> frozenset[str]:
        """The targets that this group has to listen to from now on, and did not before."""
        rule = self._routing.rules[key[0]]
        if not isinstance(rule, TrafficFailover):
            return frozenset()
        services = [backend.service for backend in fact.backends]
        targets = _targets(rule, key[1], services, fact.annotations.get(PRIMARY_ANNOTATION))
        return targets - self._targets.get(key, frozenset())


def _targets(rule: TrafficFailover, object_: str, services: Iterable[str], primary: str | None) -> frozenset[str]:
    """The targets whose health this group has to know."""
    ref = route_ref(rule, object_)
    targets = explicit_targets(rule, ref)
    if targets is None:
        targets = frozenset(service_target(ref, service) for service in services)
    if primary and rule.on_all_down is OnAllDown.ZERO:
        targets |= {service_target(ref, primary)}
    return targets
