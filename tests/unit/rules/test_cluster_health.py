"""A cluster's Ready: readings, thresholds and heartbeats, by Karmada's own cases and beyond them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.messages import Health
from rules.kinds.cluster_health import HealthSample, damped, heartbeat, probe_reading

H, U, N = Health.HEALTHY, Health.UNHEALTHY, Health.UNKNOWN
READY = {"True": H, "False": U, "Unknown": N, None: None}
CASES = json.loads((Path(__file__).parents[1] / "data/cluster_health.json").read_text())


def cases(group: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in CASES[group]["cases"]]


@pytest.mark.parametrize("case", cases("cluster_ready_threshold"))
def test_ready_is_damped_as_karmada_damps_it(case: dict[str, Any]) -> None:
    cache = case["cache"]
    before = None if cache is None else HealthSample(READY[cache["last"]] or N, cache["since_s"])
    status, _ = damped(
        READY[case["observed"]] or N, before, READY[case["current"]], 0.0,
        failure_seconds=case["failure_s"], success_seconds=case["success_s"],
    )  # fmt: skip
    assert status is READY[case["expect"]]


@pytest.mark.parametrize("case", cases("cluster_probe_reading"))
def test_health_endpoints_are_read_as_karmada_reads_them(case: dict[str, Any]) -> None:
    def status(answer: object) -> int | None:
        return answer if isinstance(answer, int) else None

    assert probe_reading(status(case["readyz"]), status(case["healthz"]))._asdict() == case["expect"]


def test_an_odd_success_is_reached_and_not_ready() -> None:
    assert probe_reading(202) == (True, False)
    assert probe_reading(404, 404) == (False, False)
    assert probe_reading(None) == (False, False)


@pytest.mark.parametrize("case", [case for case in cases("cluster_monitor") if case.values[0]["mode"] == "pull"])
def test_heartbeats_are_judged_as_karmada_judges_them(case: dict[str, Any]) -> None:
    status = heartbeat(
        READY[case["ready"]], first_seen=case["created_s"], last_beat=case["last_heartbeat_s"], now=0.0,
        grace_seconds=case["grace_s"], startup_grace_seconds=case["startup_grace_s"],
    )  # fmt: skip
    assert status is READY[case["expect"]]


@pytest.mark.parametrize(("silent", "status"), [(40.0, H), (40.001, N)])
def test_silence_as_long_as_the_grace_is_not_yet_unknown(silent: float, status: Health) -> None:
    found = heartbeat(H, first_seen=-900, last_beat=-silent, now=0, grace_seconds=40, startup_grace_seconds=60)
    assert found is status


@pytest.mark.parametrize(("since", "status"), [(-60.0, None), (-60.001, N)])
def test_one_without_any_observation_has_the_startup_grace(since: float, status: Health | None) -> None:
    found = heartbeat(None, first_seen=since, last_beat=None, now=0, grace_seconds=40, startup_grace_seconds=60)
    assert found is status


def test_a_flap_shorter_than_the_threshold_changes_nothing() -> None:
    status, sample = damped(H, None, None, 0, failure_seconds=30, success_seconds=30)
    for at, seen in ((10, U), (39, U), (39.5, H), (50, U), (79.9, U)):
        status, sample = damped(seen, sample, status, at, failure_seconds=30, success_seconds=30)
        assert status is H, at
    status, sample = damped(U, sample, status, 80, failure_seconds=30, success_seconds=30)
    assert status is U


@given(st.lists(st.tuples(st.floats(0.1, 40), st.sampled_from([H, U, N])), min_size=1, max_size=40))
def test_ready_only_turns_after_readings_that_agreed_for_the_threshold(steps: list[tuple[float, Health]]) -> None:
    now, before, sample, agreed_since = 0.0, None, None, 0.0
    last: Health | None = None
    for wait, seen in steps:
        now += wait
        if seen is not last:
            last, agreed_since = seen, now
        status, sample = damped(seen, sample, before, now, failure_seconds=30, success_seconds=20)
        if before is not None and (status is H) is not (before is H):
            assert now - agreed_since >= (20 if status is H else 30)
        assert status in (seen, before)
        before = status
