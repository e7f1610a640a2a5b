"""One reading of an API server: four tries within two seconds, and what their answers mean."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bus.messages import Health
from reactor.clients.kubernetes_port import ApiUnavailable, Forbidden
from reactor.clients.watching import WatchApi
from reactor.sources.probes import cluster_probe
from reactor.sources.probes.cluster_probe import TRIES, answer
from reactor.sources.publisher import HealthPublisher
from reactor.sources.source_context import SourceContext
from rules.rulefile.sources import ClusterProbe
from tests.clock import HandClock, on_virtual_time
from tests.unit.sources.test_publisher import Bus

H, U, N = Health.HEALTHY, Health.UNHEALTHY, Health.UNKNOWN
Answers = dict[str, int | Exception | None]


class Api:
    """An API server that answers as told, try after try; None: not at all."""

    cluster = "east"

    def __init__(self, *tries: Answers) -> None:
        self._tries = tries
        self.asked: list[str] = []

    async def status(self, path: str, *, seconds: float) -> int:
        number = sum(one == "/readyz" for one in self.asked) - (path != "/readyz")
        self.asked.append(path)
        found = self._tries[min(number, len(self._tries) - 1)][path]
        if found is None:
            await asyncio.sleep(seconds)
            raise ApiUnavailable(f"{path} got no answer")
        if isinstance(found, Exception):
            raise found
        return found


def read(*tries: Answers) -> tuple[cluster_probe.ProbeResult, Api]:
    api = Api(*tries)
    return on_virtual_time(answer(cast("WatchApi", api))), api


def test_one_good_try_is_a_good_reading() -> None:
    found, api = read({"/readyz": 200})
    assert (found.status, api.asked) == (H, ["/readyz"])


@pytest.mark.parametrize("bad", [500, 503, 429, ApiUnavailable("cut"), None])
def test_a_reading_fails_after_four_failed_tries(bad: int | Exception | None) -> None:
    found, api = read({"/readyz": bad})
    assert found.status is U
    assert found.detail.startswith("ClusterNotReachable")
    assert api.asked == ["/readyz"] * TRIES


@pytest.mark.parametrize("failures", range(1, TRIES))
def test_a_try_that_succeeds_before_the_last_saves_the_reading(failures: int) -> None:
    bad: Answers = {"/readyz": ApiUnavailable("cut")}
    found, api = read(*[bad] * failures, {"/readyz": 200})
    assert (found.status, len(api.asked)) == (H, failures + 1)


def test_a_try_that_hangs_does_not_keep_the_next_one_waiting() -> None:
    found, _ = read({"/readyz": None}, {"/readyz": 200})
    assert found.status is H


def test_a_server_without_readyz_is_asked_for_its_healthz() -> None:
    found, api = read({"/readyz": 404, "/healthz": 200})
    assert (found.status, api.asked) == (H, ["/readyz", "/healthz"])
    found, _ = read({"/readyz": 404, "/healthz": 500})
    assert (found.status, found.detail) == (U, "ClusterNotReachable: /healthz was answered 500")


def test_an_odd_success_is_reached_and_not_ready() -> None:
    found, _ = read({"/readyz": 202})
    assert (found.status, found.detail) == (U, "ClusterNotReady: /readyz was answered 202")


@pytest.mark.parametrize("ours", [401, 403, Forbidden("the token cannot be read")])
def test_credentials_that_are_refused_say_nothing_about_the_cluster(ours: Any) -> None:
    found, api = read({"/readyz": ours})
    assert (found.status, len(api.asked)) == (N, 1)


def test_no_try_outlives_its_reading() -> None:
    read({"/readyz": None})
    read({"/readyz": 200})


def test_a_mistake_of_ours_is_not_taken_for_the_clusters() -> None:
    with pytest.raises(ZeroDivisionError):
        read({"/readyz": ZeroDivisionError()})


def test_the_answer_turns_after_readings_that_agreed_for_the_threshold() -> None:
    clock, bus = HandClock(), Bus()
    source = ClusterProbe(name="api", kind="ClusterProbe", cluster="east", failure_seconds=30, success_seconds=20)
    api = Api({"/readyz": 200})
    world = cast("SourceContext", SimpleNamespace(clock=clock))
    publisher = HealthPublisher(source, bus.tell, clock)
    ready = cluster_probe._Ready(source, world, cast("WatchApi", api), publisher, "cluster/east")

    def reading(status: int, at: float) -> Health:
        api._tries = ({"/readyz": status},)
        api.asked.clear()
        clock.seconds = at
        on_virtual_time(ready.read())
        said = publisher._standing.get("cluster/east")
        assert said is not None
        return said.status

    assert reading(200, 0) is H
    assert reading(500, 10) is H
    assert reading(200, 20) is H, "a flap shorter than the threshold changes nothing"
    assert reading(500, 30) is H
    assert reading(500, 59) is H
    assert reading(500, 60) is U
    assert reading(200, 70) is U
    assert reading(200, 89) is U
    assert reading(200, 90) is H
    turns = [
        status for before, status in zip([None, *bus.statuses], bus.statuses, strict=False) if status is not before
    ]
    assert turns == [H, U, H]


def test_credentials_that_fail_for_as_long_as_the_threshold_make_it_unknown() -> None:
    clock, bus = HandClock(), Bus()
    source = ClusterProbe(name="api", kind="ClusterProbe", cluster="east")
    api = Api({"/readyz": 200})
    world = cast("SourceContext", SimpleNamespace(clock=clock))
    ready = cluster_probe._Ready(
        source, world, cast("WatchApi", api), HealthPublisher(source, bus.tell, clock), "cluster/east"
    )
    on_virtual_time(ready.read())
    api._tries = ({"/readyz": 403},)
    for at in (10, 39, 40):
        clock.seconds = at
        on_virtual_time(ready.read())
    assert bus.statuses[0] is H
    assert bus.statuses[-1] is N
