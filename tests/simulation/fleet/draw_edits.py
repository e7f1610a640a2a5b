"""From a seed to a scenario in which rule files are edited while something is away."""

from __future__ import annotations

from random import Random

from reactor.audit.spans import Span
from tests.simulation.fleet.draw import CALM, FLEETS, GONE, SHARES, SKEW
from tests.simulation.fleet.scenario import Edit, Fault, Kind, Plan, Scenario

PATIENT, LONGER, SHORTER = 6.0, 20.0, 2.0
"""Tolerations in seconds: at first, of a rule that is made more patient, and of one that is made less."""
RECOVERY = 2.0
KINDS: tuple[Kind, ...] = (*GONE, "api-rough")
MOVED = PATIENT + 6.0
"""Seconds of bad health after which traffic is away."""
APART = 9.0
"""Seconds between two edits of one rule: each process has taken one before the next comes."""


def draw_edits(seed: int) -> Scenario:
    """Give one in which something is away or rough, and four rules are edited: made more patient, made less so, removed
    and put back, and removed and put back between two failures.

    In each third, objects do not say which decision they follow.
    """
    random = Random(f"edits {seed}")
    kind, share = KINDS[seed % len(KINDS)], SHARES[seed // len(KINDS) % len(SHARES)]
    length = round(share * PATIENT + random.uniform(0, 2), 3)
    at = round(CALM + 2 * MOVED + random.uniform(0, 2), 3)
    end = at + length
    first = round(at - random.uniform(0.1, 0.95) * PATIENT, 3)
    late = round(end + LONGER + 25 + random.uniform(0, 3), 3)

    def meanwhile() -> float:
        """A moment within it; where writes fail, one at which windows are over and their acts may not be done."""
        begin = first + PATIENT if kind == "api-rough" else at
        return round(random.uniform(begin, max(end, begin) + 1), 3)

    removed = meanwhile()
    between = round(CALM + MOVED + random.uniform(3, 5), 3)
    spells = (
        (Span(first, late),), (Span(first, late),), (Span(first, late),),
        (Span(CALM, CALM + MOVED), Span(round(between + APART + random.uniform(0, 4), 3), late)),
    )  # fmt: skip
    edits = [
        Edit(meanwhile(), "route-0", LONGER), Edit(meanwhile(), "route-1", SHORTER), Edit(removed, "route-2", None),
        Edit(round(removed + APART + random.uniform(0, 3), 3), "route-2", PATIENT), Edit(between, "route-3", None),
        Edit(round(between + random.uniform(3, APART), 3), "route-3", PATIENT),
    ]  # fmt: skip
    plans = tuple(Plan(f"route-{number}", PATIENT, RECOVERY, one) for number, one in enumerate(spells))
    return Scenario(
        seed, random.choice(FLEETS), plans, (Fault(kind, at, length, rate=1.0),), shuffled=seed % 2 == 1,
        skew=SKEW, stamped=seed % 3 != 0, edits=tuple(sorted(edits, key=lambda edit: edit.at)),
    )  # fmt: skip
