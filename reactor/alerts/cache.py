"""The alert states that are in the bucket, as this process last read them, and which opinion each one feeds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, KeysView
from dataclasses import dataclass

from pydantic import ValidationError

from bus.errors import Malformed
from bus.port import KeyValueEntry
from bus.topology import ALERTS
from reactor.alerts.states import AlertOpinion, AlertState
from reactor.runtime.quarantine import unreadable


@dataclass(frozen=True, slots=True)
class CachedState:
    """A state as it is stored in the bucket."""

    state: AlertState | None
    """State of the alert; None: there is none, or it cannot be read."""
    revision: int


NOTHING = CachedState(None, 0)


class AlertCache:
    """States by key and by opinion. Never longer than the bucket, whose size is limited."""

    def __init__(self) -> None:
        self._held: dict[str, CachedState] = {}
        self._by_opinion: defaultdict[AlertOpinion, set[str]] = defaultdict(set)
        self._targets: Counter[str] = Counter()
        self._alerts: Counter[str] = Counter()
        self._changed: set[AlertOpinion] = set()

    def __iter__(self) -> Iterator[AlertState]:
        return iter([held.state for held in self._held.values() if held.state])

    def items(self) -> list[tuple[str, AlertState]]:
        """All states, each with its key."""
        return [(key, held.state) for key, held in self._held.items() if held.state]

    def keys(self) -> KeysView[str]:
        """All keys, those included that hold nothing readable."""
        return self._held.keys()

    def held(self, key: str) -> CachedState:
        """The state at a key."""
        return self._held.get(key, NOTHING)

    def opinions(self) -> list[AlertOpinion]:
        """All opinions that an alert feeds."""
        return list(self._by_opinion)

    def targets_of(self, source: str) -> int:
        """Number of targets of a source, those of each signal counted by themselves."""
        return self._targets[source]

    def alerts_of(self, source: str) -> int:
        """Number of alerts of a source, those of each signal counted by themselves."""
        return self._alerts[source]

    def has(self, key: str) -> bool:
        """True if there is a readable alert at this key."""
        return self.held(key).state is not None

    def knows(self, opinion: AlertOpinion) -> bool:
        """True if an alert feeds this opinion."""
        return opinion in self._by_opinion

    def of(self, opinion: AlertOpinion) -> list[AlertState]:
        """All alerts that feed an opinion."""
        held = (self._held[key].state for key in self._by_opinion.get(opinion, ()))
        return [state for state in held if state]

    def take_changed(self) -> set[AlertOpinion]:
        """Give the opinions whose alerts have changed since this was last asked."""
        changed, self._changed = self._changed, set()
        return changed

    def apply(self, entry: KeyValueEntry) -> None:
        """Take in what the bucket says. Older than what we hold: our own write that comes back, or one that is late."""
        if entry.revision <= self.held(entry.key).revision:
            return
        try:
            state = AlertState.model_validate_json(entry.value)
        except ValidationError as error:
            unreadable(
                ALERTS.name, entry.key, Malformed(error.errors(include_url=False, include_input=False)[0]["msg"])
            )
            state = None
        self.keep(entry.key, CachedState(state, entry.revision))

    def keep(self, key: str, held: CachedState) -> None:
        """Hold this from now on."""
        self._unlist(key)
        self._held[key] = held
        if held.state:
            if held.state.opinion not in self._by_opinion:
                self._targets[held.state.source] += 1
            self._alerts[held.state.source] += 1
            self._by_opinion[held.state.opinion].add(key)
            self._changed.add(held.state.opinion)

    def forget(self, key: str) -> None:
        """Remove the alert at this key."""
        self._unlist(key)
        self._held.pop(key, None)

    def _unlist(self, key: str) -> None:
        old = self.held(key).state
        if old is None:
            return
        self._changed.add(old.opinion)
        self._alerts[old.source] -= 1
        keys = self._by_opinion[old.opinion]
        keys.discard(key)
        if not keys:
            del self._by_opinion[old.opinion]
            self._targets[old.source] -= 1
