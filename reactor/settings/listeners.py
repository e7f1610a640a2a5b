"""Common settings of all HTTP servers: an address, and limits on connections."""

from __future__ import annotations

import ipaddress
from typing import Annotated

from pydantic import Field

from reactor.settings.part import SettingsPart

PORT_MAX = 65_535


class Listener(SettingsPart):
    """An HTTP server, with the limits on its connections."""

    max_connections: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """Most connections. At this number a new one closes the oldest that has sent no whole request, else the longest
    idle one."""
    max_connections_per_peer: Annotated[int, Field(ge=1, le=100_000)] = 250
    """The same for those of one address. A proxy in front of us is one address."""


def parted(listen: str) -> tuple[str, int]:
    """Give the host and the port. Raises ValueError where it is no host:port."""
    host, _, port = listen.rpartition(":")
    if not host or not (port.isascii() and port.isdecimal()) or int(port) > PORT_MAX:
        msg = f"listen: {listen!r} is not host:port"
        raise ValueError(msg)
    return host.strip("[]"), int(port)


def is_loopback(host: str) -> bool:
    """True if only this machine reaches it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
