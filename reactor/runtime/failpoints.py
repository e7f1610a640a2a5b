"""Named points at which a test lets this process be killed, stopped or held up. Off unless the environment asks for it.

    REACTOR_FAILPOINT=decider.state-stored              kill -9 when it is reached for the first time
    REACTOR_FAILPOINT=executor.after-write:3=stop       SIGSTOP at the third time; the test sends SIGCONT
    REACTOR_FAILPOINT=executor.intent-stored:2=sleep 5  block the whole process for five seconds at the second time

A test facility: where a crash hurts most is between two steps, and no test hits that moment by waiting. Each name is a
moment after which one thing more is done. A point that is not asked for costs one comparison.
"""

from __future__ import annotations

import os
import re
import signal
import time
from dataclasses import dataclass

ENVIRONMENT = "REACTOR_FAILPOINT"
NAMES = (
    "decider.epoch-taken", "decider.loaded", "decider.fact-read", "decider.decided", "decider.state-stored",
    "decider.actions-published", "decider.audit-published", "decider.groups-stored", "decider.checkpointed",
    "executor.taken", "executor.intent-stored", "executor.before-write", "executor.after-write",
    "executor.done-stored", "executor.outcome-published", "executor.before-ack",
    "router.taken", "router.before-ack",
)  # fmt: skip
_ORDER = re.compile(r"(?P<name>[a-z.-]+)(:(?P<hit>[1-9]\d*))?(=(?P<effect>kill|stop|sleep (?P<seconds>\d+(\.\d+)?)))?")


@dataclass(slots=True)
class Failpoint:
    """One order: what happens where, and when."""

    name: str
    effect: str
    """kill, stop or sleep."""
    seconds: float
    """sleep only."""
    left: int
    """Number of times that the point is still to be reached before it happens."""

    @classmethod
    def parse(cls, text: str) -> Failpoint:
        """Raises ValueError where the order cannot be understood: a fault that never happens proves nothing."""
        order = _ORDER.fullmatch(text)
        if order is None or order["name"] not in NAMES:
            msg = f"{ENVIRONMENT}={text}: not name[:hit][=kill|stop|sleep N]; names are {', '.join(NAMES)}"
            raise ValueError(msg)
        effect = (order["effect"] or "kill").partition(" ")[0]
        return cls(order["name"], effect, float(order["seconds"] or 0), int(order["hit"] or 1))

    def reached(self) -> None:
        """Count, and let it happen once."""
        self.left -= 1
        if self.left:
            return
        if self.effect == "sleep":
            time.sleep(self.seconds)  # blocking is the point: to the others this process is frozen
            return
        os.kill(os.getpid(), signal.SIGKILL if self.effect == "kill" else signal.SIGSTOP)


_ordered = Failpoint.parse(os.environ[ENVIRONMENT]) if os.environ.get(ENVIRONMENT) else None


def reach(name: str) -> None:
    """Say that the process is at this point."""
    if _ordered is not None and _ordered.name == name:
        _ordered.reached()
