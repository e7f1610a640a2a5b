"""Looks at the reactor's groups and at the world, and says what has changed since the last look."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from reactor.demo import scene, sentences
from reactor.demo.demo_world import DemoWorld
from reactor.demo.display import Display
from reactor.demo.ground_truth import RouteWrite, shifts
from reactor.runtime.clock import Clock
from rules.core.group import Group
from rules.core.member import Member, Window
from rules.summary import route_of

LOOK_SECONDS = 0.1
_LENGTHS = {False: scene.TOLERATION_SECONDS, True: scene.RECOVERY_SECONDS}
_ROUTE = f"{scene.HOME}/{scene.NAMESPACE}/{scene.ROUTE}"


class Watcher:
    """Follows the world, and tells each change on the display."""

    def __init__(self, world: DemoWorld, groups: Callable[[], Sequence[Group]], clock: Clock, display: Display) -> None:
        """`groups`: what the decider remembers."""
        self._world = world
        self._groups = groups
        self._clock = clock
        self._display = display
        self._members: dict[str, Member] = {}
        self._window_since: datetime | None = None
        self._held = ""
        self._events: set[str] = set()
        self.shifts: list[RouteWrite] = []
        """The writes to the route so far."""

    @property
    def group(self) -> Group | None:
        """The rule's state."""
        return next((group for group in self._groups() if group.rule == scene.RULE), None)

    @property
    def settled(self) -> bool:
        """True if the route is known, all its services are considered healthy, and traffic flows without a failure."""
        group, second = self.group, self._world.traffic.last
        if group is None or route_of(group) is None or second is None:
            return False
        sent = sum(count.sent for count in second.counts.values())
        healthy = [target for target, member in group.members.items() if member.settled and member.window is None]
        return len(healthy) == len(scene.BACKENDS) and sent > 0 and second.failures is None

    async def run(self) -> None:
        """Look without end."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_SECONDS)

    def look(self) -> None:
        """Look once."""
        group = self.group
        now = self._clock.now()
        if group is not None:
            for target, member in group.members.items():
                self._member(target, member)
            self._holds(group)
        self._route()
        self._told()
        self._display.live(*self._standing(group, now))

    def _member(self, target: str, member: Member) -> None:
        known = self._members.get(target)
        self._members[target] = member
        if known is None or known.status is not member.status:
            self._display.say("probe", sentences.seen(target, member))
        window = member.window
        before = known.window if known else None
        if window is not None and (before is None or before.healthy is not window.healthy):
            self._window_since = window.since
            self._display.say("window", sentences.opened(target, window, _LENGTHS[window.healthy]))
        elif before is not None and window is None and known is not None and member.settled is known.settled:
            self._window_since = None
            self._display.say("window", f"{target} changed its mind in time: nothing is done")

    def _holds(self, group: Group) -> None:
        held = f"{group.held.reason}: {group.held.detail}" if group.held else ""
        if held != self._held:
            self._held = held
            self._display.say("held", held or "no longer: the reason is gone")

    def _route(self) -> None:
        found = shifts(self._world.emulator, scene.HOME)
        for shift in found[len(self.shifts) :]:
            self.shifts.append(shift)
            if shift.by_reactor:
                self._display.say("action", sentences.shifted(_ROUTE, shift, self._waited(shift)))
                self._window_since = None  # what is written next was begun by something else
            else:
                self._display.say("edit", f"by {shift.manager}: {sentences.shifted(_ROUTE, shift, None)}")

    def _waited(self, shift: RouteWrite) -> float | None:
        """Give the seconds from the opening of the last window to this write."""
        if self._window_since is None:
            return None
        moment = self._clock.now() - timedelta(seconds=self._clock.monotonic() - shift.at)
        return (moment - self._window_since).total_seconds()

    def _told(self) -> None:
        """The Kubernetes Events beside the route: the reactor's own words for what it did."""
        for event in self._world.emulator.clusters[scene.HOME].list("events.events.k8s.io", scene.NAMESPACE):
            if event["metadata"]["uid"] not in self._events:
                self._events.add(event["metadata"]["uid"])
                self._display.say("event", f"{event['reason']}: {event['note']}")

    def _standing(self, group: Group | None, now: datetime) -> list[str]:
        windows: list[tuple[str, Window]] = [
            (target, member.window)
            for target, member in (group.members.items() if group else ())
            if member.window is not None
        ]
        counting = [sentences.countdown(target, window, _LENGTHS[window.healthy], now) for target, window in windows]
        return [*counting, sentences.traffic(self._world.traffic.last)]
