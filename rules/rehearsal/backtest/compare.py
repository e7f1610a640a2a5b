"""The difference between what two versions of the rules would have done with the same past."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rules.rehearsal.backtest.rule_story import Act, Played, effect

MOVED_SECONDS_MAX = 3600.0
"""Two actions with the same effect this close to each other are one that moved; further apart, they are two."""
CLOSE = 1e-6


@dataclass(frozen=True, slots=True)
class Pair:
    """One action of both versions, or of one of them."""

    a: Act | None
    b: Act | None

    @property
    def at(self) -> float:
        """Its place in the timeline: the earlier of the two."""
        return min(act.at for act in (self.a, self.b) if act is not None)

    @property
    def moved_seconds(self) -> float | None:
        """Seconds by which B acts later than A; negative: earlier. None: only one of them does."""
        return None if self.a is None or self.b is None else self.b.at - self.a.at

    @property
    def same(self) -> bool:
        """True if both act at the same moment, but for rounding (`CLOSE`)."""
        return self.moved_seconds is not None and abs(self.moved_seconds) <= CLOSE


def compare(a: Played, b: Played) -> list[Pair]:
    """Give all actions of both, in order of time, those that belong together as one."""
    ours, theirs = _by_effect(a), _by_effect(b)
    pairs = [pair for key in sorted(ours.keys() | theirs.keys()) for pair in _paired(ours[key], theirs[key])]
    return sorted(pairs, key=lambda pair: (pair.at, _id(pair)))


def _id(pair: Pair) -> str:
    return "".join(act.action.id for act in (pair.a, pair.b) if act is not None)


def _by_effect(played: Played) -> defaultdict[tuple[str, str, str, str], list[Act]]:
    out: defaultdict[tuple[str, str, str, str], list[Act]] = defaultdict(list)
    for story in played.stories.values():
        for act in story.acts:
            out[effect(act.action)].append(act)
    return out


def _paired(ours: Iterable[Act], theirs: Iterable[Act]) -> Iterator[Pair]:
    """Walk through both in time. An action waits for its partner only while none is nearer to that one."""
    a, b = list(ours), list(theirs)
    i = j = 0
    while i < len(a) and j < len(b):
        apart = abs(b[j].at - a[i].at)
        nearer_a = i + 1 < len(a) and abs(b[j].at - a[i + 1].at) < apart
        nearer_b = j + 1 < len(b) and abs(b[j + 1].at - a[i].at) < apart
        if apart <= MOVED_SECONDS_MAX and not nearer_a and not nearer_b:
            yield Pair(a[i], b[j])
            i, j = i + 1, j + 1
        elif a[i].at <= b[j].at:
            yield Pair(a[i], None)
            i += 1
        else:
            yield Pair(None, b[j])
            j += 1
    yield from (Pair(act, None) for act in a[i:])
    yield from (Pair(None, act) for act in b[j:])
