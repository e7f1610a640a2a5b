"""Promises that were broken where a person has to approve what a rule asks for.

A rule that waits has to move nothing, however long it waits; what is approved is due as if its window were over then.
The way back waits for no answer, but that of a zone does: to open a zone that was bad is a risk of its own.

unapproved   an action that takes traffic away, puts a taint on, moves a copy, isolates a zone or opens it was published
             without a yes that counts: given after the window of this outage or recovery was over, not for longer than
             it is good, and not taken back by a later no
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reactor.audit.spans import Span
from reactor.audit.verdict import Breach
from tests.judge.checker import check
from tests.judge.object_history import RouteHistory, Run, Write, good
from tests.simulation.fleet.answers import AnswerSeen
from tests.simulation.fleet.server import Asked

HEARD = 2.0
"""Seconds after which an answer that the bus has taken is heard, as a pause is."""


def judge_answers(
    route: RouteHistory, run: Run, answers: Sequence[AnswerSeen], expires: float, asked: Sequence[Asked]
) -> Iterator[Breach]:
    """Give every breach on this route. `run`: of it alone. `expires`: seconds for which a request is good."""
    mine = [answer for answer in answers if answer.name == route.name]
    yield from (
        breach for breach in check(run).breaches if breach.promise != "lost" or "not home" in breach.what
    )  # fmt: skip
    for write in route.writes:
        if route.away(write) or not route.returns:
            yield from _unapproved(route, run, write, mine, expires, asked)
    for outage in route.outages:
        yield from _lost(route, run, outage, route.toleration, mine, expires, away=True)
    for recovery in () if route.returns else good(route.outages)[1:]:
        yield from _lost(route, run, recovery, route.recovery, mine, expires, away=False)


def _unapproved(
    route: RouteHistory, run: Run, write: Write, answers: Sequence[AnswerSeen], expires: float, asked: Sequence[Asked]
) -> Iterator[Breach]:
    sent = write.at - write.under_way
    published = [
        one.at for one in asked if one.id.startswith(f"{route.name}/") and one.id.endswith(f"/{write.generation}")
    ]
    at = min([sent, *(one for one in published if one <= sent)])
    away = route.away(write)
    spans, window = (route.outages_seen(), route.toleration) if away else (good(route.outages), route.recovery)
    over = [span.begin + window - run.slack for span in spans]
    since = max((one for one in over if one <= at), default=at)
    for yes in answers:
        counts = yes.yes and max(since, at - expires - run.slack) <= yes.given <= at + run.slack
        if counts and not _taken_back(yes, answers, at):
            return
    yield Breach("unapproved", route.name, write.at, f"published {at - since:.3f} s after the window without a yes")


def _taken_back(yes: AnswerSeen, answers: Sequence[AnswerSeen], at: float) -> bool:
    """True if a later no was heard before `at`."""
    return any(
        not no.yes and yes.given < no.given and no.taken + HEARD < at and (not no.request or no.request == yes.request)
        for no in answers
    )


def _lost(
    route: RouteHistory, run: Run, spell: Span, window: float, answers: Sequence[AnswerSeen], expires: float, *,
    away: bool,
) -> Iterator[Breach]:  # fmt: skip
    """Give what was approved while it was called for, and not done while the yes was good."""
    over = spell.begin + window - run.slack
    for yes in answers:
        until = yes.asked + expires
        good_until = (until if yes.given < until else yes.given + expires) - run.slack
        due = max(run.due_for(route, spell, window), run.due(yes.taken))
        called_for = yes.yes and yes.request and over <= yes.asked and due < min(spell.end, good_until, run.end)
        refused = any(not no.yes and yes.given < no.given < due for no in answers)
        if called_for and not refused and route.is_away(due) is not away:
            where = "away" if away else "home"
            what = f"it is not {where}, approved {due - yes.given:.3f} s before, called for since {spell.begin:.3f}"
            yield Breach("lost", route.name, due, what)
