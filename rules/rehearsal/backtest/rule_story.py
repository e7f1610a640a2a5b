"""Timeline of each rule in a backtest: a few numbers for each event, however long the range is."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from bus.messages import Action, SetWeights
from rules.core.reasons import Because
from rules.kinds.traffic.failback_policy import FailbackMode
from rules.kinds.traffic.model import TrafficFailover
from rules.rulefile.model import Rule

COLUMNS = 1000
"""Number of columns into which the range is divided where a target's health changed too often: each has its worst."""
CHANGES_MAX = 1000
"""Largest number of changes of a target's health that are kept with exact times, the first ones: they take no more room
in a picture than the columns."""
MARKS_MAX = 100_000
"""Largest number of actions, holds and flaps that are kept one by one. Later ones are only counted."""

UNHEARD, HEALTHY, UNKNOWN, UNHEALTHY = range(4)
"""Values of a column, better before worse."""


_UNASKED = (Because.RETURNING, Because.DRIFT, Because.TRIAL_FAILED)


class Move(StrEnum):
    """Direction of an action."""

    AWAY = "Away"
    """Leaves the healthy state: a failover, or a notification that a target is bad."""
    HOME = "Home"
    """Returns to the healthy state."""
    BETWEEN = "Between"
    """Stays on the same side: other secondaries, a step of a gradual return, another writer's write undone."""


@dataclass(slots=True)
class Act:
    """An action, and what became of its reason."""

    at: float
    """Second, like all times here."""
    action: Action
    why: tuple[str, ...]
    move: Move
    target: str | None = None
    """The target whose bad time led to it; None: no single one."""
    bad_since: float | None = None
    recovered_at: float | None = None
    """Second in which that target was next Healthy; None: not within the range."""

    @property
    def reaction_seconds(self) -> float | None:
        """Seconds for which the target had been bad; None: no single target led to the action."""
        return None if self.bad_since is None else self.at - self.bad_since

    def false(self, within_seconds: float) -> bool:
        """True if it moved away and the target recovered within `within_seconds`: waiting would have been better."""
        return (
            self.move is Move.AWAY and self.recovered_at is not None and self.recovered_at - self.at <= within_seconds
        )


@dataclass(slots=True)
class Wait:
    """A hold: the rule had reason to look, and did nothing."""

    at: float
    object: str
    reason: str
    detail: str
    until: float | None = None


@dataclass(frozen=True, slots=True)
class ToleratedOutage:
    """A bad time that ended before the toleration did: nothing was done, and nothing had to be."""

    at: float
    object: str
    target: str
    seconds: float


@dataclass(slots=True)
class Lane:
    """One target's health as one group saw it."""

    object: str
    target: str
    columns: bytearray = field(default_factory=lambda: bytearray(COLUMNS))
    starts: array[float] = field(default_factory=lambda: array("d"))
    """Seconds in which its health changed; CHANGES_MAX at most."""
    states: bytearray = field(default_factory=bytearray)
    """Health after each change: a value of a column."""
    exact_until: float | None = None
    """From here on only the columns tell; None: nothing was left out."""
    bad_seconds: float = 0.0
    unknown_seconds: float = 0.0

    def note(self, since: float, state: int) -> None:
        """Keep from when on it was so."""
        if self.exact_until is not None or (self.states and self.states[-1] == state):
            return
        if len(self.starts) == CHANGES_MAX:
            self.exact_until = since
            return
        self.starts.append(since)
        self.states.append(state)

    def spans(self, until: float) -> Iterator[tuple[float, float, int]]:
        """Give from, until and what it was then, as exactly as it was observed. `until`: the end of the range."""
        end = until if self.exact_until is None else self.exact_until
        yield from zip(self.starts, [*self.starts[1:], end], self.states, strict=True)


@dataclass(slots=True)
class RuleTimeline:
    """One rule's part."""

    rule: Rule
    blind: Mapping[str, str] = field(default_factory=dict)
    """Signals that know nothing of a backend without traffic, and why: what they say of the time in which the rule
    would have moved it away was read with all the traffic."""
    asks_people: bool = False
    """True if it asks a person to approve before it begins something."""
    acts: list[Act] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    flaps: list[ToleratedOutage] = field(default_factory=list)
    away: list[tuple[str, float, float]] = field(default_factory=list)
    """Object, from, until: failed over, or people told that it is bad."""
    lanes: dict[tuple[str, str], Lane] = field(default_factory=dict)
    """By object and target."""
    left_out: int = 0
    """Number of marks beyond MARKS_MAX, which are not kept."""

    def asks(self, act: Act) -> bool:
        """True if a person would have been asked first: the act begins something, and is no step back to safety."""
        return self.asks_people and act.move is not Move.HOME and act.action.because not in _UNASKED

    @property
    def is_tried(self) -> bool:
        """True if traffic returns by a trial."""
        return isinstance(self.rule, TrafficFailover) and self.rule.failback.mode is FailbackMode.TRIAL

    @property
    def away_seconds(self) -> float:
        """The time in failed-over state, over all objects."""
        return sum(until - since for _, since, until in self.away)

    def room(self) -> bool:
        """True if one more mark can be kept; otherwise counts it in `left_out`."""
        if len(self.acts) + len(self.waits) + len(self.flaps) < MARKS_MAX:
            return True
        self.left_out += 1
        return False


@dataclass(frozen=True, slots=True)
class Played:
    """All of it, for one version of the rules."""

    first: float
    until: float
    stories: dict[str, RuleTimeline]
    """By rule, in the order of the files."""
    observations: int


def effect(action: Action) -> tuple[str, str, str, str]:
    """Effect of an action, without its reason and time: two versions of a rule with equal effects do the same."""
    if isinstance(action, SetWeights):
        what = ",".join(f"{service}={weight}" for service, weight in sorted(action.weights.items()))
    else:
        what = action.because
    return action.rule, action.object, type(action).__name__, what
