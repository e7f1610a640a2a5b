"""Evidence in the keeper's observations: a repeated one is none, a POST, a poll and a query are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from bus import subjects
from bus.messages import Health, Observation, RefreshRequest
from reactor.alerts.lifecycle import AlertLifecycle
from reactor.alerts.look_requests import serve
from tests.unit.webhook.builders import CONFIRM, SHOP, Api, World, alert, counted, moment, resolved, source


def proven_until(said: Observation) -> float:
    """In seconds from zero."""
    return (said.observed_at + timedelta(seconds=said.valid_seconds or 0) - moment(0)).total_seconds()


async def ask(lifecycle: AlertLifecycle, not_before: float, *targets: str) -> None:
    await lifecycle.refresh("am", RefreshRequest(targets=targets or (SHOP.target,), not_before=moment(not_before)))


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def polled(world: World) -> World:
    world.apis = {"a": Api(), "b": Api()}
    return world


# --- without an Alertmanager to ask ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("keys", "seconds"), [({}, 90), ({"staleSeconds": 60}, 60), ({"maxSilenceSeconds": 400}, 400)])
async def test_a_post_proves_for_max_silence_seconds_and_its_repetitions_for_no_longer(
    world: World, keys: dict[str, Any], seconds: float
) -> None:
    async with world.lifecycle(source(**keys)) as lifecycle:
        await world.post(lifecycle, alert(), at=5)
        await world.pass_time(lifecycle, 900)
    assert len(world.told) > 10
    assert {round(proven_until(said), 3) for said in world.told} == {5 + seconds}
    assert {(said.source, said.since) for said in world.told} == {("", moment(5))}


async def test_repetitions_keep_it_from_going_stale_when_they_prove_nothing_any_more(world: World) -> None:
    async with world.lifecycle() as lifecycle:
        await world.post(lifecycle, alert(), at=5)
        await world.pass_time(lifecycle, 3600, step=5)
    assert world.statuses() == ["Unhealthy"]
    assert world.told[-1].observed_at > moment(3600 - 35)
    assert world.told[-1].stale_seconds == 90


async def test_the_next_post_is_said_at_once_and_proves_again(world: World) -> None:
    async with world.lifecycle() as lifecycle:
        await world.post(lifecycle, alert(), at=5)
        await world.pass_time(lifecycle, 299)
        await world.post(lifecycle, alert(), at=300)
    assert (world.told[-1].observed_at, world.told[-1].since) == (moment(300), moment(5))
    assert proven_until(world.told[-1]) == 390


async def test_all_processes_say_a_post_with_the_same_time(world: World) -> None:
    async with world.lifecycle() as one, world.lifecycle() as two:
        await world.post(one, alert(), at=5)
        for at in (300, 600):
            await world.pass_time(one, at - 1)
            await world.pass_time(two, at)
            await world.post(one, alert(), at=at)
            await two.sweep()
        said = [one.observed_at for one in world.told if one.observed_at in (moment(300), moment(600))]
    assert said == [moment(300)] * 2 + [moment(600)] * 2


async def test_an_alert_that_began_again_while_it_was_not_seen_counts_only_since_then(world: World) -> None:
    """The bus was away: its resolved reached no reactor."""
    async with world.lifecycle() as lifecycle:
        await world.post(lifecycle, alert(starts=0), at=5)
        await world.pass_time(lifecycle, 60)
        await world.post(lifecycle, alert(starts=50), at=61)
        assert world.told[-1].since == moment(61)
        await world.post(lifecycle, alert(starts=50), at=361)
    assert world.told[-1].since == moment(61)


# --- with one --------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def another_fires(polled: World) -> AsyncIterator[AlertLifecycle]:
    """An alert is known, and the API lists one more that was never posted: of the service `cart`."""
    async with polled.lifecycle(source(matchers='alertname="Down"')) as lifecycle:
        polled.apis["a"].lists(alert())
        await polled.post(lifecycle, alert(), at=5)
        await polled.pass_time(lifecycle, 20)
        polled.apis["a"].lists(alert("other", service="cart"))
        polled.told.clear()
        yield lifecycle


async def test_what_a_poll_finds_is_said_before_what_it_confirms(polled: World) -> None:
    """A group would be decided on half of it: moved to a backend of which the same answer says that its alert fires."""
    async with another_fires(polled) as lifecycle:
        await ask(lifecycle, 20)
    assert [(said.target.rpartition("/")[2], proven_until(said)) for said in polled.told] == [
        ("cart", 20), ("checkout", 20),
    ]  # fmt: skip


async def test_what_a_poll_confirms_waits_until_what_it_finds_is_stored(polled: World) -> None:
    """Two ask: the second finds the poll of the first ended, while the first one's news is still on its way."""
    async with another_fires(polled) as lifecycle:
        polled.slow = True
        await asyncio.gather(ask(lifecycle, 20), ask(lifecycle, 20))
    assert polled.told[0].target.endswith("cart")


async def test_where_an_alertmanager_can_be_asked_a_word_proves_until_the_last_poll_that_listed_it(
    polled: World,
) -> None:
    async with polled.lifecycle() as lifecycle:
        polled.apis["a"].lists(alert())
        await polled.post(lifecycle, alert(), at=5)
        await polled.pass_time(lifecycle, 100)
        for api in polled.apis.values():
            api.listed.clear()
        await polled.pass_time(lifecycle, 300)
    assert {said.source for said in polled.told} == {"am"}
    assert {said.since for said in polled.told} == {moment(5)}
    until = [proven_until(said) for said in polled.told]
    assert until == sorted(until)
    assert 60 < until[-1] <= 100
    assert polled.told[-1].observed_at > moment(265)


async def test_a_request_polls_and_says_what_is_listed_now(polled: World) -> None:
    async with polled.lifecycle() as lifecycle:
        polled.apis["b"].lists(alert())
        await polled.post(lifecycle, alert(), at=5)
        await polled.pass_time(lifecycle, 40)
        polled.clock.seconds = 41.5
        before = len(polled.told)
        await ask(lifecycle, 41.2)
    (said,) = polled.told[before:]
    assert (said.status, said.observed_at, said.since) == (Health.UNHEALTHY, moment(41.5), moment(5))
    assert proven_until(said) == 41.5


async def test_what_is_not_listed_any_more_is_not_said_to_fire(polled: World) -> None:
    async with polled.lifecycle() as lifecycle:
        polled.apis["b"].lists(alert())
        await polled.post(lifecycle, alert(), at=5)
        await polled.pass_time(lifecycle, 40)
        polled.apis["b"].listed.clear()
        before = len(polled.told)
        for at in range(41, 50):
            polled.clock.seconds = at
            await ask(lifecycle, 41)
        assert polled.told[before:] == []
        await polled.pass_time(lifecycle, 400)
    assert polled.statuses() == ["Unhealthy", "Unknown resolved"]


async def test_a_silenced_alert_stays_and_proves_nothing(polled: World) -> None:
    async with polled.lifecycle() as lifecycle:
        await polled.post(lifecycle, alert(), at=5)
        polled.apis["a"].lists(alert(), state="suppressed")
        await polled.pass_time(lifecycle, 600, step=5)
        before = len(polled.told)
        await ask(lifecycle, 600)
    assert len(polled.told) == before
    assert polled.statuses() == ["Unhealthy"]
    assert max(map(proven_until, polled.told)) == 5


async def test_a_post_proves_where_no_alertmanager_answers(polled: World) -> None:
    """An Alertmanager's answer counts where one answers: a POST may have been written ten seconds before it came in."""
    async with polled.lifecycle() as lifecycle:
        await polled.post(lifecycle, alert(), at=5)
        await polled.post(lifecycle, alert(), at=60)
        await ask(lifecycle, 59)
        assert max(map(proven_until, polled.told)) == 5
        for api in polled.apis.values():
            api.up = False
        await polled.post(lifecycle, alert(), at=80)
        polled.clock.seconds = 82
        await ask(lifecycle, 79)
    assert proven_until(polled.told[-1]) == 80


async def test_one_poll_serves_all_requests_of_a_moment(polled: World) -> None:
    async with polled.lifecycle() as lifecycle:
        await polled.post(lifecycle, *(alert(f"f{n}", service=f"s{n}") for n in range(9)), at=5)
        await polled.pass_time(lifecycle, 40)
        before = polled.apis["a"].polls
        await asyncio.gather(*(ask(lifecycle, 40, f"service/east/shop/s{n}") for n in range(9)))
    assert polled.apis["a"].polls == before + 1


async def test_an_answer_is_later_than_what_another_process_has_repeated_meanwhile(polled: World) -> None:
    """Or it would be dropped as old, and the window would wait for nothing."""
    async with polled.lifecycle() as one, polled.lifecycle() as two:
        polled.apis["a"].lists(alert())
        await polled.post(one, alert(), at=5)
        await polled.pass_time(one, 300)
        await two.sweep()
        for at in range(300, 340):
            polled.clock.seconds = at + 0.5
            await two.sweep()
            before = len(polled.told)
            await ask(one, at)
            (said,) = polled.told[before:]
            assert said.observed_at > max(word.observed_at for word in polled.told[:before])
            assert proven_until(said) == at + 0.5


async def test_a_request_says_nothing_of_targets_without_alerts(polled: World) -> None:
    async with polled.lifecycle() as lifecycle:
        await polled.post(lifecycle, alert(), at=5)
        before = len(polled.told)
        await ask(lifecycle, 4, "service/east/shop/other")
    assert polled.told[before:] == []


async def test_what_began_again_between_two_polls_counts_only_since_then(polled: World) -> None:
    async with polled.lifecycle() as lifecycle:
        polled.apis["a"].lists(alert(starts=0))
        await polled.post(lifecycle, alert(starts=0), at=5)
        await polled.pass_time(lifecycle, 40)
        polled.apis["a"].listed.clear()
        polled.apis["a"].lists(alert(starts=50))
        polled.clock.seconds = 60
        await ask(lifecycle, 60)
        assert (polled.told[-1].since, proven_until(polled.told[-1])) == (moment(60), 60)
        await polled.pass_time(lifecycle, 200)
    assert polled.told[-1].since == moment(60)


async def test_a_process_that_cannot_poll_does_not_run_out_what_another_sees_listed(polled: World) -> None:
    async with polled.lifecycle() as sees:
        polled.apis["a"].lists(alert())
        await polled.post(sees, alert(), at=5)
        await polled.pass_time(sees, 5 * 3600, step=9)
        for api in polled.apis.values():
            api.up = False
        async with polled.lifecycle() as blind:
            await polled.pass_time(blind, 6 * 3600, step=9)
    assert polled.statuses() == ["Unhealthy"]


async def test_requests_come_over_the_bus(polled: World) -> None:
    before = counted("reactor_source_errors_total", source="am", reason="BadRequest")
    async with polled.lifecycle() as lifecycle, AsyncExitStack() as stack:
        await serve(polled.bus, lifecycle, stack)
        polled.apis["a"].lists(alert())
        await polled.post(lifecycle, alert(), at=5)
        polled.clock.seconds = 40
        await polled.bus.notify(subjects.refresh("am"), b"nonsense")
        request = RefreshRequest(targets=(SHOP.target,), not_before=moment(40))
        await polled.bus.notify(subjects.refresh("am"), request.model_dump_json().encode())
    assert proven_until(polled.told[-1]) == 40
    assert counted("reactor_source_errors_total", source="am", reason="BadRequest") == before + 1


# --- recoveries ------------------------------------------------------------------------------------------------------


async def recovered(world: World, lifecycle: AlertLifecycle) -> None:
    """Healthy at 115 by the query."""
    world.series = [{"service": "checkout"}]
    await world.post(lifecycle, alert(), at=0)
    await world.post(lifecycle, resolved(), at=110)
    await world.pass_time(lifecycle, 130)
    assert world.last() == "Healthy"


async def test_a_confirmed_recovery_proves_until_its_query_and_is_asked_about_again(world: World) -> None:
    async with world.lifecycle(source(confirm=CONFIRM)) as lifecycle:
        await recovered(world, lifecycle)
        first = next(said for said in world.told if said.status is Health.HEALTHY)
        assert (first.source, first.since, proven_until(first)) == ("am", moment(111), 111)
        await world.pass_time(lifecycle, 200)
        assert proven_until(world.told[-1]) == 111
        world.clock.seconds = 201
        await ask(lifecycle, 200.5)
    assert (world.told[-1].since, proven_until(world.told[-1])) == (moment(111), 201)


async def test_a_recovery_that_the_query_does_not_confirm_again_waits_for_its_proof(world: World) -> None:
    async with world.lifecycle(source(confirm=CONFIRM)) as lifecycle:
        await recovered(world, lifecycle)
        world.series = []
        world.clock.seconds = 201
        await ask(lifecycle, 200.5)
        assert (world.last(), world.told[-1].observed_at) == ("Unknown", moment(201))
        world.series = [{"service": "checkout"}]
        await world.pass_time(lifecycle, 220)
    assert world.last() == "Healthy"
    assert world.told[-1].since == moment(216)


async def test_a_query_that_fails_confirms_nothing_and_takes_nothing_back(world: World) -> None:
    async with world.lifecycle(source(confirm=CONFIRM)) as lifecycle:
        await recovered(world, lifecycle)
        world.series = None
        before = len(world.told)
        world.clock.seconds = 131
        await ask(lifecycle, 130.5)
    assert world.told[before:] == []


async def test_half_an_hour_after_its_proof_a_recovery_holds_without_being_asked_about(world: World) -> None:
    async with world.lifecycle(source(confirm=CONFIRM)) as lifecycle:
        await recovered(world, lifecycle)
        await world.pass_time(lifecycle, 2000, step=9)
    assert (world.told[-1].source, world.told[-1].valid_seconds, world.told[-1].stale_seconds) == ("", None, None)


# --- recoveries that are believed ------------------------------------------------------------------------------------

BELIEVED = source(onResolved="Healthy")


async def ended(world: World, lifecycle: AlertLifecycle) -> None:
    """Healthy at 110 by its resolved."""
    await world.post(lifecycle, alert(), at=0)
    await world.post(lifecycle, resolved(), at=110)
    assert world.last() == "Healthy"


def since_and_until(said: Observation) -> tuple[float, float]:
    assert said.since is not None
    return (said.since - moment(0)).total_seconds(), proven_until(said)


async def test_a_believed_recovery_proves_until_the_last_poll_that_did_not_list_its_alert(polled: World) -> None:
    async with polled.lifecycle(BELIEVED) as lifecycle:
        await ended(polled, lifecycle)
        assert (polled.told[-1].source, *since_and_until(polled.told[-1])) == ("am", 110, 110)
        polled.clock.seconds = 125
        await ask(lifecycle, 124.5)
    assert since_and_until(polled.told[-1]) == (110, 125)


async def test_over_a_time_in_which_no_receiver_took_posts_it_is_not_known_to_have_lasted(polled: World) -> None:
    """All reactors were away from 113 to 120: the alert may have fired again and ended, and is not posted."""
    async with polled.lifecycle(BELIEVED) as lifecycle:
        await ended(polled, lifecycle)
    polled.receiving_since = moment(120)
    async with polled.lifecycle(BELIEVED) as lifecycle:
        await polled.pass_time(lifecycle, 121)
        polled.clock.seconds = 125
        await ask(lifecycle, 124.5)
    assert since_and_until(polled.told[-1]) == (120, 125)


async def test_what_a_new_process_repeats_before_its_first_poll_is_the_old_word(polled: World) -> None:
    async with polled.lifecycle(BELIEVED) as lifecycle:
        await ended(polled, lifecycle)
    for api in polled.apis.values():
        api.up = False
    polled.receiving_since = moment(120)
    async with polled.lifecycle(BELIEVED) as lifecycle:
        await polled.pass_time(lifecycle, 160)
    assert since_and_until(polled.told[-1]) == (110, 110)


@pytest.mark.parametrize("state", ["active", "suppressed"])
async def test_it_is_not_over_while_an_alertmanager_lists_it_again(polled: World, state: str) -> None:
    async with polled.lifecycle(BELIEVED) as lifecycle:
        await ended(polled, lifecycle)
        polled.apis["b"].lists(alert(starts=115), state=state)
        polled.clock.seconds = 125
        await ask(lifecycle, 124.5)
        assert max(proven_until(said) for said in polled.told if said.status is Health.HEALTHY) == 110
        if state == "suppressed":
            polled.apis["b"].listed.clear()
            polled.clock.seconds = 140
            await ask(lifecycle, 139.5)
            assert since_and_until(polled.told[-1]) == (125, 140)
        else:
            assert polled.last() == "Unhealthy"


async def test_an_alertmanager_that_does_not_know_the_end_yet_shows_no_relapse(polled: World) -> None:
    """Of a pair one was cut off from Prometheus: it lists the alert until that runs out there."""
    async with polled.lifecycle(BELIEVED) as lifecycle:
        await ended(polled, lifecycle)
        polled.apis["b"].lists(alert(), updated=90)
        polled.clock.seconds = 125
        await ask(lifecycle, 124.5)
    assert since_and_until(polled.told[-1]) == (110, 125)


async def test_while_no_alertmanager_answers_it_waits_and_not_for_good(polled: World) -> None:
    async with polled.lifecycle(BELIEVED) as lifecycle:
        await ended(polled, lifecycle)
        for api in polled.apis.values():
            api.up = False
        for at in range(120, 420, 10):
            polled.clock.seconds = at
            await ask(lifecycle, at - 0.5)
        assert max(map(proven_until, polled.told)) == 110
        polled.clock.seconds = 421
        await ask(lifecycle, 420.5)
    assert since_and_until(polled.told[-1]) == (110, 421)


async def test_where_no_alertmanager_can_be_asked_receivers_that_take_posts_are_the_proof(world: World) -> None:
    world.receiving_since = moment(120)
    async with world.lifecycle(BELIEVED) as lifecycle:
        await ended(world, lifecycle)
        assert (world.told[-1].source, *since_and_until(world.told[-1])) == ("am", 110, 110)
        world.clock.seconds = 125
        await ask(lifecycle, 124.5)
    assert since_and_until(world.told[-1]) == (120, 125)


async def test_one_poll_proves_all_believed_recoveries(polled: World) -> None:
    async with polled.lifecycle(BELIEVED) as lifecycle:
        services = [f"s{n}" for n in range(9)]
        await polled.post(lifecycle, *(resolved(f"f{name}", service=name) for name in services), at=5)
        polled.clock.seconds = 20
        targets = [f"service/east/shop/{name}" for name in services]
        before = polled.apis["a"].polls
        await asyncio.gather(*(ask(lifecycle, 19.5, target) for target in targets))
    assert polled.apis["a"].polls == before + 1
    assert {said.target for said in polled.told if proven_until(said) == 20} == set(targets)


async def test_a_poll_that_cannot_know_since_when_posts_are_taken_is_made_again_soon(polled: World) -> None:
    async with polled.lifecycle(BELIEVED) as lifecycle:
        await ended(polled, lifecycle)
        polled.away = True
        lifecycle.look_now()
        await polled.pass_time(lifecycle, 118)
        assert polled.apis["a"].polls == 0
        polled.away = False
        await polled.pass_time(lifecycle, 124)
        assert polled.apis["a"].polls == 1


async def test_who_believes_no_resolved_asks_no_receiver(polled: World) -> None:
    polled.away = True
    async with polled.lifecycle(source(confirm=CONFIRM)) as lifecycle:
        await polled.pass_time(lifecycle, 40)
    assert polled.apis["a"].polls == 2


@pytest.mark.parametrize(("keys", "settles"), [({}, True), ({"confirm": CONFIRM}, False)], ids=["without", "with"])
async def test_where_a_query_is_given_no_other_signal_settles_a_resolved(
    world: World, keys: dict[str, Any], settles: bool
) -> None:
    async with world.lifecycle(source(**keys)) as lifecycle:
        await world.post(lifecycle, alert(), at=0)
        await world.post(lifecycle, resolved(), at=110)
    assert (world.told[-1].status, world.told[-1].resolved) == (Health.UNKNOWN, settles)


@pytest.mark.parametrize("seconds", [0, 604_801, "5m"])
def test_max_silence_seconds_is_a_number_from_one_to_a_week(seconds: Any) -> None:
    with pytest.raises(ValidationError, match="maxSilenceSeconds"):
        source(maxSilenceSeconds=seconds)


async def test_posts_that_are_refused_one_after_the_other_poll_once_a_second(polled: World) -> None:
    """Each says that posts may have been lost, and hundreds may be tried again and again."""
    async with polled.lifecycle(source(onResolved="Healthy")) as lifecycle:
        await polled.pass_time(lifecycle, 60)
        before = polled.apis["a"].polls
        for _ in range(200):
            polled.clock.seconds += 0.01
            lifecycle.look_now()
            await lifecycle.sweep()
        assert polled.apis["a"].polls - before <= 3
        await polled.pass_time(lifecycle, 64)
        assert polled.apis["a"].polls - before <= 4
