"""Ports for servers that have to know each other's before they start."""

from __future__ import annotations

import random
import socket
from contextlib import suppress

PORTS = range(20_000, 30_000)
"""Below the range from which Linux takes ports for outgoing connections: a port found free here stays free."""


def free_port() -> int:
    """Give one that nobody listens on."""
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
