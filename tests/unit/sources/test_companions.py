"""After a probe finds a backend bad and no window is awaited, the others are looked at before they are asked for."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from bus import subjects
from bus.messages import Health, Observation, RefreshRequest
from bus.testing.memory import MemoryBus
from reactor.sources.companions import Companions
from reactor.sources.refresh import RefreshHandler, RefreshRequests
from rules.loader import RuleSet, load_rules
from tests.clock import HandClock

AT = datetime(2026, 1, 1, tzinfo=UTC)
RULES = """
apiVersion: reactor/v1
sources:
- {{name: a, kind: HttpProbe, target: custom/a, url: "http://a/"}}
- {{name: b, kind: HttpProbe, target: custom/b, url: "http://b/"}}
rules:
- name: shop
  kind: TrafficFailover
  route: {{cluster: east, kind: TrafficSplit, namespace: shop, name: shop}}
  backends: [{{service: a, target: custom/a}}, {{service: b, target: custom/b}}, {{service: c, target: custom/c}}]
  tolerationSeconds: {toleration}
"""
WATCHED = """
apiVersion: reactor/v1
sources:
- {name: ready, kind: EndpointsWatch, cluster: east}
- {name: elsewhere, kind: EndpointsWatch, cluster: west}
- {name: pager, kind: AlertmanagerWebhook, target: "custom/{app}", onResolved: Healthy}
rules:
- name: shop
  kind: TrafficFailover
  route: {cluster: east, kind: TrafficSplit, namespace: shop, name: shop}
  signals: [pager, ready]
  backends: [{service: shop, target: custom/shop}, {service: west}, {service: central}]
"""
"""An alert says that the first is bad; a watch sees the others, which have the targets of Services."""


def loaded(*, toleration: int) -> RuleSet:
    return load_rules([("shop.yaml", RULES.format(toleration=toleration))])


def word(status: Health, *, target: str = "custom/a", since: float = 0) -> Observation:
    return Observation(
        target=target, status=status, signal="a", source="a", observed_at=AT, since=AT - timedelta(seconds=since)
    )


async def asked(rules: RuleSet, fact: Observation) -> list[RefreshRequest]:
    """Requests to the source of custom/b after this fact."""
    bus, out = MemoryBus(lambda: AT), list[RefreshRequest]()

    async def hear(body: bytes) -> None:
        out.append(RefreshRequest.model_validate_json(body))

    await bus.listen(subjects.refresh("b"), hear)
    await Companions(rules.rules, rules.sources, RefreshRequests(bus, HandClock())).looked_at([fact])
    for _ in range(5):
        await asyncio.sleep(0)
    return out


async def test_the_first_bad_word_has_the_others_looked_at_from_then_on() -> None:
    rules = loaded(toleration=0)
    assert await asked(rules, word(Health.UNHEALTHY)) == [RefreshRequest(targets=("custom/b",), not_before=AT)]


@pytest.mark.parametrize(
    "fact",
    [word(Health.HEALTHY), word(Health.UNHEALTHY, since=1), word(Health.UNHEALTHY, target="custom/other")],
    ids=["good", "said again", "of nobody's companion"],
)
async def test_what_is_no_news_of_a_failure_asks_no_source(fact: Observation) -> None:
    assert await asked(loaded(toleration=0), fact) == []


async def test_where_a_window_is_awaited_the_decider_asks_when_it_ends() -> None:
    assert await asked(loaded(toleration=5), word(Health.UNHEALTHY)) == []


async def test_a_watch_is_asked_for_all_that_it_sees_by_one_request() -> None:
    rules = load_rules([("shop.yaml", WATCHED)])
    bus, out = MemoryBus(lambda: AT), list[RefreshRequest]()

    async def hear(body: bytes) -> None:
        out.append(RefreshRequest.model_validate_json(body))

    await bus.listen(subjects.refresh("ready"), hear)
    await Companions(rules.rules, rules.sources, RefreshRequests(bus, HandClock())).looked_at(
        [word(Health.UNHEALTHY, target="custom/shop")]
    )
    for _ in range(5):
        await asyncio.sleep(0)
    others = ("service/east/shop/central", "service/east/shop/west")
    assert out == [RefreshRequest(targets=others, not_before=AT)]


async def test_a_bus_that_is_away_keeps_no_source_from_speaking() -> None:
    rules, bus = loaded(toleration=0), MemoryBus(lambda: AT)
    bus.down = True
    await Companions(rules.rules, rules.sources, RefreshRequests(bus, HandClock())).looked_at([word(Health.UNHEALTHY)])


async def test_a_source_of_the_same_process_is_asked_without_the_bus() -> None:
    rules, bus, out = loaded(toleration=0), MemoryBus(lambda: AT), list[RefreshRequest]()
    requests = RefreshRequests(bus, HandClock())

    async def hear(request: RefreshRequest) -> None:
        out.append(request)

    running = asyncio.create_task(requests.hear("b", hear))
    await asyncio.sleep(0)
    bus.down = True
    await Companions(rules.rules, rules.sources, requests).looked_at([word(Health.UNHEALTHY)])
    for _ in range(5):
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert out == [RefreshRequest(targets=("custom/b",), not_before=AT)]


async def test_a_source_with_two_signals_is_asked_for_both_and_ends_as_one() -> None:
    """As nodes do: of nodes and of zones. Found by chaos: each clean stop ended such a source with an error."""
    requests, out = RefreshRequests(MemoryBus(lambda: AT), HandClock()), list[str]()

    def answering(name: str) -> RefreshHandler:
        async def hear(_: RefreshRequest) -> None:
            out.append(name)

        return hear

    running = [asyncio.create_task(requests.hear("nodes", answering(name))) for name in ("node", "zone")]
    await asyncio.sleep(0)
    await requests.ask("nodes", RefreshRequest(targets=("node/a",), not_before=AT))
    for _ in range(5):
        await asyncio.sleep(0)
    for task in running:
        task.cancel()
    ended = await asyncio.gather(*running, return_exceptions=True)
    assert (out, [type(one) for one in ended]) == (["node", "zone"], [asyncio.CancelledError] * 2)
