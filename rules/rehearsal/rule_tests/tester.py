"""Rule tests: each is a short history, played through the same decisions as the live service, and compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from bus.messages import Backend, Fact, Hold, Notify, Observation, Route
from rules.catalog import kind_of
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.rehearsal.given_outcomes import GivenOutcome, GivenOutcomes
from rules.rehearsal.rule_tests.matching import compare, fits
from rules.rehearsal.rule_tests.model import Expected, GivenInventory, OutcomeGiven, RuleTest, percents
from rules.rehearsal.rule_tests.model import samples as samples
from rules.rehearsal.rule_tests.model import schema as schema
from rules.rehearsal.rule_tests.suite_loader import RuleTestSuite
from rules.rehearsal.rule_tests.suite_loader import examine as examine
from rules.rehearsal.rule_tests.suite_loader import load_suite as load_suite
from rules.rehearsal.simulation import Emitted, at, play
from rules.rehearsal.store_copies import copied


@dataclass(frozen=True, slots=True)
class RuleTestResult:
    """The result of one test."""

    name: str
    file: str
    line: int
    expected: tuple[Expected, ...]
    said: tuple[Emitted, ...]
    """All that happened, holds and words to people included."""
    missing: tuple[Expected, ...] = ()
    """Expected, and did not happen (or not in this order)."""
    unexpected: tuple[Emitted, ...] = ()
    """Happened, and was not expected."""
    unmet: tuple[OutcomeGiven, ...] = ()
    """Outcomes of actions that no rule had asked for by then, or only a rule that does not enforce."""

    @property
    def passed(self) -> bool:
        """True if everything expected happened, no other action did, and every outcome found its action."""
        return not self.missing and not self.unexpected and not self.unmet


def run(suite: RuleTestSuite) -> Iterator[RuleTestResult]:
    """Run the tests of a file, each on its own."""
    routing = Routing.of(suite.rules)
    new = GroupStore(routing)
    for test, number in zip(suite.tests, suite.lines, strict=True):
        given = test.outcomes if isinstance(test.outcomes, tuple) else ()
        answers = {_answer(outcome): outcome for outcome in given}
        asked = GivenOutcomes(tuple(answers))
        follow = test.outcomes != "none"
        played = play(routing, history(test), until=_until(test), outcomes=follow, answers=asked, store=copied(new))
        said = tuple(played)
        found = compare(test.expect, said, may_be=partial(_is_word_about_another, suite))
        unmet = tuple(answers[answer] for answer in asked.unmet)
        yield RuleTestResult(test.name, suite.file, number, test.expect, said, found.missing, found.unexpected, unmet)


def _answer(given: OutcomeGiven) -> GivenOutcome:
    def means(said: Emitted) -> bool:
        if isinstance(given.action, str):
            return not isinstance(said.what, Hold) and said.what.id == given.action
        return fits(given.action, said)

    return GivenOutcome(given.at, means, given.status, given.reason, given.detail)


def history(test: RuleTest) -> list[tuple[float, Fact]]:
    """Give the inventory and the inputs as facts, sorted by second."""
    events: list[tuple[float, Fact]] = [(given.at, _listed(given)) for given in test.inventory]
    events += [(command.at, command.fact()) for command in test.commands]
    for given in test.inputs:
        values = samples(given.values)
        shares = percents(given.healthy_percent) if given.healthy_percent is not None else [None] * len(values)
        for index, (status, percent) in enumerate(zip(values, shares, strict=True)):
            if status is not None:
                when = index * test.interval_seconds
                seen = Observation(
                    target=given.target, status=status, signal=given.signal, observed_at=at(when),
                    stale_seconds=given.stale_seconds, healthy_percent=percent,
                )  # fmt: skip
                events.append((when, seen))
    return sorted(events, key=lambda event: event[0])


def _listed(given: GivenInventory) -> Fact:
    listed = given.zones or given.cluster or given.workload
    if listed is not None:
        return listed.fact(given.at)
    route = given.route
    if route is None:
        msg = "the reader lets no inventory through that has nothing"
        raise AssertionError(msg)
    return Route(
        cluster=route.cluster, kind=route.kind, custom_kind=route.custom_kind or "", namespace=route.namespace,
        name=route.name, rule=route.rule, sum_to=route.sum_to, all_zero=route.all_zero, life=route.life,
        annotations=dict(route.annotations), labels=dict(route.labels), exists=route.exists,
        backends=tuple(Backend(service=b.service, weight=b.weight) for b in route.backends), observed_at=at(given.at),
    )  # fmt: skip


def _until(test: RuleTest) -> float:
    moments = [0.0, *(given.at for given in test.inventory), *(command.at for command in test.commands)]
    moments += [(len(samples(given.values)) - 1) * test.interval_seconds for given in test.inputs]
    moments += [expected.at for expected in test.expect if expected.at is not None]
    moments += [one.absent.until for one in test.expect if one.absent is not None and one.absent.until is not None]
    moments += [outcome.at for outcome in test.outcomes if not isinstance(outcome, str)]
    return max(moments)


def _is_word_about_another(suite: RuleTestSuite, said: Emitted) -> bool:
    """A rule's `notify` only says what the rule does: no test has to expect the same thing twice."""
    return isinstance(said.what, Notify) and not kind_of(suite.rules.rule(said.what.rule)).tells
