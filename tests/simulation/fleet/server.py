"""The one bus of a simulated fleet, and what an observer at its side writes down."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from bus import subjects
from bus.port import Outgoing
from bus.testing.memory import MemoryBus
from bus.testing.memory_parts import Log
from bus.topology import ACTIONS, EXECUTORS, FACTS, GROUPS, STREAMS, Stream
from rules.engine.group_codec import load_group
from tests.simulation.fleet.clock import seconds


class Listener(Protocol):
    """A process that answers requests, as far as its server can tell."""

    def listens(self) -> bool | None:
        """True: it answers. None: it does not answer now. False: its connection is gone."""
        ...


Reply = Callable[[bytes | None], None]
Receive = Callable[[bytes, Reply | None], None]
"""Takes a core message to a subscriber, with the way back for its answer where one is wanted."""


@dataclass(frozen=True, slots=True)
class Heard:
    """An observation that the bus has taken."""

    at: float
    """Time at which it was stored."""
    seen: float
    """Time at which it was observed, by its source's clock."""
    target: str
    status: str
    since: float
    """From when on each look of its source has found it so."""


@dataclass(frozen=True, slots=True)
class Asked:
    """An action that the bus has taken."""

    at: float
    id: str
    epoch: int
    stands: int
    """The epoch of the partition's owner at this moment."""
    owed: bool
    """True if a stored group had decided it by then."""


@dataclass(slots=True)
class Notes:
    """Notes of the observer."""

    heard: list[Heard] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)


def _since(data: dict[str, Any], seen: float) -> float:
    return seen if data["since"] is None else seconds(datetime.fromisoformat(data["since"]))


class Server(MemoryBus):
    """The bus in memory, with an observer."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        super().__init__(now)
        self.notes = Notes()
        self.listeners: dict[str, list[Listener]] = {}
        self.subscribers: dict[str, list[Receive]] = {}
        self.wakers: list[Callable[[], None]] = []
        """Called when the server is back with an empty store."""
        self._lost = False

    async def publish(self, message: Outgoing) -> int:
        """Store one message, and write down what it says if it is new."""
        before = self._logs[FACTS.name].sequence, self._logs[ACTIONS.name].sequence
        sequence = await super().publish(message)
        if before != (self._logs[FACTS.name].sequence, self._logs[ACTIONS.name].sequence):
            self._note(message)
        return sequence

    def log(self, stream: Stream) -> Log:
        """All that a stream holds."""
        return self._logs[stream.name]

    def set_down(self, *, down: bool) -> None:
        """Go away, or come back and tell all waiting readers."""
        self.down = down
        for log in self._logs.values():
            log.wake()
        if not down and self._lost:
            self._lost = False
            for wake in self.wakers:
                wake()

    def lose_all(self) -> None:
        """Lose all that is stored, while it is away."""
        self.wipe(*STREAMS)
        for store in self._stores.values():
            store.wipe()
        self._lost = True

    def has_work(self) -> bool:
        """True if any action waits or is in flight."""
        return bool(self._logs[ACTIONS.name].under(EXECUTORS.filter))

    def listening(self, subject: str) -> bool | None:
        """Answer that a request to this subject would get: True, False, or None: not known."""
        answers = [listener.listens() for listener in self.listeners.get(subject, ())]
        return True if True in answers else None if None in answers else False

    async def send(self, subject: str, body: bytes, reply: Reply | None = None) -> None:
        """Hand a core message to all subscribers. One without subscribers is answered None at once."""
        if self.down:
            return
        subscribers = [*self.subscribers.get(subject, ())]
        for receive in subscribers:
            receive(body, reply)
        if not subscribers and reply is not None:
            reply(None)

    def _note(self, message: Outgoing) -> None:
        event = json.loads(message.body)
        data, now = event["data"], seconds(self._now())
        if ".observation." in message.subject:
            seen = seconds(datetime.fromisoformat(data["observedAt"]))
            self.notes.heard.append(Heard(now, seen, data["target"], data["status"], _since(data, seen)))
        elif ".actions." in message.subject:
            partition = int(message.subject.split(".")[2])
            stands = self._logs[ACTIONS.name].newest.get(subjects.owner(partition), 0)
            owed = self._generation(partition, data) >= data["generation"]
            self.notes.asked.append(Asked(now, data["id"], data["epoch"], stands, owed))

    def _generation(self, partition: int, data: dict[str, Any]) -> int:
        # A ZoneStep names its zone, `<cluster>/<zone>`; one group has all zones of the cluster.
        owner = data["cluster"] if "zone" in data else data["object"]
        key = subjects.key(str(partition), "group", f"{data['rule']}/{owner}")
        entry = self._stores[GROUPS.name]._standing.get(key)
        return load_group(entry.value).generation if entry is not None else 0
