"""Actions of the demo's buttons on its world, and their undoing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from reactor.demo import scene
from reactor.demo.demo_world import DemoWorld
from reactor.demo.error_alert import WINDOW_SECONDS
from reactor.demo.kube.faults import Fault, Handle, StatusFault
from reactor.demo.second_reactor import SecondReactor
from reactor.demo.sentences import percent

BUS_SECONDS = 20.0
SLOW_PERCENT = 30
OTHER_CLUSTER = "west"
ZONE = ("east", "central")
"""The clusters of the zone that a button breaks."""


@dataclass(frozen=True, slots=True)
class Button:
    """One of them."""

    name: str
    title: str
    does: str
    watch: str


BUTTONS = (
    Button(
        "service", "Break a service", f"{scene.PRIMARY} answers HTTP 503.",
        f"on Now, a window of {scene.TOLERATION_SECONDS} s counts down, then the traffic moves to the other clusters.",
    ),
    Button(
        "slow", "Slow errors at 30 %",
        f"{SLOW_PERCENT} % of the answers of {scene.PRIMARY} are errors, and all are slow. The demo watches the error "
        "rate as Prometheus would, and posts an alert as Alertmanager does.",
        "probes that fail now and then open windows that close again. After ten seconds the alert fires: the target "
        f"stays unhealthy, and {scene.TOLERATION_SECONDS} s later the traffic moves.",
    ),
    Button(
        "cluster", f"Break a cluster ({OTHER_CLUSTER})", f"API and service of {OTHER_CLUSTER} answer 503.",
        f"on Map, {OTHER_CLUSTER} is unhealthy. No traffic was there, so nothing moves. Break a service too: its "
        "traffic goes to central alone.",
    ),
    Button(
        "zone", f"Break a zone ({' and '.join(ZONE)})", f"The services of {' and '.join(ZONE)} fail together.",
        "two windows count down on Now, then all traffic goes to west.",
    ),
    Button(
        "reactor", "Kill a reactor", "kill -9 of the second reactor, which decides for half of the partitions.",
        "on Members, its partitions go to the first one within some seconds. A service that you break meanwhile still "
        "fails over. Heal starts it again.",
    ),
    Button(
        "bus", f"Stop the bus for {BUS_SECONDS:g} s", "nats-server is frozen (SIGSTOP), and goes on after that time.",
        "the page says that its data is old, and traffic goes on. A service that you break meanwhile fails over when "
        "the bus is back.",
    ),
    Button("heal", "Heal", "All of it is well again.",
           f"where the alert had fired, it takes {WINDOW_SECONDS} s to end; then a window of "
           f"{scene.RECOVERY_SECONDS} s counts the recovery, and the traffic comes back."),
)  # fmt: skip


@dataclass(slots=True)
class Mischief:
    """Breaks and heals the demo's world, and knows what is broken now."""

    world: DemoWorld
    second: SecondReactor
    bus_pid: Callable[[], int | None]
    broken: list[str] = field(default_factory=list)
    _faults: list[Handle] = field(default_factory=list)
    _waking: asyncio.Task[None] | None = None

    async def press(self, name: str) -> None:
        """Do what a button says. Raises KeyError where there is none of this name."""
        does: dict[str, Callable[[], Awaitable[None]]] = {
            "service": self._service, "slow": self._slow, "cluster": self._cluster, "zone": self._zone,
            "reactor": self._reactor, "bus": self._bus, "heal": self.heal,
        }  # fmt: skip
        await does[name]()
        title = next(one.title for one in BUTTONS if one.name == name)
        if name != "heal" and title not in self.broken:
            self.broken.append(title)

    async def heal(self) -> None:
        """Make all of it well."""
        await self.wake()
        for fault in self._faults:
            fault.remove()
        self._faults.clear()
        for service in self.world.services:
            await self.world.tell(service, broken=False)
        await self.second.start()
        self.broken.clear()

    async def _service(self) -> None:
        await self.world.tell(scene.PRIMARY, broken=True)

    async def _slow(self) -> None:
        await self.world.slow(scene.PRIMARY, SLOW_PERCENT)

    async def _cluster(self) -> None:
        self._faults.append(self.world.emulator.cluster(OTHER_CLUSTER).faults.add(Fault(StatusFault(503))))
        await self.world.tell(_service_in(OTHER_CLUSTER), broken=True)

    async def _zone(self) -> None:
        for cluster in ZONE:
            await self.world.tell(_service_in(cluster), broken=True)

    async def _reactor(self) -> None:
        await self.second.kill()

    async def _bus(self) -> None:
        if self._waking is None and (pid := self.bus_pid()) is not None:
            os.kill(pid, signal.SIGSTOP)
            self._waking = asyncio.create_task(self._wake_later())

    async def _wake_later(self) -> None:
        await asyncio.sleep(BUS_SECONDS)
        self._go_on()

    def _go_on(self) -> None:
        if (pid := self.bus_pid()) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        self._waking = None
        self.broken = [title for title in self.broken if "bus" not in title]

    async def wake(self) -> None:
        """Let a bus that was stopped go on now."""
        if self._waking is not None:
            self._waking.cancel()
            self._go_on()

    def traffic(self) -> list[dict[str, str]]:
        """Give what users see of each backend."""
        second = self.world.traffic.last
        counts = second.counts if second is not None else {}
        return [
            {
                "service": name,
                "says": f"{one.sent} requests/s, {percent(one.ok, one.sent)} ok" if one.sent else "no traffic",
            }
            for name, one in counts.items()
        ]


def _service_in(cluster: str) -> str:
    return next(name for name, where in scene.BACKENDS.items() if where == cluster)
