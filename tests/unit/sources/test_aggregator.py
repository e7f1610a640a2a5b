"""Several objects of one target, and targets that no object has any more."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from bus.messages import Health, Observation
from reactor.clients.changes import ReadInterval
from reactor.sources.aggregator import TargetAggregator
from reactor.sources.publisher import HealthPublisher
from reactor.sources.refresh import no_requests
from rules.rulefile.sources import TcpProbe
from tests.clock import HandClock

H, U, N = Health.HEALTHY, Health.UNHEALTHY, Health.UNKNOWN
RED, BLUE = {"team": "red"}, {"team": "blue"}


class Aggregated:
    """An aggregator, and what it has published."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.said: list[Observation] = []
        self.dated: list[timedelta] = []
        """Age of each observation."""
        self.ages: dict[str, float | None] = {}
        source = TcpProbe(name="s", kind="TcpProbe", host="h", port=1, target="custom/{team}", refresh_seconds=30)
        self.aggregator: TargetAggregator[str] = TargetAggregator(
            HealthPublisher(source, self._tell, self.clock), self.clock, self._seen, self._seen, doubted=lambda _: False
        )

    def _seen(self, key: str) -> datetime | None:
        age = self.ages.get(key, 0.0)
        return None if age is None else self.clock.now() - timedelta(seconds=age)

    async def _tell(self, observation: Observation) -> None:
        self.said.append(observation)
        self.dated.append(self.clock.now() - observation.observed_at)

    async def notes(self, *notes: tuple[str, Health, dict[str, str]], gone: bool = False) -> None:
        for key, status, labels in notes:
            look = ReadInterval(self.clock.now(), self.clock.now())
            self.aggregator.note(key, status, labels=labels, look=look, detail=key, gone=gone)
        await self.aggregator.speak()

    async def passes(self, seconds: float) -> None:
        until = self.clock.seconds + seconds
        task = asyncio.create_task(self.aggregator.keep(lambda _: None, no_requests))
        while self.clock.seconds < until:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def heard(self) -> list[tuple[str, Health]]:
        """Observations since the last call."""
        found = [(one.target.removeprefix("custom/"), one.status) for one in self.said]
        self.said.clear()
        return found


@pytest.fixture
def choir() -> Aggregated:
    return Aggregated()


@pytest.mark.parametrize(
    ("statuses", "worst"), [((H, U), U), ((U, H), U), ((H, N), N), ((N, U), U), ((H, H), H)], ids=str
)
async def test_of_several_objects_of_one_target_the_worst_speaks_and_nothing_else_is_heard(
    choir: Aggregated, statuses: Sequence[Health], worst: Health
) -> None:
    await choir.notes(*((f"k{number}", status, RED) for number, status in enumerate(statuses)))
    assert choir.heard() == [("red", worst)]


async def test_when_the_worst_recovers_the_next_worst_speaks(choir: Aggregated) -> None:
    await choir.notes(("a", U, RED), ("b", N, RED))
    await choir.notes(("a", H, RED))
    await choir.notes(("b", H, RED))
    assert choir.heard() == [("red", U), ("red", N), ("red", H)]


async def test_a_target_that_no_object_has_any_more_is_unknown_and_not_repeated(choir: Aggregated) -> None:
    await choir.notes(("a", H, RED))
    await choir.notes(("a", U, BLUE))
    assert choir.heard() == [("red", H), ("blue", U), ("red", N)]
    await choir.passes(100)
    assert set(choir.heard()) == {("blue", U)}


async def test_an_object_whose_labels_make_no_target_any_more_leaves_the_old_one(choir: Aggregated) -> None:
    await choir.notes(("a", H, RED))
    await choir.notes(("a", H, {}))
    assert choir.heard() == [("red", H), ("red", N)]


async def test_an_object_that_leaves_takes_only_its_own_word_along(choir: Aggregated) -> None:
    await choir.notes(("a", U, RED), ("b", H, RED))
    choir.aggregator.leave("a", "gone")
    await choir.aggregator.speak()
    choir.aggregator.leave("b", "gone")
    await choir.aggregator.speak()
    assert (choir.said[-1].detail, choir.said[-1].gone) == ("gone", True)
    assert not any(one.gone for one in choir.said[:-1])
    assert choir.heard() == [("red", U), ("red", H), ("red", N)]


async def test_what_is_gone_counts_only_where_no_other_is_left(choir: Aggregated) -> None:
    await choir.notes(("a", H, RED), ("b", H, RED))
    await choir.notes(("a", U, RED), gone=True)
    await choir.notes(("b", U, RED), gone=True)
    assert choir.heard() == [("red", H), ("red", U)]


async def test_what_is_forgotten_is_silent(choir: Aggregated) -> None:
    await choir.notes(("a", U, RED))
    choir.aggregator.forget("a")
    await choir.passes(100)
    assert choir.heard() == [("red", U)]


async def test_while_one_is_not_seen_nothing_better_than_unhealthy_is_said(choir: Aggregated) -> None:
    await choir.notes(("a", H, RED), ("b", H, RED), ("c", H, BLUE))
    choir.heard()
    choir.ages["b"] = None
    await choir.passes(100)
    assert set(choir.heard()) == {("blue", H)}
    await choir.notes(("a", U, RED))
    await choir.notes(("a", H, RED))
    assert choir.heard() == [("red", U)]
    choir.ages["b"] = 0.0
    await choir.passes(10)
    assert choir.heard() == [("red", H)]


async def test_what_is_repeated_is_as_old_as_the_oldest_look(choir: Aggregated) -> None:
    await choir.notes(("a", H, RED), ("b", H, RED))
    choir.ages["b"] = 20.0
    await choir.passes(36)
    assert timedelta(seconds=20) <= choir.dated[1] <= timedelta(seconds=25)
