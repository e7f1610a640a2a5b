"""The keeper: what it says of targets, and when, over everything Alertmanager does and fails to do."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from bus.errors import Malformed, NotPermitted, Unavailable
from bus.messages import Health, Observation, WebhookPost
from bus.topology import ALERTS
from reactor.alerts.lifecycle import ROLLED_OUT, AlertLifecycle
from reactor.runtime.errors import SourceUnknown
from tests.unit.webhook.builders import CONFIRM, Api, World, alert, counted, labelled, moment, resolved, source

HOUR = 3600


@pytest.fixture
def world() -> World:
    return World()


async def test_a_firing_alert_makes_its_target_unhealthy_at_once(world: World) -> None:
    async with world.lifecycle() as lifecycle:
        await world.post(lifecycle, alert(cluster="east"), at=5)
    (said,) = world.told
    assert (said.target, said.status, said.signal) == ("service/east/shop/checkout", Health.UNHEALTHY, "am")
    assert (said.observed_at, said.stale_seconds, said.detail) == (moment(5), 90, "checkout is down")
    assert said.labels["cluster"] == "east"


async def test_a_standing_alert_is_said_again_every_refresh_seconds(world: World) -> None:
    async with world.lifecycle() as lifecycle:
        await world.post(lifecycle, alert(), at=5)
        await world.pass_time(lifecycle, 305)
    times = [said.observed_at for said in world.told]
    assert 10 <= len(times) <= 12
    assert all(0 < (b - a).total_seconds() <= 30 for a, b in itertools.pairwise(times))
    assert world.statuses() == ["Unhealthy"]


async def test_a_repeat_is_a_heartbeat_and_no_new_incident(world: World) -> None:
    async with world.lifecycle() as lifecycle:
        before = counted("reactor_webhook_alerts_total", source="am", fate="repeated")
        await world.post(lifecycle, alert(), at=0)
        for at in (300, 600, 900):
            await world.post(lifecycle, alert(), at=at)
        assert counted("reactor_webhook_alerts_total", source="am", fate="repeated") == before + 3
    assert world.statuses() == ["Unhealthy"]


async def test_resolved_is_unknown_until_a_query_proves_the_recovery(world: World) -> None:
    async with world.lifecycle(source(confirm=CONFIRM)) as lifecycle:
        await world.post(lifecycle, alert(), at=0)
        await world.post(lifecycle, resolved(), at=110)
        assert world.statuses() == ["Unhealthy", "Unknown"]
        await world.pass_time(lifecycle, 170)
        assert world.last() == "Unknown"
        world.series = [{"service": "checkout", "instance": "a:80"}]
        await world.pass_time(lifecycle, 186)
    assert world.last() == "Healthy"
    assert set(world.queries) == {("main", "up == 1")}


@pytest.mark.parametrize("series", [None, [], [{"service": "cart"}]], ids=["failed", "empty", "of another service"])
async def test_a_query_without_an_agreeing_series_proves_nothing(
    world: World, series: list[dict[str, str]] | None
) -> None:
    async with world.lifecycle(source(confirm=CONFIRM)) as lifecycle:
        await world.post(lifecycle, alert(), at=0)
        await world.post(lifecycle, resolved(), at=110)
        world.series = series
        await world.pass_time(lifecycle, 600, step=5)
    assert world.last() == "Unknown"


async def test_labels_that_the_target_is_not_made_of_need_not_agree(world: World) -> None:
    async with world.lifecycle(source(confirm=CONFIRM)) as lifecycle:
        world.series = [{"alertname": "Other"}]
        await world.post(lifecycle, alert(), at=0)
        await world.post(lifecycle, resolved(), at=110)
        await world.pass_time(lifecycle, 112)
    assert world.last() == "Healthy"


@pytest.mark.parametrize(
    ("meanwhile", "stands"),
    [([alert(starts=120)], "Unhealthy"), ([alert(starts=120), resolved(starts=120, ends=121)], "Unknown")],
    ids=["fired again", "fired again and ended"],
)
async def test_a_proof_asked_for_before_it_fired_again_proves_nothing(
    world: World, meanwhile: list[dict[str, Any]], stands: str
) -> None:
    async with world.lifecycle(source(confirm=CONFIRM)) as lifecycle:
        await world.post(lifecycle, alert(), at=0)
        await world.post(lifecycle, resolved(), at=110)

        async def fires_meanwhile(_: str, __: str) -> list[dict[str, str]]:
            for raw in meanwhile:
                world.clock.seconds += 1
                await world.post(lifecycle, raw)
            lifecycle._confirming._query = world.query
            return [{"service": "checkout"}]

        lifecycle._confirming._query = fires_meanwhile
        await world.pass_time(lifecycle, 135)
    assert world.last() == stands


async def test_what_a_sweep_could_not_say_the_next_one_says(world: World) -> None:
    async with world.lifecycle(source(confirm=CONFIRM)) as lifecycle:
        await world.post(lifecycle, alert(), at=0)
        await world.post(lifecycle, resolved(), at=110)
        world.series = [{"service": "checkout"}]

        async def fails_once(_: Sequence[Observation]) -> None:
            lifecycle._publisher._tell = world.tell
            raise Unavailable("no bus")

        lifecycle._publisher._tell = fails_once
        await world.pass_time(lifecycle, 111)
        assert world.last() == "Unknown"
        await world.pass_time(lifecycle, 112)
    assert world.last() == "Healthy"


@pytest.mark.parametrize("refusal", [Malformed("too long"), NotPermitted("not on this subject")], ids=repr)
async def test_an_observation_that_the_bus_refuses_makes_no_other_be_said_again(
    world: World, refusal: Exception
) -> None:
    tell = world.tell

    async def refusing(observations: Sequence[Observation]) -> None:
        if any(one.target.endswith("/bad") for one in observations):
            raise refusal
        await tell(observations)

    world.tell = refusing  # type: ignore[method-assign]  # the bus refuses one target
    async with world.lifecycle() as lifecycle:
        with pytest.raises(type(refusal)):
            await world.post(lifecycle, *(alert(name, service=name) for name in ("a", "bad", "c")), at=0)
        for second in range(1, 10):
            world.clock.seconds = second
            with suppress(type(refusal)):
                await lifecycle.sweep()
    said = Counter(one.target.rpartition("/")[2] for one in world.told)
    assert said.keys() == {"a", "c"}
    assert max(said.values()) <= 2, "at once, and when its refreshSeconds are over"


async def test_a_word_said_in_ignorance_of_another_process_is_taken_back(world: World) -> None:
    sources = source(onResolved="Healthy", refreshSeconds=3600)
    async with world.lifecycle(sources) as one, world.lifecycle(sources) as two:
        await world.post(one, alert("b"), at=5000)
        one._alert_store.alert_cache.apply = lambda _: None  # type: ignore[method-assign,assignment]
        await world.post(two, alert("a"), at=5005)
        await world.post(one, resolved("b"), at=5110)
        assert world.last() == "Healthy"
        del one._alert_store.alert_cache.apply
        await one._alert_store.read()
        await one.sweep()
        await one.sweep()
    healthy, unhealthy = world.told[-2:]
    assert unhealthy.status is Health.UNHEALTHY
    assert healthy.observed_at < unhealthy.observed_at < moment(5111)


async def test_queries_run_every_seconds_and_only_while_an_alert_waits(world: World) -> None:
    async with world.lifecycle(source(confirm=CONFIRM)) as lifecycle:
        await world.post(lifecycle, alert(), at=0)
        await world.pass_time(lifecycle, 100)
        assert world.queries == []
        await world.post(lifecycle, resolved(), at=100)
        await world.pass_time(lifecycle, 160)
    assert len(world.queries) in (4, 5)


async def test_resolved_that_is_believed_is_healthy(world: World) -> None:
    async with world.lifecycle(source(onResolved="Healthy")) as lifecycle:
        await world.post(lifecycle, alert(), at=0)
        await world.post(lifecycle, resolved(), at=110)
        await world.post(lifecycle, resolved("never seen", service="cart"), at=110)
    assert world.statuses() == ["Unhealthy", "Healthy"]
    assert world.told[-1].target == "service/east/shop/cart"


async def test_resolved_first_seen_is_counted_and_says_nothing(world: World) -> None:
    before = counted("reactor_webhook_alerts_total", source="am", fate="ignored")
    async with world.lifecycle() as lifecycle:
        await world.post(lifecycle, resolved(), at=110)
        await world.pass_time(lifecycle, 300)
    assert world.told == []
    assert counted("reactor_webhook_alerts_total", source="am", fate="ignored") == before + 1


async def test_a_target_is_unhealthy_while_any_of_its_alerts_fires(world: World) -> None:
    async with world.lifecycle(source(onResolved="Healthy")) as lifecycle:
        await world.post(lifecycle, alert("a"), alert("b"), at=0)
        await world.post(lifecycle, resolved("a"), alert("b"), at=110)
        assert world.last() == "Unhealthy"
        await world.post(lifecycle, resolved("b"), at=120)
    assert world.statuses() == ["Unhealthy", "Healthy"]


async def test_absence_from_a_group_concludes_nothing(world: World) -> None:
    async with world.lifecycle() as lifecycle:
        await world.post(lifecycle, alert("a"), alert("b", service="cart"), at=0)
        for at in range(10, 600, 10):
            await world.post(lifecycle, alert("b", service="cart"), at=at)
    assert {said.status for said in world.told} == {Health.UNHEALTHY}


async def test_only_alerts_that_match_are_taken_and_the_others_are_counted(world: World) -> None:
    before = counted("reactor_webhook_alerts_total", source="am", fate="unmatched")
    async with world.lifecycle(source(matchers='severity=~"critical|page"')) as lifecycle:
        await world.post(lifecycle, alert("a", severity="info"), alert("b", severity="page"), at=0)
    assert [said.labels["severity"] for said in world.told] == ["page"]
    assert counted("reactor_webhook_alerts_total", source="am", fate="unmatched") == before + 1


async def test_a_foreign_post_on_the_bus_makes_no_time_series(world: World) -> None:
    before = counted("reactor_webhook_alerts_total", source="unknown", fate="unmatched")
    async with world.lifecycle() as lifecycle:
        await world.post(lifecycle, alert(), at=-ROLLED_OUT.total_seconds(), to="stranger")
    assert counted("reactor_webhook_alerts_total", source="unknown", fate="unmatched") == before + 1
    assert world.told == []


async def test_a_post_for_a_source_of_newer_rules_is_left_to_who_has_them(world: World) -> None:
    async with world.lifecycle() as lifecycle:
        with pytest.raises(SourceUnknown, match="no source newer in the rules here"):
            await world.post(lifecycle, alert(), at=0, to="newer")
    async with world.lifecycle(source(name="newer")) as lifecycle:
        await world.post(lifecycle, alert(), at=0, to="newer")
    assert len(world.told) == 1


async def test_two_sources_of_one_name_may_be_about_two_targets(world: World) -> None:
    services = source(matchers=('alertname="Down"', 'service!="x"'))
    clusters = source(target="cluster/{cluster}", signal="brownout")
    async with world.lifecycle(services, clusters) as lifecycle:
        await world.post(lifecycle, alert(cluster="east"), at=0)
        await world.post(lifecycle, alert(cluster="west"), at=-ROLLED_OUT.total_seconds(), to="other")
    assert [(said.target, said.signal) for said in world.told] == [
        ("service/east/shop/checkout", "am"),
        ("cluster/east", "brownout"),
    ]


@pytest.mark.parametrize(
    "labels",
    [
        {}, {"cluster": ""}, {"cluster": "x" * 2000}, {"cluster": "a\nb"}, {"cluster": "\x1b[31ma"},
        {"cluster": "a\x9b"}, {"cluster": "a\x7f"}, {"cluster": "\u202ea"}, {"cluster": "a\u2066"},
    ],
)  # fmt: skip
async def test_an_alert_that_makes_no_target_is_quarantined_and_the_rest_goes_on(
    world: World, labels: dict[str, str]
) -> None:
    before = counted("reactor_webhook_alerts_total", source="am", fate="quarantined")
    async with world.lifecycle(source(target="cluster/{cluster}")) as lifecycle:
        await world.post(lifecycle, labelled(labels), {"status": "nonsense"}, alert("b", cluster="east"), at=0)
    assert [said.target for said in world.told] == ["cluster/east"]
    assert counted("reactor_webhook_alerts_total", source="am", fate="quarantined") == before + 2


async def test_a_restart_forgets_nothing(world: World) -> None:
    async with world.lifecycle(source(confirm=CONFIRM)) as lifecycle:
        await world.post(lifecycle, alert("a"), alert("b", service="cart"), at=0)
        await world.post(lifecycle, resolved("b", service="cart"), at=100)
    world.told.clear()
    async with world.lifecycle(source(confirm=CONFIRM)) as lifecycle:
        world.series = [{"service": "cart"}]
        await world.pass_time(lifecycle, 131)
    latest = {said.target.rpartition("/")[2]: said.status for said in world.told}
    assert latest == {"checkout": Health.UNHEALTHY, "cart": Health.HEALTHY}


async def test_what_could_not_be_said_is_said_when_the_post_comes_again(world: World) -> None:
    async def fails(_: Sequence[Observation]) -> None:
        raise Unavailable("no bus")

    store = world.bus.store(ALERTS)
    more = {"store": store, "clock": world.clock, "query": world.query, "alertmanagers": {}}
    async with AlertLifecycle(sources=[source()], tell=fails, **more) as lifecycle:  # type: ignore[arg-type]
        with pytest.raises(Unavailable):
            await world.post(lifecycle, alert(), at=0)
    async with world.lifecycle() as lifecycle:
        await world.post(lifecycle, alert(), at=0)
    assert world.last() == "Unhealthy"


async def test_two_processes_agree_whichever_takes_the_post(world: World) -> None:
    sources = source(onResolved="Healthy")
    async with world.lifecycle(sources) as one, world.lifecycle(sources) as two:
        await world.post(one, alert("a"), at=0)
        await world.post(two, alert("b"), at=1)
        await world.post(one, resolved("b"), at=110)
        await asyncio.sleep(0)
        await one.sweep()
        await two.sweep()
        assert world.last() == "Unhealthy"
        await world.post(two, resolved("a"), at=120)
        await world.pass_time(one, 125)
        await two.sweep()
    assert world.last() == "Healthy"


async def test_processes_say_the_same_with_the_same_time_so_that_the_bus_keeps_one(world: World) -> None:
    async with world.lifecycle() as one, world.lifecycle() as two:
        await world.post(one, alert(), at=0)
        while world.clock.seconds < 300:
            world.clock.seconds += 7
            await one.sweep()
            await two.sweep()
    again = [said.observed_at for said in world.told if said.observed_at > moment(30)]
    assert len(set(again)) * 2 == len(again)


async def test_many_processes_at_once_lose_no_alert(world: World) -> None:
    async with world.lifecycle() as one, world.lifecycle() as two, world.lifecycle() as three:
        alerts = [alert(f"f{n % 5}", service=f"s{n % 5}") for n in range(60)]
        posts = [
            WebhookPost(source="am", post="0" * 64, alerts=(one_alert,), observed_at=moment(n))
            for n, one_alert in enumerate(alerts)
        ]
        keepers = [one, two, three]
        await asyncio.gather(*(keepers[n % 3].take_post(post) for n, post in enumerate(posts)))
    assert len(await world.bus.store(ALERTS).entries(">")) == 5


async def test_a_process_that_was_stopped_reads_the_bucket_before_it_speaks(world: World) -> None:
    sources = source(onResolved="Healthy")
    async with world.lifecycle(sources) as stopped:
        await world.post(stopped, alert(), at=0)
        await stopped.sweep()
        stopped._alert_store.alert_cache.apply = lambda _: None  # type: ignore[method-assign,assignment]
        async with world.lifecycle(sources) as other:
            await world.post(other, resolved(), at=500)
        del stopped._alert_store.alert_cache.apply
        world.told.clear()
        world.clock.seconds = 1000
        await stopped.sweep()
    assert world.statuses() == ["Healthy"]


async def test_a_keeper_that_can_no_longer_follow_the_bucket_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world.lifecycle() as lifecycle:

        def breaks(_: object) -> None:
            raise RuntimeError("a mistake of ours")

        monkeypatch.setattr(lifecycle._alert_store.alert_cache, "apply", breaks)
        async with world.lifecycle() as other:
            await world.post(other, alert(), at=0)
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="a mistake of ours"):
            await lifecycle.sweep()


async def test_a_backlog_of_one_group_is_taken_at_once_and_in_any_order(world: World) -> None:
    async with (
        world.lifecycle(source(onResolved="Healthy")) as one,
        world.lifecycle(source(onResolved="Healthy")) as two,
    ):
        posts = [(alert(), n * 20.0) for n in range(60)] + [(resolved(ends=1300), 1310.0)]
        world.clock.seconds = 2000
        await asyncio.gather(*(world.post((one, two)[n % 2], raw, at=at) for n, (raw, at) in enumerate(posts[::-1])))
        await one.sweep()
    assert world.last() == "Healthy"


async def test_an_unreadable_state_is_counted_and_written_over(world: World) -> None:
    async with world.lifecycle() as lifecycle:
        await world.post(lifecycle, alert(), at=0)
    store = world.bus.store(ALERTS)
    (entry,) = await store.entries(">")
    await store.put(entry.key, b'{"version": "from the future"}', revision=None)
    before = counted("reactor_quarantined_messages_total", stream="KV_reactor_alerts")
    async with world.lifecycle() as lifecycle:
        assert counted("reactor_quarantined_messages_total", stream="KV_reactor_alerts") == before + 1
        await world.post(lifecycle, alert(), at=20)
    assert b"firing" in (await store.get(entry.key)).value


async def test_a_firing_alert_that_is_not_posted_any_more_runs_out_and_waits_for_proof(world: World) -> None:
    async with world.lifecycle() as lifecycle:
        await world.post(lifecycle, alert(), at=0)
        await world.pass_time(lifecycle, 4.5 * HOUR, step=8)
        assert world.statuses() == ["Unhealthy"]
        assert world.told[-1].observed_at > moment(4.5 * HOUR - 60)
        await world.pass_time(lifecycle, 4.5 * HOUR + 60, step=8)
        assert world.last() == "Unknown resolved"
        await world.post(lifecycle, alert(), at=5 * HOUR)
    assert world.last() == "Unhealthy"
    assert world.told[-1].since == moment(5 * HOUR)


async def test_what_ran_out_recovers_when_a_query_proves_it(world: World) -> None:
    async with world.lifecycle(source(confirm=CONFIRM)) as lifecycle:
        world.series = [{"service": "checkout"}]
        await world.post(lifecycle, alert(), at=0)
        await world.pass_time(lifecycle, 4.5 * HOUR + 90, step=8)
    assert world.statuses() == ["Unhealthy", "Unknown", "Healthy"]


async def test_a_source_with_a_longer_promise_runs_out_later(world: World) -> None:
    async with world.lifecycle(source(maxSilenceSeconds=6 * HOUR)) as lifecycle:
        await world.post(lifecycle, alert(), at=0)
        await world.pass_time(lifecycle, 6 * HOUR, step=20)
        assert world.statuses() == ["Unhealthy"]
        await world.pass_time(lifecycle, 6 * HOUR + 60, step=20)
    assert world.last() == "Unknown resolved"


async def test_a_recovered_alert_is_forgotten_with_a_last_word_that_does_not_go_stale(world: World) -> None:
    async with world.lifecycle(source(onResolved="Healthy")) as lifecycle:
        await world.post(lifecycle, alert(), at=0)
        await world.post(lifecycle, resolved(), at=100)
        await world.pass_time(lifecycle, 100 + 1.1 * HOUR, step=9)
        last = world.told[-1]
        assert (last.status, last.stale_seconds) == (Health.HEALTHY, None)
        assert await world.bus.store(ALERTS).entries(">") == []
        said = len(world.told)
        await world.pass_time(lifecycle, 100 + 1.2 * HOUR, step=9)
        assert len(world.told) == said


async def test_a_bus_that_is_away_stops_no_sweep_for_good(world: World) -> None:
    async with world.lifecycle() as lifecycle:
        await world.post(lifecycle, alert(), at=0)
        world.bus.down = True
        world.clock.seconds = 60
        await lifecycle.sweep()
        with pytest.raises(Unavailable):
            await world.post(lifecycle, alert("b"), at=61)
        world.bus.down = False
        await world.post(lifecycle, alert("b", service="cart"), at=62)
        await lifecycle.sweep()
    assert world.told[-1].target.endswith("cart")


async def test_a_state_that_the_rules_no_longer_want_is_not_spoken_of(world: World) -> None:
    async with world.lifecycle() as lifecycle:
        await world.post(lifecycle, alert(), at=0)
    world.told.clear()
    async with world.lifecycle(source(target="cluster/{service}")) as lifecycle:
        await world.pass_time(lifecycle, 60)
    assert world.told == []


async def test_random_labels_make_no_more_targets_than_the_limit_also_after_a_restart(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    few = source(maxTargets=20)
    quarantined = counted("reactor_webhook_alerts_total", source="am", fate="quarantined")
    refused = counted("reactor_targets_refused_total", source="am")
    async with world.lifecycle(few) as lifecycle:
        await world.post(lifecycle, *(alert(f"f{number}", service=f"s{number}") for number in range(15)), at=0)
        await world.post(lifecycle, *(alert(f"f{number}", service=f"s{number}") for number in range(100)), at=1)
    assert len({said.target for said in world.told}) == 20
    assert counted("reactor_webhook_alerts_total", source="am", fate="quarantined") == quarantined + 80
    assert counted("reactor_targets_refused_total", source="am") == refused + 80
    assert [one.getMessage() for one in caplog.records].count(
        "a source has too many targets, further ones are refused: 20"
    ) == 1
    world.told.clear()
    async with world.lifecycle(few) as lifecycle:  # another process, or this one after a restart
        await world.post(lifecycle, *(alert(f"g{number}", service=f"r{number}") for number in range(100)), at=2)
        await world.post(lifecycle, alert("f3", service="s3"), at=3)
        await world.pass_time(lifecycle, 40)
    assert {said.target for said in world.told} == {f"service/east/shop/s{number}" for number in range(20)}
    assert len(await world.bus.store(ALERTS).entries(">")) == 20


async def test_one_target_has_no_more_alerts_than_the_limit_also_after_a_restart(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Fingerprints that are ever new ones fill the memory and the bucket, which all sources share."""
    few = source(maxAlerts=20)
    quarantined = counted("reactor_webhook_alerts_total", source="am", fate="quarantined")
    refused = counted("reactor_alerts_refused_total", source="am")
    async with world.lifecycle(few) as lifecycle:
        await world.post(lifecycle, *(alert(f"f{number}") for number in range(15)), at=0)
        await world.post(lifecycle, *(alert(f"f{number}") for number in range(100)), at=1)
    assert len(await world.bus.store(ALERTS).entries(">")) == 20
    assert counted("reactor_webhook_alerts_total", source="am", fate="quarantined") == quarantined + 80
    assert counted("reactor_alerts_refused_total", source="am") == refused + 80
    assert [one.getMessage() for one in caplog.records].count(
        "a source has too many alerts, further ones are refused: 20"
    ) == 1
    async with world.lifecycle(few) as lifecycle:  # another process, or this one after a restart
        await world.post(lifecycle, *(alert(f"g{number}") for number in range(100)), at=2)
        await world.post(lifecycle, *(alert(f"f{number}", firing=False, ends=3) for number in range(20)), at=3)
    assert len(await world.bus.store(ALERTS).entries(">")) == 20
    assert world.last() == "Unknown resolved", "those that it has go on: all are resolved"


async def test_alerts_that_are_forgotten_make_room_for_others(world: World) -> None:
    async with world.lifecycle(source(maxAlerts=1, onResolved="Healthy")) as lifecycle:
        await world.post(lifecycle, alert("a"), at=0)
        await world.post(lifecycle, alert("b"), at=1)
        await world.post(lifecycle, alert("a", firing=False, ends=2), at=2)
        assert world.last() == "Healthy"
        await world.pass_time(lifecycle, 2 * HOUR, step=30)
        await world.post(lifecycle, alert("b"), at=2 * HOUR)
    assert world.last() == "Unhealthy"


async def test_alerts_that_are_forgotten_make_room_for_other_targets(world: World) -> None:
    async with world.lifecycle(source(maxTargets=1, onResolved="Healthy")) as lifecycle:
        await world.post(lifecycle, alert("a", service="a"), at=0)
        await world.post(lifecycle, alert("b", service="b"), at=1)
        await world.post(lifecycle, alert("a", service="a", firing=False, ends=2), at=2)
        await world.pass_time(lifecycle, 2 * HOUR, step=30)
        await world.post(lifecycle, alert("b", service="b"), at=2 * HOUR)
    assert {said.target.rpartition("/")[2] for said in world.told} == {"a", "b"}
    assert world.last() == "Unhealthy"


async def test_a_listed_alert_beyond_the_limit_is_refused_too(world: World) -> None:
    world.apis["main"] = Api()
    for number in range(5):
        world.apis["main"].lists(alert(f"f{number}", service=f"s{number}"))
    async with world.lifecycle(source(maxTargets=2, matchers="alertname=Down")) as lifecycle:
        await world.pass_time(lifecycle, 40)
    assert len({said.target for said in world.told}) == 2


@pytest.mark.parametrize("ahead", [600, 365 * 24 * HOUR], ids=["ten minutes", "a year"])
async def test_an_alert_that_starts_in_the_future_opens_now_and_ends_with_its_resolved(
    world: World, ahead: float
) -> None:
    """A Prometheus whose clock was ahead, and is set right before the alert ends."""
    async with world.lifecycle(source(onResolved="Healthy")) as lifecycle:
        await world.post(lifecycle, alert(starts=ahead), at=0)
        assert (world.told[-1].status, world.told[-1].observed_at) == (Health.UNHEALTHY, moment(0))
        await world.post(lifecycle, alert(starts=ahead), at=60)
        await world.post(lifecycle, resolved(starts=ahead, ends=110), at=110)
        assert world.last() == "Healthy"
        await world.post(lifecycle, alert(starts=ahead), at=111)  # the other one of the pair, a moment late
    assert world.last() == "Healthy"
