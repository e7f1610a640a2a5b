"""Time for which each signal has called a zone bad: two have to agree for the whole toleration, not one for a blip of
it.

A signal without a recent observation waits, as windows do, and begins again where its source has not seen the zone bad
all the time; one that says Healthy begins again.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from bus.messages import Health
from rules.core.member import Member
from rules.core.timers import NO_TIME, Stopwatch, advanced, runs
from rules.core.values import replace
from rules.kinds.zone.model import ZoneIsolation
from rules.kinds.zone.request import counting, is_bad
from rules.kinds.zone.state import ZoneGroup, ZoneState
from rules.rulefile.model import UnknownAs


def ticked_zone(rule: ZoneIsolation, group: ZoneGroup, state: ZoneState, target: str, at: datetime) -> ZoneState:
    """Let the clocks of one zone's signals know how they are."""
    member = group.members.get(target)
    known = state.bad.get(target, {})
    clocks = _ticked(rule, member, known, at) if member is not None else {}
    if clocks == known:
        return state
    bad = {name: some for name, some in {**state.bad, target: clocks}.items() if some}
    return replace(state, bad=dict(sorted(bad.items())))


def ticked_all(rule: ZoneIsolation, group: ZoneGroup, state: ZoneState, now: datetime) -> ZoneState:
    """Let time pass: signals go silent."""
    for zone in rule.zones:
        state = ticked_zone(rule, group, state, rule.target(zone.name), now)
    return state


def _ticked(rule: ZoneIsolation, member: Member, known: Mapping[str, Stopwatch], at: datetime) -> dict[str, Stopwatch]:
    out = {}
    for name, said in counting(rule.signals, member).items():
        bad = None if said is Health.UNKNOWN and rule.treat_unknown_as is UnknownAs.HOLD else is_bad(rule, said)
        since = member.signals[name].begun if said is not Health.UNKNOWN else at
        clock = known.get(name)
        if bad and clock is not None and runs(clock) and rule.treat_unknown_as is UnknownAs.UNHEALTHY:
            since = clock.seen  # from Unhealthy to Unknown and back is no break
        dated = bool(member.signals[name].source) and said is Health.UNHEALTHY
        if (new := advanced(clock, bad, since, at, NO_TIME, dated=dated)) is not None:
            out[name] = new
    return dict(sorted(out.items()))
