"""Lost posts are made up for by Alertmanager's API."""

from __future__ import annotations

import pytest

from bus.messages import Health
from rules.rulefile.sources import AlertmanagerWebhook
from tests.unit.webhook.builders import CONFIRM, Api, World, alert, resolved, source

MATCHED = source(matchers='alertname="Down"')
BELIEVED = source(matchers='alertname="Down"', onResolved="Healthy")


@pytest.fixture
def world() -> World:
    world = World()
    world.apis = {"a": Api(), "b": Api()}
    return world


@pytest.mark.parametrize("kept", [source(), BELIEVED], ids=["confirm", "believed"])
async def test_an_alert_that_stays_absent_is_unknown_and_never_recovered(
    world: World, kept: AlertmanagerWebhook
) -> None:
    """No post has said resolved, so there is nothing to believe."""
    async with world.lifecycle(kept) as lifecycle:
        world.apis["b"].lists(alert())
        await world.post(lifecycle, alert(), at=0)
        await world.pass_time(lifecycle, 59)
        world.apis["b"].listed.clear()
        await world.pass_time(lifecycle, 359)
        assert world.last() == "Unhealthy"
        await world.pass_time(lifecycle, 400)
    assert world.statuses() == ["Unhealthy", "Unknown resolved"]


async def test_a_restart_of_alertmanager_ends_no_alert(world: World) -> None:
    """It keeps no alerts, and lists none until Prometheus has sent them again."""
    async with world.lifecycle(BELIEVED) as lifecycle:
        world.apis["a"].lists(alert())
        await world.post(lifecycle, alert(), at=0)
        for restart in range(60, 1200, 300):
            await world.pass_time(lifecycle, restart)
            world.apis["a"].up = False
            await world.pass_time(lifecycle, restart + 5)
            world.apis["a"].up = True
            world.apis["a"].listed.clear()
            await world.pass_time(lifecycle, restart + 240)
            world.apis["a"].lists(alert())
        await world.pass_time(lifecycle, 1500)
    assert world.statuses() == ["Unhealthy"]


async def test_an_absence_in_which_no_process_looked_does_not_count(world: World) -> None:
    """This process was stopped: whether the alert was listed in the meantime is not known."""
    async with world.lifecycle() as lifecycle:
        world.apis["a"].lists(alert())
        await world.post(lifecycle, alert(), at=0)
        await world.pass_time(lifecycle, 59)
        world.apis["a"].listed.clear()
        await world.pass_time(lifecycle, 100)
        await world.pass_time(lifecycle, 1000, step=900)
        await world.pass_time(lifecycle, 1200)
    assert world.statuses() == ["Unhealthy"]


async def test_what_is_posted_is_not_gone_whatever_is_listed(world: World) -> None:
    async with world.lifecycle() as lifecycle:
        world.apis["a"].lists(alert())
        await world.post(lifecycle, alert(), at=0)
        await world.pass_time(lifecycle, 5)
        world.apis["a"].listed.clear()
        for at in range(120, 1200, 120):
            await world.pass_time(lifecycle, at)
            await world.post(lifecycle, alert())
    assert world.statuses() == ["Unhealthy"]


async def test_a_resolved_that_comes_after_its_absence_is_believed_where_it_may_be(world: World) -> None:
    async with world.lifecycle(BELIEVED) as lifecycle:
        world.apis["a"].lists(alert())
        await world.post(lifecycle, alert(), at=0)
        await world.pass_time(lifecycle, 5)
        world.apis["a"].listed.clear()
        await world.pass_time(lifecycle, 400)
        assert world.last() == "Unknown resolved"
        await world.post(lifecycle, resolved(starts=-600, ends=-300), at=410)  # of an episode before
        assert world.last() == "Unknown resolved"
        await world.post(lifecycle, resolved(ends=90), at=420)
    assert world.last() == "Healthy"


async def test_an_absence_is_proven_as_a_resolved_is(world: World) -> None:
    async with world.lifecycle(source(confirm=CONFIRM)) as lifecycle:
        world.apis["a"].lists(alert())
        await world.post(lifecycle, alert(), at=0)
        await world.pass_time(lifecycle, 5)
        world.apis["a"].listed.clear()
        world.series = [{"service": "checkout"}]
        await world.pass_time(lifecycle, 420)
    assert world.statuses() == ["Unhealthy", "Unknown", "Healthy"]


async def test_a_lost_firing_heals(world: World) -> None:
    async with world.lifecycle(MATCHED) as lifecycle:
        world.apis["b"].lists(alert())
        await world.pass_time(lifecycle, 2)
    assert world.statuses() == ["Unhealthy"]


async def test_a_resolved_alert_that_fires_there_fires_here(world: World) -> None:
    async with world.lifecycle() as lifecycle:
        await world.post(lifecycle, alert(), at=0)
        await world.post(lifecycle, resolved(ends=9), at=10)
        world.apis["a"].lists(alert(), updated=40)
        await world.pass_time(lifecycle, 41)
    assert world.last() == "Unhealthy"


async def test_a_list_older_than_the_resolved_opens_nothing(world: World) -> None:
    async with world.lifecycle() as lifecycle:
        await world.post(lifecycle, alert(), at=0)
        await world.post(lifecycle, resolved(ends=9), at=10)
        world.apis["a"].lists(alert(), updated=8)
        await world.pass_time(lifecycle, 100)
    assert world.last() == "Unknown resolved"


@pytest.mark.parametrize("state", ["suppressed", "unprocessed"])
async def test_a_silenced_alert_is_present_but_opens_nothing(world: World, state: str) -> None:
    async with world.lifecycle(MATCHED) as lifecycle:
        world.apis["a"].lists(alert("known"), alert("unknown", service="cart"), state=state)
        await world.post(lifecycle, alert("known"), at=0)
        await world.pass_time(lifecycle, 200)
    assert {(said.target.rpartition("/")[2], said.status) for said in world.told} == {("checkout", Health.UNHEALTHY)}


async def test_a_resolved_alert_that_is_listed_as_silenced_stays_resolved(world: World) -> None:
    async with world.lifecycle(MATCHED) as lifecycle:
        await world.post(lifecycle, alert(), at=0)
        await world.post(lifecycle, resolved(ends=9), at=10)
        world.apis["a"].lists(alert(), state="suppressed", updated=40)
        await world.pass_time(lifecycle, 100)
    assert world.last() == "Unknown resolved"


async def test_absence_counts_only_when_all_answered(world: World) -> None:
    async with world.lifecycle() as lifecycle:
        world.apis["b"].lists(alert())
        await world.post(lifecycle, alert(), at=0)
        await world.pass_time(lifecycle, 5)
        world.apis["b"].up = False
        await world.pass_time(lifecycle, 600, step=5)
    assert world.statuses() == ["Unhealthy"]


async def test_an_alert_that_was_never_listed_runs_out_and_waits_for_proof(world: World) -> None:
    """Both Alertmanagers died before a poll saw it, and came back empty: its resolved never comes."""
    async with world.lifecycle(source(confirm=CONFIRM)) as lifecycle:
        await world.post(lifecycle, alert(), at=0)
        for api in world.apis.values():
            api.up = False
        await world.pass_time(lifecycle, 40)
        for api in world.apis.values():
            api.up = True
        await world.pass_time(lifecycle, 395)
        assert world.statuses() == ["Unhealthy"]
        await world.pass_time(lifecycle, 440)
        assert world.statuses() == ["Unhealthy", "Unknown"]
        world.series = [{"service": "checkout"}]
        await world.pass_time(lifecycle, 470)
    assert world.last() == "Healthy"


@pytest.mark.parametrize("listed", [True, False])
async def test_an_old_resolved_after_the_second_firing_loses_no_failback(world: World, *, listed: bool) -> None:
    """The pair posts the end of the first episode late, and that of the second never."""
    async with world.lifecycle(source(confirm=CONFIRM)) as lifecycle:
        await world.post(lifecycle, alert(starts=0), at=1)
        await world.pass_time(lifecycle, 99)
        if listed:
            world.apis["a"].lists(alert(starts=90))
        await world.post(lifecycle, alert(starts=90), at=100)
        await world.post(lifecycle, resolved(starts=0, ends=80), at=103)
        await world.pass_time(lifecycle, 110)
        assert world.statuses() == ["Unhealthy"]
        world.apis["a"].listed.clear()
        world.series = [{"service": "checkout"}]
        await world.pass_time(lifecycle, 110 + 6 * 60 + 60)
    assert world.statuses() == ["Unhealthy", "Unknown", "Healthy"]


async def test_an_unlisted_alert_that_is_posted_every_five_minutes_stays(world: World) -> None:
    """It may come from a sender whose API the settings do not name."""
    async with world.lifecycle() as lifecycle:
        for at in range(0, 3600, 310):
            await world.post(lifecycle, alert(), at=at)
            await world.pass_time(lifecycle, at + 309)
    assert world.statuses() == ["Unhealthy"]


async def test_a_new_alert_is_looked_for_within_seconds(world: World) -> None:
    """So that its absence means something, should its Alertmanager die soon."""
    async with world.lifecycle() as lifecycle:
        await world.pass_time(lifecycle, 2)
        world.apis["a"].lists(alert())
        await world.post(lifecycle, alert(), at=3)
        await world.pass_time(lifecycle, 9)
        world.apis["a"].listed.clear()
        await world.pass_time(lifecycle, 9 + 300 + 35)
    assert world.statuses() == ["Unhealthy", "Unknown resolved"]


async def test_a_source_without_matchers_opens_nothing_that_was_not_posted(world: World) -> None:
    """Everything that is routed to us is meant, not everything that Alertmanager has."""
    async with world.lifecycle() as lifecycle:
        world.apis["a"].lists(alert())
        await world.pass_time(lifecycle, 100)
    assert world.told == []


async def test_an_alert_that_is_listed_is_said_for_as_long_as_it_is(world: World) -> None:
    async with world.lifecycle() as lifecycle:
        world.apis["a"].lists(alert())
        await world.post(lifecycle, alert(), at=0)
        await world.pass_time(lifecycle, 6 * 3600, step=9)
    assert (world.clock.now() - world.told[-1].observed_at).total_seconds() < 60


async def test_an_alert_that_is_listed_but_cannot_be_read_is_not_absent(world: World) -> None:
    async with world.lifecycle() as lifecycle:
        world.apis["a"].lists(alert())
        await world.post(lifecycle, alert(), at=0)
        await world.pass_time(lifecycle, 5)
        world.apis["a"].listed = [{"fingerprint": "f1", "labels": None}]
        await world.pass_time(lifecycle, 200)
    assert world.statuses() == ["Unhealthy"]


async def test_a_bad_alert_of_the_api_costs_only_itself(world: World) -> None:
    async with world.lifecycle(MATCHED) as lifecycle:
        world.apis["a"].lists({"labels": None}, alert())
        await world.pass_time(lifecycle, 2)
    assert world.last() == "Unhealthy"
