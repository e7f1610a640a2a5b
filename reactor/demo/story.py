"""The story: a service breaks, its traffic moves away, it heals, the traffic comes back. Told once, with figures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from reactor.demo import scene
from reactor.demo.demo_world import DemoWorld
from reactor.demo.display import Display
from reactor.demo.errors import NotAsTold
from reactor.demo.ground_truth import RouteWrite, StoryVerdict, judge
from reactor.demo.watcher import LOOK_SECONDS, Watcher
from reactor.runtime.clock import Clock

READY_SECONDS = 60.0
"""The reactor has to get three services and one route, on a machine that may be busy."""
CALM_SECONDS = 2.5
"""Seconds between two chapters, so that a person sees the state: longer than plain lines are apart."""
SLACK_SECONDS = 30.0
"""Seconds beyond its window for which an action is waited for."""
NOTICE_SECONDS = 1.0
"""The gateway gets new weights through a watch, and requests are under way: failures just after a shift are its."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The result of a failover. Moments are on the machine's monotonic clock."""

    services_up: float
    broken: float
    healed: float
    failover: float
    verdict: StoryVerdict
    requests: int
    failed: int
    failed_outside: bool
    """True if a request failed at any other time than between the break and the shift."""

    def __str__(self) -> str:
        when = "also outside of the window" if self.failed_outside else "only between the fault and the shift"
        return (
            f"first action {self.failover - self.services_up:.1f} s after the services were up, "
            f"{self.failover - self.broken:.1f} s after the fault\n"
            f"requests: {self.requests}, failed {self.failed} ({when})\n"
            f"writes to the route: {self.verdict.writes}; {self.verdict.doubled} doubled, {self.verdict.early} early"
        )

    def complaint(self) -> str:
        """Say what is not as it should be; empty: all is."""
        verdict = self.verdict
        if (verdict.writes, verdict.doubled, verdict.early) != (2, 0, 0):
            return f"two writes to the route were due, none doubled, none early; see: {self}"
        return f"requests failed that should not have; see: {self}" if self.failed_outside else ""


class Story:
    """Tells it, in a world that is up and with a reactor that runs."""

    def __init__(self, world: DemoWorld, watcher: Watcher, clock: Clock, display: Display) -> None:
        self._world = world
        self._watcher = watcher
        self._clock = clock
        self._display = display

    async def tell(self, services_up: float) -> Figures:
        """Tell it once; `services_up` is the moment when the services were. Raises NotAsTold."""
        await self._until(lambda: self._watcher.settled, READY_SECONDS, "all services healthy and traffic flowing")
        await self._calm()
        broken = await self._break()
        failover = await self._shift(1, scene.TOLERATION_SECONDS + SLACK_SECONDS)
        await self._served(failover)
        healed = await self._heal()
        await self._served(await self._shift(2, scene.RECOVERY_SECONDS + SLACK_SECONDS))
        return self._figures(services_up, broken, healed, failover)

    async def _break(self) -> float:
        self._display.say("fault", f"the demo breaks {scene.PRIMARY}: it answers HTTP 503 from now on")
        moment = self._clock.monotonic()
        await self._world.tell(scene.PRIMARY, broken=True)
        return moment

    async def _heal(self) -> float:
        self._display.say("healed", f"the demo heals {scene.PRIMARY}")
        moment = self._clock.monotonic()
        await self._world.tell(scene.PRIMARY, broken=False)
        return moment

    async def _served(self, shift: RouteWrite) -> None:
        """Wait until the gateway has had a whole second without a failure after this."""

        def seen() -> bool:
            second = self._world.traffic.last
            return second is not None and second.at > shift.at + 1 and second.failures is None

        await self._until(seen, SLACK_SECONDS, "a second of traffic without failures after the shift")
        await self._calm()

    async def _calm(self) -> None:
        await asyncio.sleep(CALM_SECONDS)

    async def _shift(self, number: int, within: float) -> RouteWrite:
        await self._until(lambda: len(self._ours()) >= number, within, f"write {number} to the route")
        return self._ours()[number - 1]

    def _ours(self) -> list[RouteWrite]:
        """The reactor's writes; a person with kubectl may have made others."""
        return [shift for shift in self._watcher.shifts if shift.by_reactor]

    async def _until(self, happened: Callable[[], bool], within: float, what: str) -> None:
        give_up = self._clock.monotonic() + within
        while not happened():
            if self._clock.monotonic() > give_up:
                raise NotAsTold(f"waited {within:g} s in vain for: {what}")
            await asyncio.sleep(LOOK_SECONDS)

    def _figures(self, services_up: float, broken: float, healed: float, failover: RouteWrite) -> Figures:
        traffic = self._world.traffic
        first, last = traffic.first_failure, traffic.last_failure
        outside = first is not None and last is not None and (first < broken or last > failover.at + NOTICE_SECONDS)
        due = (broken + scene.TOLERATION_SECONDS, healed + scene.RECOVERY_SECONDS)
        verdict = judge(self._ours(), due)
        return Figures(
            services_up, broken, healed, failover.at, verdict, traffic.requests, traffic.failed, failed_outside=outside
        )
