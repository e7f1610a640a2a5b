"""A reactor process as in production, only that it waits less: `python -m tests.chaos.member SETTINGS [FAILPOINT]`.

A lease of six seconds makes a pause of five leases last half a minute. The protocol's spans of time are made shorter
here, nearly all in the same proportion, so that a run takes seconds; nothing else differs.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from importlib import import_module
from pathlib import Path

from bus import topology
from reactor.actions import conditional_write
from reactor.cli.run import run
from reactor.clients import reflector
from reactor.decide import reader_state, watermark
from reactor.execute import cancellation, executor
from reactor.fleet import fleet, peers
from reactor.process import reloading
from reactor.runtime import failpoints, standstill, supervise
from reactor.runtime.failpoints import Failpoint
from reactor.sources.kubernetes import route_inventory
from rules.engine import observe
from rules.engine import outbox as owe

PR_SET_PDEATHSIG = 1
SCALE = float(os.environ.get("CHAOS_SCALE", "0.2"))
LEASE = max(peers.LEASE * SCALE, 2.0)
"""Seconds without a sign of life after which a member counts as gone. Less runs out on a busy machine by itself."""
ROUTES_AGAIN = route_inventory.REFRESH_SECONDS * SCALE
"""Seconds within which every route is told again."""
ACK_WAIT = topology.EXECUTORS.ack_wait * SCALE
"""Seconds after which the work of an executor that died is redelivered."""
ORDERS = ".failpoint"
"""The file beside the settings in which a failpoint is ordered from a process that runs already."""
_LATER = (
    "aiohttp",
    "reactor.actions.catalog",
    "reactor.clients.alertmanager_api",
    "reactor.clients.clusters",
    "reactor.clients.prometheus_api",
    "reactor.sources.catalog",
    "reactor.alerts.lifecycle",
    "reactor.webhook.webhook_server",
)
"""Modules that a reactor imports only once it starts."""
_LEASES = {fleet: ("LEASE", "HEARTBEAT"), peers: ("LEASE", "DEAF")}
_SPANS = {
    reader_state: ("LAP",),
    standstill: ("LAP",),
    watermark: ("STUCK_SECONDS",),
    executor: ("EXTEND", "AGAIN", "SOON", "WAITED_MAX", "IN_HANDS"),
    cancellation: ("FRESH",),
    conditional_write: ("SETTLE_SECONDS",),
    supervise: ("PAUSE_MAX",),
    owe: ("RESEND",),
    observe: ("RETRY_FIRST", "RETRY_REFUSED", "RETRY_MAX"),
    route_inventory: ("REFRESH_SECONDS",),
    reflector: ("GRACE_SECONDS",),
    reloading: ("LOOK_SECONDS",),
}


def shorten() -> None:
    """Shorten the spans of this process."""
    for spans, scale in ((_SPANS, SCALE), (_LEASES, LEASE / peers.LEASE)):
        for module, names in spans.items():
            for name in names:
                setattr(module, name, getattr(module, name) * scale)
    for reason in observe.NON_FAILURES:
        observe.NON_FAILURES[reason] *= SCALE
    for queue in topology.QUEUES:
        object.__setattr__(queue, "ack_wait", queue.ack_wait * SCALE)  # frozen as seen by all other processes
        if queue.in_progress is not None:
            object.__setattr__(queue, "in_progress", queue.in_progress * SCALE)


def end_with_parent() -> None:
    """End at once when the process that started this one ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def load_everything() -> None:
    """Import what a reactor imports when it starts."""
    for module in ("reactor.process.app", *_LATER):
        import_module(module)


def arm(order: str) -> None:
    """Set this failpoint; none for an empty order."""
    failpoints._ordered = Failpoint.parse(order) if order else None


def main(config: str, failpoint: str = "") -> None:
    """Be a reactor. SIGUSR1: arm the failpoint that is ordered in the file beside the settings."""
    arm(failpoint)
    orders = Path(config).with_suffix(ORDERS)
    signal.signal(signal.SIGUSR1, lambda *_: arm(orders.read_text("utf-8")))
    shorten()
    run.main(["--config", config])


if __name__ == "__main__":
    end_with_parent()
    main(*sys.argv[1:])
