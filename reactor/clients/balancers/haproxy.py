"""HAProxy, through its Runtime API: the weights of the servers of one backend.

HAProxy keeps no version and takes no condition: who writes last wins. It forgets weights when it starts or reloads;
its process and the time of its start say that it has.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping

from reactor.clients.balancers.balancer_port import WeightChange, Weights
from reactor.clients.kubernetes_port import ApiUnavailable, Forbidden, Invalid, NotFound
from reactor.runtime.errors import Retryable, Terminal
from reactor.settings.balancer_settings import HAProxySettings as Settings

CONNECTIONS_MAX = 2
"""Most connections at the same time: HAProxy has 10 for all clients."""
ANSWER_BYTES_MAX = 1 << 20
"""Some 8,000 servers."""
WEIGHT_MAX = 256
_NAME = re.compile(r"[A-Za-z0-9_.:-]+")


class HAProxy:
    """One HAProxy process; implements LoadBalancer."""

    def __init__(self, name: str, settings: Settings) -> None:
        self.name = name
        self._settings = settings
        self._free = asyncio.Semaphore(CONNECTIONS_MAX)

    @property
    def every_seconds(self) -> float:
        return self._settings.every_seconds

    @property
    def timeout_seconds(self) -> float:
        return self._settings.timeout_seconds

    async def read(self) -> Weights:
        answer = await self._ask(["show info", f"show servers state {self._settings.backend}"])
        info, _, state = answer.partition("\n\n")
        return weights_of(self._where, info, state)

    async def write(self, seen: Weights, change: WeightChange) -> None:
        backend = self._settings.backend
        for name, weight in change.weights.items():
            if not _NAME.fullmatch(name) or not 0 <= weight <= WEIGHT_MAX:
                raise Invalid(
                    f"{self._where}: HAProxy takes no weight {weight} of {name!r}: it takes 0 to {WEIGHT_MAX}"
                )
        # First those whose weight grows: at every moment one has a weight above 0.
        rising = sorted(change.weights.items(), key=lambda one: seen.by_name.get(one[0], 0) - one[1])
        changed = [(name, weight) for name, weight in rising if seen.by_name.get(name) != weight]
        answer = await self._ask([f"set weight {backend}/{name} {weight}" for name, weight in changed])
        if said := " ".join(answer.split()):
            raise haproxy_error(self._where, said)

    async def close(self) -> None:
        """Do nothing: no connection is open between two calls."""

    @property
    def _where(self) -> str:
        return f"loadBalancers.{self.name}"

    async def _ask(self, commands: Iterable[str]) -> str:
        """Say all of it on one connection, which HAProxy closes after its answers."""
        try:
            async with asyncio.timeout(self.timeout_seconds), self._free:
                return await self._exchange("; ".join(commands))
        except TimeoutError as error:
            raise ApiUnavailable(f"{self._where}: no answer within {self.timeout_seconds:g} s") from error
        except OSError as error:
            raise ApiUnavailable(f"{self._where}: {error.strerror or error}") from error

    async def _exchange(self, line: str) -> str:
        if self._settings.socket is not None:
            opened = asyncio.open_unix_connection(str(self._settings.socket))
        else:
            host, _, port = str(self._settings.address).rpartition(":")
            opened = asyncio.open_connection(host.strip("[]"), int(port))
        reader, writer = await opened
        try:
            writer.write(f"{line}\n".encode())
            answer = bytearray()
            while chunk := await reader.read(1 << 16):
                answer += chunk
                if len(answer) > ANSWER_BYTES_MAX:
                    raise Invalid(f"{self._where}: its answer has more than {ANSWER_BYTES_MAX} bytes")
            return answer.decode("utf-8", "replace")
        finally:
            writer.close()


def weights_of(where: str, info: str, state: str) -> Weights:
    """Read `show info` and `show servers state`. Pure. Raises NotFound, Forbidden, Invalid, ApiUnavailable."""
    said = dict(line.split(": ", 1) for line in info.splitlines() if ": " in line)
    if "Pid" not in said:
        raise haproxy_error(where, " ".join(info.split()))
    lines = [line.split() for line in state.splitlines() if line.strip()]
    columns = lines[1][1:] if len(lines) > 1 and lines[1][0] == "#" else []
    if not {"srv_name", "srv_uweight", "srv_iweight"} <= {*columns}:
        raise haproxy_error(where, " ".join(state.split()))
    servers = [dict(zip(columns, line, strict=False)) for line in lines[2:]]
    try:
        return Weights(
            _column(servers, "srv_uweight"), life=f"{said['Pid']}@{said.get('Start_time_sec', '')}",
            configured=_column(servers, "srv_iweight"),
        )  # fmt: skip
    except (KeyError, ValueError) as error:
        raise Invalid(f"{where}: show servers state cannot be read: {error!r}") from error


def _column(servers: Iterable[Mapping[str, str]], name: str) -> dict[str, int]:
    return {server["srv_name"]: int(server[name]) for server in servers}


def haproxy_error(where: str, said: str) -> Terminal | Retryable:
    """Give the error for HAProxy's own words. Pure."""
    if not said:
        return ApiUnavailable(f"{where}: HAProxy closed the connection without an answer")
    message = f"{where}: HAProxy says: {said[:300]}"
    if "Can't find backend" in said or "No such" in said:
        return NotFound(message)
    if "Permission denied" in said or "privileges" in said:
        return Forbidden(f"{message}; its stats socket needs `level admin`")
    return Invalid(message)
