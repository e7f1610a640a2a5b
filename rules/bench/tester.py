"""Rule tests: each is a short history, played through the same decisions as the live service, and compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from bus.messages import Backend, Fact, Hold, Notify, Observation, Route
from rules.bench.play import Said, at, play
from rules.bench.simulator import line
from rules.bench.testfile import Expected, Inventory, RuleTest
from rules.bench.testfile import samples as samples
from rules.bench.testfile import schema as schema
from rules.bench.testreader import Suite
from rules.bench.testreader import load as load
from rules.engine.routing import Routing
from rules.language.model import Notification

CLOSE = 1e-6
"""Seconds within which two moments are the same: a value's second is a product, an expected one is written out."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one test."""

    name: str
    file: str
    line: int
    expected: tuple[Expected, ...]
    said: tuple[Said, ...]
    """All that happened, holds and words to people included."""
    missing: tuple[Expected, ...] = ()
    """Expected, and did not happen (or not in this order)."""
    unexpected: tuple[Said, ...] = ()
    """Happened, and was not expected."""

    @property
    def passed(self) -> bool:
        """Whether everything expected happened, and no other action."""
        return not self.missing and not self.unexpected


def run(suite: Suite) -> Iterator[Result]:
    """Run the tests of a file, each on its own."""
    for test, number in zip(suite.tests, suite.lines, strict=True):
        said = tuple(play(Routing.of(suite.rules), history(test), until=_until(test)))
        missing, unexpected = _compare(suite, test.expect, said)
        yield Result(test.name, suite.file, number, test.expect, said, missing, unexpected)


def history(test: RuleTest) -> list[tuple[float, Fact]]:
    """Give the inventory and the inputs as the facts that they stand for, sorted by second."""
    events: list[tuple[float, Fact]] = [(given.at, _listed(given)) for given in test.inventory]
    events += [(command.at, command.fact()) for command in test.commands]
    for given in test.inputs:
        for index, status in enumerate(samples(given.values)):
            if status is not None:
                when = index * test.interval_seconds
                seen = Observation(
                    target=given.target, status=status, signal=given.signal, observed_at=at(when),
                    stale_seconds=given.stale_seconds,
                )  # fmt: skip
                events.append((when, seen))
    return sorted(events, key=lambda event: event[0])


def _listed(given: Inventory) -> Fact:
    listed = given.zones or given.cluster or given.workload
    if listed is not None:
        return listed.fact(given.at)
    route = given.route
    if route is None:
        msg = "the reader lets no inventory through that has nothing"
        raise AssertionError(msg)
    return Route(
        cluster=route.cluster, kind=route.kind, namespace=route.namespace, name=route.name, rule=route.rule,
        annotations=dict(route.annotations), labels=dict(route.labels), exists=route.exists,
        backends=tuple(Backend(service=b.service, weight=b.weight) for b in route.backends), observed_at=at(given.at),
    )  # fmt: skip


def _until(test: RuleTest) -> float:
    moments = [0.0, *(given.at for given in test.inventory), *(command.at for command in test.commands)]
    moments += [(len(samples(given.values)) - 1) * test.interval_seconds for given in test.inputs]
    moments += [expected.at for expected in test.expect if expected.at is not None]
    return max(moments)


def _compare(
    suite: Suite, expect: Sequence[Expected], said: Sequence[Said]
) -> tuple[tuple[Expected, ...], tuple[Said, ...]]:
    """Actions are compared one by one; of holds, and of words to people about them, only those that are expected."""
    holds = [one for one in said if isinstance(one.what, Hold)]
    actions = [one for one in said if not isinstance(one.what, Hold)]
    held_missing, _ = _match([one for one in expect if one.held is not None], holds)
    missing, unexpected = _match([one for one in expect if one.held is None], actions)
    unexpected = [one for one in unexpected if not _is_word_about_another(suite, one)]
    return (*missing, *held_missing), tuple(unexpected)


def _match(expect: Sequence[Expected], said: Sequence[Said]) -> tuple[list[Expected], list[Said]]:
    """Give what did not come, and what came besides. What happens in one instant may be expected in any order."""
    waiting, besides = list(expect), []
    for _, group in groupby(said, key=lambda one: one.at):
        instant = list(group)
        while waiting and (hit := next((one for one in instant if fits(waiting[0], one)), None)) is not None:
            waiting.pop(0)
            instant.remove(hit)
        besides += instant
    return waiting, besides


def fits(expected: Expected, said: Said) -> bool:
    """Whether this is what was expected, by the keys that the expectation gives."""
    actual: dict[str, Any] = {"at": said.at} | said.what.model_dump(by_alias=False) | line(said)
    for key in expected.model_fields_set:
        want, have = getattr(expected, key), actual.get(key)
        if key == "taints" and want is not None:
            want = [taint.model_dump() for taint in want]
        if key == "at" and want is not None and isinstance(have, (int, float)):
            if abs(want - have) > CLOSE:
                return False
        elif want is not None and want != have:
            return False
    return True


def _is_word_about_another(suite: Suite, said: Said) -> bool:
    """A rule's `notify` only says what the rule does: no test has to expect the same thing twice."""
    return isinstance(said.what, Notify) and not isinstance(suite.rules.rule(said.what.rule), Notification)
