"""Comparison of a rule test's expectations with the events of its simulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from bus.messages import Hold
from rules.rehearsal.rule_tests.model import Absent, Expected, Happening
from rules.rehearsal.simulation import Emitted
from rules.rehearsal.simulator import line

CLOSE = 1e-6
"""Seconds within which two moments are the same: a value's second is a product, an expected one is written out."""


class Difference(NamedTuple):
    """Differences between expected and emitted events."""

    missing: tuple[Expected, ...] = ()
    """Expected, and did not happen (or not in this order); or expected to be absent, and is there."""
    unexpected: tuple[Emitted, ...] = ()
    """Happened, and was not expected."""


def compare(expect: Sequence[Expected], said: Sequence[Emitted], *, may_be: Callable[[Emitted], bool]) -> Difference:
    """Actions are compared one by one; of holds, and of what `may_be`, only those that are expected."""
    holds = [one for one in said if isinstance(one.what, Hold)]
    actions = [one for one in said if not isinstance(one.what, Hold)]
    held_missing, _ = _match([one for one in expect if one.held is not None], holds)
    missing, besides = _match([one for one in expect if one.held is None and one.absent is None], actions)
    unexpected = [one for one in besides if not may_be(one)]
    for one in expect:
        if one.absent is not None and (there := [other for other in said if _is_there(one.absent, other)]):
            missing.append(one)
            unexpected += [other for other in there if other not in unexpected]
    return Difference((*missing, *held_missing), tuple(unexpected))


def _match(expect: Sequence[Expected], said: Sequence[Emitted]) -> tuple[list[Expected], list[Emitted]]:
    """Give what did not come, and what came besides. What happens in one instant may be expected in any order."""
    waiting, besides = list(expect), []
    for _, group in groupby(said, key=lambda one: one.at):
        instant = list(group)
        while waiting and (hit := next((one for one in instant if fits(waiting[0], one)), None)) is not None:
            waiting.pop(0)
            instant.remove(hit)
        besides += instant
    return waiting, besides


def _is_there(absent: Absent, said: Emitted) -> bool:
    last = float("inf") if absent.until is None else absent.until
    return absent.since - CLOSE <= said.at <= last + CLOSE and fits(absent, said)


def fits(expected: Happening, said: Emitted) -> bool:
    """True if the event matches the expectation, in all keys that the expectation gives."""
    actual: dict[str, Any] = {"at": said.at} | said.what.model_dump(by_alias=False) | line(said)
    for key in expected.model_fields_set - {"since", "until"}:
        want, have = getattr(expected, key), actual.get(key)
        if key == "taints" and want is not None:
            want = [taint.model_dump() for taint in want]
        if key == "at" and want is not None and isinstance(have, (int, float)):
            if abs(want - have) > CLOSE:
                return False
        elif want is not None and want != have:
            return False
    return True
