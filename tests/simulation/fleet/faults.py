"""Lets the faults of a scenario happen to the fleet, and writes down for how long they may be felt."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bus.topology import EXECUTORS
from reactor.audit.spans import Span
from tests.simulation.fleet.fleet import SOURCE, Fleet
from tests.simulation.fleet.link import TIMEOUT, Link, Trap
from tests.simulation.fleet.loop import START, VirtualLoop
from tests.simulation.fleet.process import Process
from tests.simulation.fleet.scenario import Fault, Scenario

IN_HANDS = EXECUTORS.ack_wait.total_seconds() + 2 * TIMEOUT
"""Seconds after which whatever was in the hands of an executor that lost it has come again."""
BEGINNING_AGAIN = 2 * TIMEOUT
"""Seconds in which a process that was in trouble, or takes over, has read what it needs and is at work."""


class Faults:
    """The troubles of one run."""

    def __init__(self, scenario: Scenario, loop: VirtualLoop, fleet: Fleet, tell: Callable[[str], None]) -> None:
        self._scenario, self._loop, self._fleet, self._tell = scenario, loop, fleet, tell
        self.troubles: list[Span] = []
        self.blind: list[Span] = []
        """Times in which no source looked, or what was known of its looks was lost."""
        self.wipes: list[float] = []
        """Times at which the bus lost all that it had stored."""

    def arm(self) -> None:
        """Let each happen in its time."""
        for fault in self._scenario.faults:
            begin = START + fault.at
            # Crashes and pauses begin at one of the process's calls; what is merely given again delays nothing.
            if fault.kind not in ("crash", "pause", "unacked"):
                self.troubles.append(Span(begin, begin + fault.seconds + self._felt(fault.who)))
            self._loop.later(fault.at, self._begin, fault)

    def _felt(self, who: str) -> float:
        """Seconds for which a fault of this process has effects after its end."""
        executes = not who or self._fleet.roles[who] in ("all", "executor")
        return IN_HANDS if executes else BEGINNING_AGAIN

    def _concerned(self, fault: Fault) -> list[tuple[str, Process]]:
        running = self._fleet.running
        if fault.who:
            return [(fault.who, running[fault.who])] if fault.who in running else []
        return [(who, running[who]) for who in self._fleet.roles if who in running]

    def _begin(self, fault: Fault) -> None:
        if fault.kind in ("bus-down", "bus-wiped"):
            self._tell("the bus is down")
            self._fleet.server.set_down(down=True)
            if fault.kind == "bus-wiped":
                self._wipe(fault)
            self._loop.later(fault.seconds, self._bus_is_back)
            return
        if fault.kind == "api-down":
            self._tell("the API server is down")
            self._fleet.cluster.is_down = True
            self._unseen(fault)
            self._loop.later(fault.seconds, self._api_is_back)
            return
        for who, process in self._concerned(fault):
            if fault.kind == "all-gone":
                self._crash(fault, who, process)
            elif fault.kind in ("crash", "pause"):
                strike = partial(self._crash if fault.kind == "crash" else self._pause, fault, who, process)
                process.bus.traps.append(Trap(fault.calls, fault.late, strike, fault.of))
            elif fault.kind == "cut":
                self._tell(f"{process.name} is cut off from the bus for {fault.seconds:g} s")
                process.bus.cut_since = self._loop.time()
                self._loop.later(fault.seconds, self._mend, process)
            elif fault.kind == "unacked":
                self._tell(f"no acknowledgement of {process.name} arrives for {fault.seconds:g} s")
                process.bus.mute = True
                self._loop.later(fault.seconds, self._unmute, process)
            else:
                link = process.api if fault.kind == "api-rough" else process.bus
                self._tell(f"{fault.kind} for {process.name}: {fault.rate:.0%} of its calls for {fault.seconds:g} s")
                link.rate = fault.rate
                self._loop.later(fault.seconds, self._smooth, link)

    def _wipe(self, fault: Fault) -> None:
        self._tell("all that the bus had stored is lost")
        self._fleet.server.lose_all()
        self.wipes.append(self._loop.time())
        self._unseen(fault)  # what was decided of all looks before is gone

    def _bus_is_back(self) -> None:
        self._tell("the bus is back")
        self._fleet.server.set_down(down=False)

    def _api_is_back(self) -> None:
        self._tell("the API server is back")
        self._fleet.cluster.is_down = False

    def _unseen(self, fault: Fault) -> None:
        now = self._loop.time()
        self.blind.append(Span(now, now + fault.seconds + BEGINNING_AGAIN))

    def _mend(self, process: Process) -> None:
        self._tell(f"{process.name} reaches the bus again")
        process.bus.cut_since = None

    def _unmute(self, process: Process) -> None:
        process.bus.mute = False

    def _smooth(self, link: Link) -> None:
        link.rate = 0.0

    def _strikes(self, fault: Fault, who: str) -> None:
        now = self._loop.time()
        felt = self._felt(who) if self._fleet.server.has_work() else BEGINNING_AGAIN
        self.troubles.append(Span(now, now + fault.seconds + felt))

    def _crash(self, fault: Fault, who: str, process: Process) -> None:
        if process.dead:
            return
        self._strikes(fault, who)
        name = f"{who}-{round(self._loop.time() - START)}" if fault.renamed else process.name
        self._tell(f"{process.name} is killed; {name} starts {fault.seconds:g} s later")
        if who == SOURCE:
            self._unseen(fault)
        process.kill()
        self._loop.later(fault.seconds, self._fleet.start, who, name)

    def _pause(self, fault: Fault, who: str, process: Process) -> None:
        if process.dead or process.frozen:
            return
        self._strikes(fault, who)
        if who == SOURCE:
            self._unseen(fault)
        self._tell(f"{process.name} is stopped for {fault.seconds:g} s")
        process.freeze()
        self._loop.later(fault.seconds, self._go_on, process)

    def _go_on(self, process: Process) -> None:
        self._tell(f"{process.name} goes on")
        process.thaw_now()
