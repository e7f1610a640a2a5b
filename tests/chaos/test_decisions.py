"""Proofs of `reactor audit verify` from a stored audit, and the questions that it leaves open."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from bus.messages import DecisionRecord, Health, LookSeen, Observation, TargetEvidence
from reactor.audit.decisions import judge
from reactor.audit.stored_observations import hear
from rules.core.premises import Premise

START = datetime(2026, 1, 1, tzinfo=UTC)
TARGET = "service/east/shop/web"
LEFT = Premise(TARGET, healthy=False, toleration=timedelta(seconds=10))
SEEN = TargetEvidence(
    target=TARGET, status=Health.UNHEALTHY, window_began=START,
    looks=(LookSeen(signal="probe", observed_at=START, since=START),),
)  # fmt: skip


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def said(seconds: float, status: Health, signal: str = "probe") -> Observation:
    return Observation(target=TARGET, status=status, signal=signal, observed_at=at(seconds))


def decided(seconds: float, generation: int, *, weight: int = 0, because: str = "PrimaryUnhealthy") -> DecisionRecord:
    action = {
        "action": "SetWeights", "id": f"web/{generation}", "generation": generation, "because": because,
        "weights": {"web": weight},
    }  # fmt: skip
    return DecisionRecord(
        rule="web", object="east/shop/TrafficSplit/web", decided_at=at(seconds), actions=(action,), evidence=(SEEN,)
    )


def premises(record: DecisionRecord, number: int) -> tuple[tuple[Premise, ...], ...]:
    return ((LEFT,),) if record.actions[number]["because"] == "PrimaryUnhealthy" else ()


GOOD = [said(0, Health.HEALTHY), said(20, Health.UNHEALTHY), said(25, Health.UNHEALTHY)]


def promises(records: list[DecisionRecord], observations: list[Observation]) -> list[str]:
    return [breach.promise for breach in judge(records, hear(observations), premises).breaches]


def test_a_good_audit_passes() -> None:
    assert promises([decided(30, 1), decided(45, 2, weight=1, because="PrimaryHealthy")], GOOD) == []


def test_a_decision_before_its_window_is_over_is_early() -> None:
    assert promises([decided(29, 1)], GOOD) == ["early"]
    assert promises([decided(30, 1)], [*GOOD, said(27, Health.HEALTHY), said(28, Health.UNHEALTHY)]) == ["early"]


def test_a_needless_decision_that_is_put_into_a_record_is_found() -> None:
    assert promises([decided(30, 1)], [*GOOD, said(27, Health.HEALTHY)]) == ["needless"]
    assert promises([decided(60, 1)], [*GOOD, said(27, Health.HEALTHY), said(59, Health.HEALTHY)]) == ["needless"]


def test_a_window_that_ran_out_without_evidence_from_after_its_end_is_needless() -> None:
    def asked(seconds: float, status: Health = Health.UNHEALTHY, **more: Any) -> Observation:
        return said(seconds, status).model_copy(update={"source": "probe", **more})

    seen = [asked(0, Health.HEALTHY), asked(20), asked(25)]
    assert promises([decided(31, 1)], seen) == ["needless"]
    assert promises([decided(31, 1)], [*seen, asked(30.2)]) == []
    assert promises([decided(31, 1)], [*seen[:2], asked(25, valid_seconds=10.0)]) == []


def test_time_in_which_nothing_looked_is_no_part_of_a_window() -> None:
    def looked(seconds: float, since: float, **more: Any) -> Observation:
        return said(seconds, Health.UNHEALTHY).model_copy(update={"source": "probe", "since": at(since), **more})

    before = [said(0, Health.HEALTHY), looked(20, 20), looked(21, 20)]
    restarted = looked(31, 31)
    assert promises([decided(31, 1)], [*before, restarted]) == ["early"]
    assert promises([decided(41, 1)], [*before, restarted, looked(41, 31)]) == []
    unchanged = [looked(20, 20, version="7"), looked(31, 31, version="7")]
    assert promises([decided(31, 1)], [before[0], *unchanged]) == []
    other = said(20, Health.UNHEALTHY, "alert")
    assert promises([decided(31, 1)], [*before, restarted, other]) == []


def test_unknown_and_a_second_opinion_end_no_window() -> None:
    assert promises([decided(30, 1)], [*GOOD, said(27, Health.UNKNOWN), said(28, Health.UNHEALTHY)]) == []
    other = [said(22, Health.UNHEALTHY, "alert"), said(26, Health.HEALTHY)]
    assert promises([decided(30, 1)], [*GOOD, *other]) == []


def test_without_the_facts_nothing_is_claimed() -> None:
    verdict = judge([decided(30, 1)], hear(GOOD[2:]), premises)
    assert verdict.breaches == []
    assert verdict.tested["undecided"] == 1


def test_an_id_that_means_two_things_and_a_generation_that_goes_back_are_caught() -> None:
    assert promises([decided(30, 1), decided(45, 1)], GOOD) == []  # asked for once more: the same thing
    assert promises([decided(30, 1), decided(45, 1, weight=1)], GOOD) == ["doubled"]
    again = [decided(30, 2), decided(45, 1, weight=1, because="PrimaryHealthy")]
    assert promises(again, GOOD) == ["interleaved"]
