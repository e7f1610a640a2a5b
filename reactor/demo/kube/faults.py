"""Faults between a client and its API server, on order.

A fault is an effect, the calls it befalls, and how many of them. `cluster.faults.add(...)` gives a handle that takes it
away again:

handle = east.faults.add(Fault(Answer(429, retry_after=1), verb="patch", resource="trafficsplits", count=3))
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from reactor.demo.kube.call import WRITES, ApiRequest


@dataclass(frozen=True, slots=True)
class StatusFault:
    """Refuse with this status; nothing is carried out."""

    status: int
    retry_after: int | None = None


@dataclass(frozen=True, slots=True)
class Html:
    """Answer with a proxy's HTML page instead of JSON; nothing is carried out."""

    status: int = 502


@dataclass(frozen=True, slots=True)
class Forbid:
    """Refuse with the 403 of missing RBAC permissions."""


@dataclass(frozen=True, slots=True)
class Hang:
    """Never answer; the call is not carried out."""


@dataclass(frozen=True, slots=True)
class Reset:
    """Reset the connection; nothing is carried out."""


@dataclass(frozen=True, slots=True)
class Delay:
    """Take this long. A write is carried out after the delay even if its client has left by then.

    `answered_late`: the write is carried out at once, and only the answer is late.
    """

    seconds: float
    answered_late: bool = False


@dataclass(frozen=True, slots=True)
class LoseAnswer:
    """Carry the request out, then reset the connection: the client cannot know what became of it."""


@dataclass(frozen=True, slots=True)
class Stale:
    """Answer get and list from the past, as a lagging replica does."""

    resource_version: int


@dataclass(frozen=True, slots=True)
class Empty:
    """Answer a list with no items, as an API server does whose store is not there yet, or without some of them."""

    every: int = 1
    """Each how many-th object is left out; 1: all of them."""


@dataclass(frozen=True, slots=True)
class EndWatch:
    """End the watch: at once with an empty 200 when it begins."""


@dataclass(frozen=True, slots=True)
class CutWatch:
    """Reset the watch's connection."""


@dataclass(frozen=True, slots=True)
class FailWatch:
    """Send an ERROR event in the stream, then end it; 410 tells the client to list again."""

    code: int = 410


@dataclass(frozen=True, slots=True)
class TruncateWatch:
    """End the watch in the middle of a line of JSON."""


WatchEffect = EndWatch | CutWatch | FailWatch | TruncateWatch
FaultEffect = StatusFault | Html | Forbid | Hang | Reset | Delay | LoseAnswer | Stale | Empty | WatchEffect


@dataclass(frozen=True, slots=True)
class Fault:
    """An effect and the calls it befalls; what is left empty matches everything."""

    effect: FaultEffect
    verb: str = ""
    """A verb of RBAC (get, list, watch, create, ...), or `read` or `write` for all of that sort."""
    resource: str = ""
    """`pods`, `pods/eviction`, `trafficsplits` or `trafficsplits.split.smi-spec.io`."""
    namespace: str = ""
    name: str = ""
    count: int | None = None
    """Number of calls that it affects; None: until it is removed."""

    def befalls(self, call: ApiRequest | None) -> bool:
        """Tell whether this call is meant; None: discovery, version and health."""
        if call is None:
            plain = not (self.resource or self.namespace or self.name) and self.verb in ("", "get", "read")
            return plain and not isinstance(self.effect, Stale | Empty | Forbid | WatchEffect)
        if isinstance(self.effect, WatchEffect) and call.verb != "watch":
            return False
        if isinstance(self.effect, Empty) and call.verb != "list":
            return False
        if isinstance(self.effect, Stale) and call.verb not in ("get", "list"):
            return False
        sort = "write" if call.verb in WRITES else "read"
        below = f"/{call.subresource}" if call.subresource else ""
        resources = ("", call.resource.plural + below, call.resource.qualified + below)
        return (
            self.verb in ("", call.verb, sort)
            and self.resource in resources
            and self.namespace in ("", call.namespace)
            and self.name in ("", call.name)
        )


@dataclass(eq=False, slots=True)
class Handle:
    """A fault in force."""

    fault: Fault
    _faults: Faults
    hits: int = 0
    """Number of calls that it has affected."""

    def remove(self) -> None:
        """End the fault; ending it twice is no mistake."""
        self._faults.drop(self)


@dataclass(slots=True)
class Faults:
    """The faults of one cluster, oldest first."""

    _handles: list[Handle] = field(default_factory=list)

    def add(self, fault: Fault) -> Handle:
        handle = Handle(fault, self)
        self._handles.append(handle)
        return handle

    def drop(self, handle: Handle) -> None:
        if handle in self._handles:
            self._handles.remove(handle)

    def clear(self) -> None:
        """End all faults."""
        self._handles.clear()

    def forbids(self, call: ApiRequest) -> bool:
        """Tell whether this call would be forbidden, without its counting as one."""
        return any(isinstance(one.fault.effect, Forbid) and one.fault.befalls(call) for one in self._handles)

    def meet(self, call: ApiRequest | None) -> list[FaultEffect]:
        """Give what befalls this call: delays, staleness, emptiness, and at most one effect that decides its answer."""
        return list(self._meet(call))

    def _meet(self, call: ApiRequest | None) -> Iterator[FaultEffect]:
        decided = False
        for handle in tuple(self._handles):
            effect = handle.fault.effect
            decides = not isinstance(effect, Delay | Stale | Empty)
            if not handle.fault.befalls(call) or (decides and decided):
                continue
            decided = decided or decides
            handle.hits += 1
            if handle.fault.count is not None and handle.hits >= handle.fault.count:
                handle.remove()
            yield effect
