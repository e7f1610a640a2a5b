"""Ids of actions on the bus, which drops a repeated id."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from bus.messages import Mode, RouteRef, SetWeights
from bus.port import Fence
from bus.testing.memory import MemoryBus
from reactor.decide.encoder import DecisionEncoder
from reactor.route.publisher import FactPublisher
from reactor.runtime.clock import Clock
from rules.core.group import Group, OutboxEntry
from rules.engine.routing import Routing
from rules.kinds.traffic.state import TrafficState

ROUTE = "east/shop/TrafficSplit/web"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def named(decided_at: datetime, *, tries: int = 1, epoch: int = 1) -> str:
    """The id of the message that asks for the first action of a group."""
    action = SetWeights(
        id=f"web/{ROUTE}/1", rule="web", object=ROUTE, generation=1, mode=Mode.ENFORCE, because="PrimaryUnhealthy",
        decided_at=decided_at, route=RouteRef(cluster="east", kind="TrafficSplit", namespace="shop", name="web"),
        weights={"web": 0, "west": 1},
    )  # fmt: skip
    group = Group("web", ROUTE, TrafficState(), generation=1, outbox=(OutboxEntry(action, decided_at, tries=tries),))
    clock = Clock()
    publisher = FactPublisher(MemoryBus(clock.now), Routing([]), 4, clock, source="/test")
    return DecisionEncoder(0, Fence("owner", epoch), publisher).action(group, action, None).id


def test_a_rule_that_is_put_back_counts_from_one_again_and_its_actions_are_no_repeats() -> None:
    assert named(NOON) != named(NOON + timedelta(seconds=20))


def test_the_same_ask_has_the_same_name_whichever_process_publishes_it() -> None:
    assert named(NOON, epoch=1) == named(NOON, epoch=2)
    assert named(NOON, tries=1) != named(NOON, tries=2)
