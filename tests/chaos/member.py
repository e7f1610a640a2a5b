"""A reactor process as in production, only that it waits less: `python -m tests.chaos.member run --config …`.

A lease of ten seconds makes a pause of five leases last a minute. The protocol's spans of time are made shorter here,
all in the same proportion, so that a run takes seconds; nothing else differs.
"""

from __future__ import annotations

import ctypes
import signal

from bus import topology
from reactor.actions import settle
from reactor.cli.run import run
from reactor.roles import executor, fleet, partition, supervise
from reactor.sources import routes
from rules.engine import observe, owe

PR_SET_PDEATHSIG = 1
SCALE = 0.2
LEASE = fleet.LEASE * SCALE
"""Seconds without a sign of life after which a member counts as gone."""
ROUTES_AGAIN = routes.REFRESH_SECONDS * SCALE
"""Seconds within which every route is told again."""
ACK_WAIT = topology.EXECUTORS.ack_wait * SCALE
"""How long the work of an executor that died waits for another."""
_SPANS = {
    fleet: ("LEASE", "HEARTBEAT"),
    partition: ("LAP",),
    executor: ("EXTEND", "AGAIN"),
    settle: ("SETTLE_SECONDS",),
    supervise: ("PAUSE_MAX",),
    owe: ("RESEND",),
    observe: ("RETRY_FIRST", "RETRY_MAX"),
    routes: ("REFRESH_SECONDS",),
}


def shorten() -> None:
    """Shorten the spans of this process."""
    for module, names in _SPANS.items():
        for name in names:
            setattr(module, name, getattr(module, name) * SCALE)
    for queue in topology.QUEUES:
        object.__setattr__(queue, "ack_wait", queue.ack_wait * SCALE)  # frozen for everybody else


def main() -> None:
    """Be a reactor, and end with the run that started it."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    shorten()
    run.main(standalone_mode=True)


if __name__ == "__main__":
    main()
