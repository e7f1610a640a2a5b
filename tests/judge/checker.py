"""Judges each promise over one run: what was written, against what a perfect reactor might have written.

The reference is two lines for each backend, by the truth: bad since, and good since. A fault may make a write late, up
to a limit; it never excuses one.

lost        a window was over, everything worked for `grace`, and the object was not where it belongs
doubled     a write that changed nothing
early       what was left was bad, or what was returned to was good, for less than its window
needless    what was left had been good for longer than it takes to see that, or nothing better was to be had
blind       it was moved to what was bad, or at a time at which nothing had looked since the window was over
interleaved a write with an older generation or epoch than the one on the object
last-one    a write that left nothing anywhere
converged   at the end the object is not where a run without faults would have left it

Workloads have a judge of their own: `workload_checker`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf

from reactor.audit.spans import Span, merged
from reactor.audit.verdict import AuditVerdict, Breach
from tests.judge import workload_checker, zone_checker
from tests.judge.object_history import RouteHistory, Run, Write, good
from tests.judge.spells import IN_HANDS, SEEN_WITHIN, common, covered, current, length, over

PROMISES = ("lost", "doubled", "early", "needless", "blind", "interleaved", "last-one", "converged")


def check(run: Run) -> AuditVerdict:
    """Judge everything."""
    verdict = AuditVerdict()
    for route in run.routes:
        musts = list(_musts(route, run))
        verdict.add("lost", list(_lost(route, musts)), tested=len(musts))
        order = list(_interleaved(route, run))
        verdict.add("interleaved", order, tested=max(len(route.writes) - 1, 0))
        verdict.add("converged", list(_converged(route, run)), tested=1)
        wrong = list(_wrong(route, run))
        for promise in ("last-one", "early", "doubled", "needless", "blind"):
            verdict.add(promise, [one for one in wrong if one.promise == promise], tested=len(route.writes))
    for workload in run.workloads:
        workload_checker.check(workload, run, verdict)
    for zone in run.zones:
        zone_checker.judge(zone, run, verdict)
    return verdict


def _wrong(route: RouteHistory, run: Run) -> Iterator[Breach]:
    stood = route.at_first()
    for write in route.writes:
        if write.weights == stood:
            yield Breach("doubled", route.name, write.at, f"weights {dict(write.weights)} were written again")
        elif not any(write.weights.values()):
            yield Breach("last-one", route.name, write.at, "all weights are zero")
        else:
            yield from _unfounded(route, run, stood, write)
        stood = write.weights


def _unfounded(route: RouteHistory, run: Run, stood: Mapping[str, int], write: Write) -> Iterator[Breach]:
    """Give the breach, if at no time, as late as could be known, all of the write was right."""
    left = [name for name in stood if stood[name] and not write.weights.get(name)]
    gained = [name for name, weight in write.weights.items() if weight and not stood.get(name)]
    recent = Span(write.at - write.under_way - SEEN_WITHIN - route.period, write.at + run.slack)
    moments = [recent]
    for name in left:
        moments = common(moments, _leaving(route, run, name, gained))
        if not moments:
            yield _unasked(route, write, name, gained)
            return
    for name in gained:
        before, moments = moments, common(moments, good(_seen(route, name)))
        if not moments:
            never = not common([recent], good(_seen(route, name)))
            what = f"moved to {name}, which was bad" if never else f"at no time was {name} good and the other bad"
            yield Breach("blind" if never else "needless", route.name, write.at, f"{what} (of {len(before)})")
            return
    yield from _unseen(route, run, write, left, gained)


def _leaving(route: RouteHistory, run: Run, name: str, gained: Sequence[str]) -> list[Span]:
    """Give when this backend might be left: it has been bad, or the primary that gets everything good, long enough."""
    bad = list(_held_bad(route, name, route.toleration - run.slack - route.lag))
    if name != route.primary and route.primary in gained:
        bad += over(good(_seen(route, route.primary)), max(route.recovery - run.slack - route.lag, 0.0))
    return bad


def _unasked(route: RouteHistory, write: Write, name: str, gained: Sequence[str]) -> Breach:
    home = name != route.primary and route.primary in gained
    if home:
        bad = current(route.outages, write.at)
        if bad is not None:
            return Breach("blind", route.name, write.at, f"back to {route.primary}, bad since {bad.begin:.3f}")
        since = max((outage.end for outage in route.outages if outage.end <= write.at), default=-inf)
        what = f"back after {write.at - since:.3f} s of {route.recovery:g} s"
        return Breach("early", route.name, write.at, what)
    bad = current(_seen(route, name), write.at)
    if bad is not None:
        what = f"{name} was left after {write.at - bad.begin:.3f} s of {route.toleration:g} s"
        return Breach("early", route.name, write.at, what)
    ended = [outage for outage in route.outages_of(name) if outage.end <= write.at]
    since_text = f"good for {write.at - ended[-1].end:.3f} s, after {length(ended[-1])}" if ended else "always good"
    return Breach("needless", route.name, write.at, f"{name} was left, {since_text} of {route.toleration:g} s")


def _unseen(
    route: RouteHistory, run: Run, write: Write, left: Sequence[str], gained: Sequence[str]
) -> Iterator[Breach]:
    """Give the breach, if nothing looked from the end of the window to the write."""
    for name in left if route.dark else ():
        spells = [one for one in _leaving(route, run, name, gained) if one.begin <= write.at]
        for spell in spells[-1:]:
            asked = Span(spell.begin, write.at + run.slack)
            if covered(asked, route.blind):
                yield Breach("blind", route.name, write.at, f"{name} was left, and nothing had looked since the window")
                return


def _seen(route: RouteHistory, name: str) -> list[Span]:
    """Give when a backend was bad, as a source can see it: breaks shorter than its period are none."""
    return merged(route.outages_of(name), gap=route.period)


def _held_bad(route: RouteHistory, name: str, window: float) -> Iterator[Span]:
    """Give when a backend was bad for its window, or the last word of a source that cannot be asked still held.

    That word makes an outage longer only where the source was cut off as the backend recovered.
    """
    for one in _seen(route, name):
        held = Span(one.begin, one.end + route.valid)
        cut_off = any(gap.begin <= one.end < gap.end for gap in route.cut_off)
        yield from (Span(rest.begin, held.end) for rest in over([held if cut_off else one], window))


Must = tuple[Span, float, frozenset[str], str]
"""A stretch that must have led to an action, by when, what must have nothing from then on, and where it belongs."""


def _musts(route: RouteHistory, run: Run) -> Iterator[Must]:
    for name in (route.primary, *route.others):
        for spell in route.outages_of(name):
            due = _due(route, run, spell, route.toleration)
            if due is not None and _refuge(route, name, Span(spell.begin, due)):
                yield spell, due, frozenset((name,)), f"away from {name}"
    for spell in route.recoveries():
        due = _due(route, run, spell, route.recovery)
        if due is not None:
            yield spell, due, frozenset(route.others), "home"


def _due(route: RouteHistory, run: Run, spell: Span, window: float) -> float | None:
    due = run.due_for(route, spell, window)
    if spell.end == inf:  # what still calls for its move when looking ends was waited for
        return min(due, run.end)
    return due if due < spell.end and due <= run.end else None


def _refuge(route: RouteHistory, name: str, span: Span) -> bool:
    """True if another backend was good all the time."""
    others = [one for one in (route.primary, *route.others) if one != name]
    return any(not any(outage.meets(span) for outage in route.outages_of(one)) for one in others)


def _lost(route: RouteHistory, musts: Sequence[Must]) -> Iterator[Breach]:
    for spell, due, empty, where in musts:
        weights = route.weights_at(due)
        if any(weights[name] for name in empty):
            yield Breach("lost", route.name, due, f"it is not {where}, called for since {spell.begin:.3f}")


def lateness(run: Run) -> float:
    """Give the longest time, in seconds, from a window's end, or from a later end of a trouble, to its action."""
    late = [late for route in run.routes for late in _late(route, run)]
    late += [late for workload in run.workloads for late in workload_checker.lateness(workload, run)]
    return max(late, default=0.0)


def _late(route: RouteHistory, run: Run) -> Iterator[float]:
    for spell, _, empty, where in _musts(route, run):
        window = route.recovery if where == "home" else route.toleration
        ready = spell.begin + window
        done = next(
            (one.at for one in route.writes if one.at >= ready and not any(one.weights[x] for x in empty)), None
        )
        if done is None or any(route.weights_at(ready)[name] for name in empty) is False:
            continue
        ends = [gap.end for gap in (*run.troubles, *route.blind) if spell.begin < gap.end <= done]
        yield done - max([ready, *ends])


def _interleaved(route: RouteHistory, run: Run) -> Iterator[Breach]:
    last: Write | None = None
    for write in route.writes:
        if last is not None:
            # What was in flight when the store was wiped may still be written with the old epoch.
            wiped = any(last.at - IN_HANDS <= wipe <= write.at for wipe in run.wipes)
            if write.generation <= last.generation and (route.stamped or not wiped):
                what = f"generation {write.generation} after {last.generation}"
                yield Breach("interleaved", route.name, write.at, what)
            elif write.epoch < last.epoch and not wiped:
                yield Breach("interleaved", route.name, write.at, f"epoch {write.epoch} after {last.epoch}")
        last = write


def _converged(route: RouteHistory, run: Run) -> Iterator[Breach]:
    bad = bool(route.outages) and route.outages[-1].end == inf
    if bad and not _refuge(route, route.primary, Span(route.outages[-1].begin, inf)):
        return  # it stays where it was, wherever that is
    if not bad and not route.returns:
        return
    if route.is_away(run.end) is not bad:
        where = "away" if bad else "home"
        yield Breach("converged", route.name, run.end, f"it ended elsewhere than {where}")
