"""A source publishes a change at once, and what is unchanged now and then."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from bus.messages import Health, Observation
from reactor.runtime.errors import Retryable
from reactor.runtime.telemetry import REGISTRY
from reactor.sources.publisher import HealthPublisher
from reactor.sources.refresh import no_requests
from rules.rulefile.sources import TcpProbe
from tests.clock import HandClock

H, U, N = Health.HEALTHY, Health.UNHEALTHY, Health.UNKNOWN
T0 = datetime(2026, 1, 1, tzinfo=UTC)


class Bus:
    """Takes observations, or not."""

    def __init__(self) -> None:
        self.taken: list[Observation] = []
        self.down = False

    async def tell(self, observation: Observation) -> None:
        if self.down:
            raise Retryable("the bus is away")
        self.taken.append(observation)

    @property
    def statuses(self) -> list[Health]:
        return [observation.status for observation in self.taken]


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def bus() -> Bus:
    return Bus()


@pytest.fixture
def publisher(clock: HandClock, bus: Bus) -> HealthPublisher:
    source = TcpProbe(
        name="db", kind="TcpProbe", host="db", port=1, target="service/{cluster}/{ns}/db", refresh_seconds=30,
        stale_seconds=77, signal="port",
    )  # fmt: skip
    return HealthPublisher(source, bus.tell, clock)


async def refreshed(publisher: HealthPublisher, clock: HandClock, *, until: float, believed: bool = True) -> None:
    task = asyncio.create_task(publisher.keep(lambda _: clock.now() if believed else None, lambda _: None, no_requests))
    while clock.seconds < until:
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_change_is_said_at_once_and_a_repetition_is_not(publisher: HealthPublisher, bus: Bus) -> None:
    for status in (H, H, U, U, N, H):
        await publisher.say("custom/a", status)
    assert bus.statuses == [H, U, N, H]


async def test_an_observation_carries_what_the_core_needs(
    publisher: HealthPublisher, bus: Bus, clock: HandClock
) -> None:
    clock.seconds = 5
    await publisher.say("custom/a", N, labels={"k": "v" * 5000}, detail="two\nlines")
    (said,) = bus.taken
    assert (said.signal, said.stale_seconds, said.detail) == ("port", 77, "two lines")
    assert said.observed_at == T0 + timedelta(seconds=5)
    assert len(said.labels["k"]) == 4096


async def test_what_is_unchanged_is_published_again_every_refresh(
    publisher: HealthPublisher, bus: Bus, clock: HandClock
) -> None:
    await publisher.say("custom/a", H)
    await refreshed(publisher, clock, until=100)
    gaps = [later.observed_at - earlier.observed_at for earlier, later in zip(bus.taken, bus.taken[1:], strict=False)]
    assert len(bus.taken) >= 3
    assert all(timedelta(seconds=30) <= gap <= timedelta(seconds=35) for gap in gaps)


async def test_a_source_that_cannot_see_repeats_nothing(publisher: HealthPublisher, bus: Bus, clock: HandClock) -> None:
    await publisher.say("custom/a", H)
    await refreshed(publisher, clock, until=100, believed=False)
    assert len(bus.taken) == 1


async def test_what_is_forgotten_is_not_said_again(publisher: HealthPublisher, bus: Bus, clock: HandClock) -> None:
    await publisher.say("custom/a", H)
    publisher.forget("custom/a")
    await refreshed(publisher, clock, until=100)
    assert len(bus.taken) == 1


async def test_what_the_bus_did_not_take_stays_owed(publisher: HealthPublisher, bus: Bus, clock: HandClock) -> None:
    await publisher.say("custom/a", H)
    bus.down = True
    await publisher.say("custom/a", U)
    bus.down = False
    await refreshed(publisher, clock, until=6)
    assert bus.statuses == [H, U]


async def test_a_template_takes_labels_each_as_one_segment(publisher: HealthPublisher) -> None:
    assert publisher.target({"cluster": "east", "ns": "a/b"}) == "service/east/a%2Fb/db"


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ({"cluster": "east"}, "MissingLabel"),
        ({"cluster": "east", "ns": ""}, "MissingLabel"),
        ({"cluster": "east", "ns": "a\nb"}, "BadTarget"),
        ({"cluster": "east", "ns": "x" * 2000}, "BadTarget"),
    ],
)
async def test_labels_that_give_no_target_are_counted_and_logged_once(
    publisher: HealthPublisher, caplog: pytest.LogCaptureFixture, labels: dict[str, str], reason: str
) -> None:
    def counted() -> float:
        named = {"source": "db", "reason": reason}
        return REGISTRY.get_sample_value("reactor_source_errors_total", named) or 0.0

    before = counted()
    assert [publisher.target(labels), publisher.target(labels)] == [None, None]
    assert counted() == before + 2
    assert len(caplog.records) == 1


async def test_a_source_observes_no_more_targets_than_its_limit(
    clock: HandClock, bus: Bus, caplog: pytest.LogCaptureFixture
) -> None:
    source = TcpProbe(name="wide", kind="TcpProbe", host="db", port=1, target="custom/{x}", max_targets=100)
    publisher = HealthPublisher(source, bus.tell, clock)
    refused = REGISTRY.get_sample_value("reactor_targets_refused_total", {"source": "wide"}) or 0
    for number in range(1000):
        await publisher.say(f"custom/{number}", H)
    await publisher.say_once("custom/of-nobody", N)
    assert len(publisher._standing.keys) == 100
    assert len(bus.taken) == 100
    assert REGISTRY.get_sample_value("reactor_targets_refused_total", {"source": "wide"}) == refused + 901
    assert [record.getMessage() for record in caplog.records if "too many targets" in record.getMessage()] == [
        "a source has too many targets, further ones are refused: 100"
    ]
    await publisher.say("custom/5", U)  # those that are known go on
    publisher.forget("custom/7")
    await publisher.say("custom/1000", U)  # and what is forgotten makes room
    assert [one.target for one in bus.taken[100:]] == ["custom/5", "custom/1000"]


async def test_another_part_that_is_healthy_is_told_at_once_and_is_no_break(
    publisher: HealthPublisher, bus: Bus, clock: HandClock
) -> None:
    """A service that loses its endpoints one by one is bad since the first that it lacked, not since the last."""
    for second, percent in ((0, 40), (10, 38), (20, 20), (30, 0)):
        clock.seconds = second
        await publisher.say("custom/a", U, healthy_percent=percent, unbroken=True)
    assert [(said.healthy_percent, said.since) for said in bus.taken] == [(40, T0), (20, T0), (0, T0)]
