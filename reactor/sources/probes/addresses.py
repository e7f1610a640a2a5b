"""Addresses that probes may connect to: never to what only answers because it trusts this machine.

Checked is the address that is really connected to, after resolution: names, redirects and the odd spellings of
addresses (`0xa9fea9fe`, `2852039166`) all come down to it. Loopback is allowed: sidecars and the demo live there.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
from typing import Any

import aiohttp
from aiohappyeyeballs import start_connection
from aiohttp.abc import AbstractResolver, ResolveResult

from reactor.sources.probes.lookups import AddrInfo, look_up

_METADATA = tuple(
    ipaddress.ip_network(text)
    # Amazon over IPv6 and Alibaba lie in private ranges that ipaddress does not single out (measured).
    for text in ("169.254.0.0/16", "fd00:ec2::254/128", "100.100.100.200/32", "0.0.0.0/8", "255.255.255.255/32")
)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
NEXT_SECONDS = 0.25
"""Seconds after which the next address is tried beside one that does not answer."""


class AddressRefused(OSError):
    """The address is one that no probe may connect to."""


def check(address: str) -> str:
    """Give the address back. Raises Refused for link-local, metadata, multicast and unspecified addresses."""
    bare = ipaddress.ip_address(address.partition("%")[0])
    inner = _inside(bare)
    if inner.is_link_local or inner.is_multicast or inner.is_unspecified or any(inner in net for net in _METADATA):
        raise AddressRefused(
            errno.EACCES,
            f"{address} is a link-local, metadata, multicast or unspecified address: no probe connects there",
        )
    return address


def _inside(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Give the IPv4 address that is mapped into an IPv6 one, or the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


async def resolve(host: str, port: int, family: int = socket.AF_UNSPEC) -> list[AddrInfo]:
    """Give the checked addresses of a host, at least one. Raises OSError, Refused among it."""

    try:
        found = await look_up(host, port, family)
    except UnicodeError as error:  # a label of the name is empty or too long
        raise OSError(f"{host} is no host name: {error}") from error
    if not found:
        raise OSError(f"{host} has no address")
    for info in found:
        check(str(info[4][0]))
    return found


def open_socket(info: AddrInfo) -> socket.socket:
    """Make the socket for one address: aiohttp's last step before it connects, past resolver, literal and redirect."""
    family, kind, protocol, _, address = info
    check(str(address[0]))
    return socket.socket(family=family, type=kind, proto=protocol)


async def first_open(host: str, port: int) -> str:
    """Give the address that takes a connection first: one that does not answer holds up no other (RFC 8305).

    Raises OSError where none does, Refused among it.
    """
    infos: list[Any] = [*await resolve(host, port)]
    connected = await start_connection(
        infos, happy_eyeballs_delay=NEXT_SECONDS, interleave=1, socket_factory=open_socket
    )  # fmt: skip
    # Closed without waiting for the other side's goodbye, which would be part of the try.
    address = str(connected.getpeername()[0])
    connected.close()
    return address


class Resolver(AbstractResolver):
    """aiohttp's name resolution, in our own threads."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host, host=str(info[4][0]), port=port, family=info[0], proto=info[2],
                flags=socket.AI_NUMERICHOST,
            )
            for info in await resolve(host, port, family)
        ]  # fmt: skip

    async def close(self) -> None:
        """Do nothing: no resource is held."""


def probing_session() -> aiohttp.ClientSession:
    """Give an HTTP client for probes: each try a new connection, to a checked address, without cookies."""
    connector = aiohttp.TCPConnector(
        resolver=Resolver(), socket_factory=open_socket, force_close=True, use_dns_cache=False, limit=0
    )
    return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
