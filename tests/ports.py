"""Ports for servers that have to know each other's before they start."""

from __future__ import annotations

import random
import socket
from contextlib import suppress

PORTS = range(20_000, 30_000)
"""Below the range from which Linux takes ports for outgoing connections: a port found free here stays free."""


def free_port() -> int:
    """Give one that no process listens on, and that no living test process was given before.

    What is started with a port may listen on it only seconds later, and other test processes look as well: its mark is
    open until this process ends.
    """
    while True:
        port = random.choice(PORTS)
        mark = socket.socket(socket.AF_UNIX)
        with socket.socket() as probe, suppress(OSError):
            mark.bind(f"\0alert-reactor-test-port-{port}")  # a name without a file: it ends with the process
            probe.bind(("127.0.0.1", port))
            mark.detach()
            return port
        mark.close()
