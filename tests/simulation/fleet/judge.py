"""Promises that a run broke: by the script and the log of writes, and by the notes of an observer beside the bus.

Beyond the findings of `tests.judge.checker` for every run:

blind        a write for a stretch of bad (or good) health that, by what was stored on the bus when its window was over,
             had already ended: a process acted without having read all that there was
stale-owner  an action was taken by the bus although its partition had a newer owner
unowed       an action was published before the state that owes it was stored
paused       a write that was sent although its rule had been paused for two seconds
mistake      the fleet itself logged an error, or came to a standstill
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf

from reactor.audit.spans import Span
from reactor.audit.verdict import Breach
from tests.judge.checker import check
from tests.judge.object_history import RouteHistory, Run
from tests.simulation.fleet.clusters import cluster_target
from tests.simulation.fleet.judge_answers import judge_answers
from tests.simulation.fleet.judge_edits import is_edited, judge_edits
from tests.simulation.fleet.judge_orders import judge_orders
from tests.simulation.fleet.loop import START
from tests.simulation.fleet.people import PauseSeen
from tests.simulation.fleet.server import Heard, Notes
from tests.simulation.fleet.source import target
from tests.simulation.fleet.workloads import FIRST, copy_target
from tests.simulation.fleet.world import Seen
from tests.simulation.fleet.zones import zone_target

STOPPED = 2.0
"""Seconds after a pause from which no action begins any more."""


@dataclass(frozen=True, slots=True)
class Spell:
    """One stretch of the same health, as it was told."""

    bad: bool
    begin: float
    end: float = inf
    told: float = inf
    """Time at which its end was stored on the bus."""


def judge(seen: Seen) -> list[Breach]:
    """Give every breach, in the order of time."""
    edited = [route for route in seen.run.routes if is_edited(route.name, seen.versions)]
    run = replace(seen.run, routes=tuple(route for route in seen.run.routes if route not in edited))
    found = [breach for route in run.routes for breach in _checked(route, _with_pauses(route, run, seen.pauses), seen)]
    found += _paused(seen)
    for route in edited:
        told = spells(route, seen.notes)
        found += judge_edits(route, seen.run, seen.versions, partial(_blind, run=seen.run, told=told))
    found += _asked(seen.notes)
    found += [Breach("mistake", "", seen.run.end, error) for error in seen.mistakes]
    return sorted(found, key=lambda breach: breach.at)


def _checked(route: RouteHistory, run: Run, seen: Seen) -> Iterable[Breach]:
    blind = _blind(route, run, spells(route, seen.notes))
    if seen.expires is not None:
        return [*judge_answers(route, run, seen.answers, seen.expires, seen.notes.asked), *blind]
    found = [*check(run).breaches, *blind]
    is_ordered = any(one.order.name == route.name for one in seen.orders)
    return judge_orders(route, run, seen.orders, found) if is_ordered else found


def spells(route: RouteHistory, notes: Notes) -> list[Spell]:
    """Give the stretches of the primary's health, by the moments at which it was observed."""
    name = route.primary
    targets = (target(name), zone_target(name), cluster_target(name), copy_target(FIRST, name))
    told = sorted((heard for heard in notes.heard if heard.target in targets), key=lambda one: one.seen)
    out: list[Spell] = []
    for heard in told:
        bad = heard.status == "Unhealthy"
        if not out or out[-1].bad is not bad:
            out = [*out[:-1], *(_ended(spell, heard) for spell in out[-1:]), Spell(bad, heard.since)]
    return out


def _ended(spell: Spell, heard: Heard) -> Spell:
    return Spell(spell.bad, spell.begin, heard.since, heard.at)


def _blind(route: RouteHistory, run: Run, told: list[Spell]) -> Iterator[Breach]:
    answered = 0.0
    for write in route.writes:
        away = route.away(write)
        window = route.toleration if away else route.recovery
        reasons = [
            spell
            for spell in told
            if spell.bad is away
            and answered < spell.begin <= write.at - window + run.slack
            and max(spell.end, spell.told) > spell.begin + window - run.slack
        ]
        if reasons:
            answered = reasons[0].begin  # a write that was long on its way is for what was told first
        else:
            where = "away" if away else "home"
            yield Breach("blind", route.name, write.at, f"{where}: nothing that was told asks for it")


def _with_pauses(route: RouteHistory, run: Run, pauses: Sequence[PauseSeen]) -> Run:
    """Give the run of this route alone: while its rule is paused, nothing is due."""
    spans = [Span(pause.begin, min(pause.end, run.end)) for pause in pauses if pause.name == route.name]
    return replace(run, routes=(route,), troubles=(*run.troubles, *spans))


def _paused(seen: Seen) -> Iterator[Breach]:
    for pause in seen.pauses:
        for write in next(route.writes for route in seen.run.routes if route.name == pause.name):
            if pause.begin + STOPPED < write.at - write.under_way < pause.ended:
                what = f"written {write.at - pause.begin:.3f} s after its rule was paused"
                yield Breach("paused", pause.name, write.at, what)


def _asked(notes: Notes) -> Iterator[Breach]:
    for asked in notes.asked:
        if asked.epoch != asked.stands:
            what = f"{asked.id} was published with epoch {asked.epoch} while {asked.stands} stood"
            yield Breach("stale-owner", "", asked.at, what)
        if not asked.owed:
            yield Breach("unowed", "", asked.at, f"{asked.id} was published and nothing stored owes it")


def sentence(breach: Breach) -> str:
    """Give it as people read it, in seconds from the start."""
    return f"{breach.promise}: {breach.route} at {breach.at - START:.3f}: {breach.what}".replace(":  at", ": at")
