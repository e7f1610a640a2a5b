"""Weights that are asked of a load balancer, and one that crashes or that has another writer too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from bus.messages import LoadBalancerKind, Mode, RouteRef, SetWeights
from reactor.clients.balancers.balancer_port import LoadBalancer, WeightChange, Weights

AT = datetime(2026, 7, 1, tzinfo=UTC)


class Crash(BaseException):
    """The process ends here: nothing of ours catches it."""


def set_weights(weights: Mapping[str, int], kind: LoadBalancerKind = "HAProxy", *, generation: int = 1) -> SetWeights:
    """Action of a rule."""
    route = RouteRef(kind=kind, name="edge")
    return SetWeights(
        id=f"web/{route.object}/{generation}", rule="web", object=route.object, generation=generation,
        mode=Mode.ENFORCE, because="PrimaryUnhealthy", decided_at=AT, route=route, weights=dict(weights),
    )  # fmt: skip


async def _nothing() -> None:
    """Do nothing."""


@dataclass
class Meddled:
    """A load balancer beside which something happens; implements LoadBalancer."""

    own: LoadBalancer
    crash_before: int | None = None
    """The write, from 0, before which the process ends."""
    crash_after: int | None = None
    after_write: Callable[[], Awaitable[None]] = _nothing
    """Called just after each write of ours, to change something else."""
    before_write: Callable[[], Awaitable[None]] = _nothing
    writes: list[Mapping[str, int]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.own.name

    @property
    def every_seconds(self) -> float:
        return self.own.every_seconds

    @property
    def timeout_seconds(self) -> float:
        return self.own.timeout_seconds

    async def read(self) -> Weights:
        return await self.own.read()

    async def write(self, seen: Weights, change: WeightChange) -> Weights | None:
        number = len(self.writes)
        self.writes.append(dict(change.weights))
        if number == self.crash_before:
            raise Crash
        await self.before_write()
        answer = await self.own.write(seen, change)
        await self.after_write()
        if number == self.crash_after:
            raise Crash
        return answer

    async def close(self) -> None:
        await self.own.close()


def once(call: Callable[[], Awaitable[object]]) -> Callable[[], Awaitable[None]]:
    """Do it the first time only."""
    left = [call]

    async def done() -> None:
        if left:
            await left.pop()()

    return done
