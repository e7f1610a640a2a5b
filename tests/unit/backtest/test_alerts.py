"""Alerts of the past become the observations that the webhook receiver would have made."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from reactor.workbench.backtest.alert_observations import ReplayedAlerts
from reactor.workbench.backtest.label_targets import Targets
from reactor.workbench.backtest.prometheus_gaps import Outages
from reactor.workbench.backtest.value_runs import ChunkResult, series_of
from rules.rulefile.sources import AlertmanagerWebhook, Confirm
from tests.unit.backtest.builders import STEP, chunk

Told = list[tuple[int, str, str, bool]]


def source(**keys: object) -> AlertmanagerWebhook:
    fields = {"name": "am", "kind": "AlertmanagerWebhook", "target": "custom/{service}"} | keys
    return AlertmanagerWebhook.model_validate(fields, by_name=True)


CONFIRMED = source(confirm=Confirm(prometheus="main", query="fast"))


def told(
    of: AlertmanagerWebhook, firing: Mapping[str, str], *, fast: Mapping[str, str] | None = None,
    away: tuple[float, float] = (0, 0), cut: int | None = None, labels: Mapping[str, str] | None = None,
) -> Told:  # fmt: skip
    """`firing`: service to a letter for each point, `x` where it fires; `fast`: the same for the confirm query."""
    points = max(len(word) for word in firing.values())
    borders = [0, points] if cut is None else [0, cut, points]

    def parts(words: Mapping[str, str], more: Mapping[str, str]) -> list[tuple[object, range, ChunkResult]]:
        out: list[tuple[object, range, ChunkResult]] = []
        for begin, end in pairwise(borders):
            part = chunk(end - begin, first=begin)
            found = [
                series_of({"service": name.rstrip("2"), **more},
                          [[part.second(at), "1"] for at, letter in enumerate(word[begin:end]) if letter == "x"], part)
                for name, word in words.items()
            ]  # fmt: skip
            out.append((part, range(part.points), ChunkResult(tuple(one for one in found if one.starts), 0)))
        return out

    alerts = ReplayedAlerts(of, Outages([away] if away != (0, 0) else []), Targets(of.target))
    own = {"__name__": "ALERTS", "alertstate": "firing", "alertname": "Slow", **(labels or {})}
    events = alerts.observations(parts(firing, own), parts(fast, {}) if fast is not None else None)  # type: ignore[arg-type]
    return [(round(second / STEP), word.target, word.status.value, word.resolved) for second, word in events]


def test_an_alert_that_ends_is_not_believed_without_proof() -> None:
    assert told(source(), {"a": "-xx---"}) == [(1, "custom/a", "Unhealthy", False), (3, "custom/a", "Unknown", True)]


def test_one_that_is_believed_is_healthy_at_once() -> None:
    words = told(source(on_resolved="Healthy"), {"a": "-xx-x-"})
    assert [(at, status) for at, _, status, _ in words] == [
        (1, "Unhealthy"), (3, "Healthy"), (4, "Unhealthy"), (5, "Healthy"),
    ]  # fmt: skip


def test_the_proof_comes_with_the_first_series_that_agrees() -> None:
    words = told(CONFIRMED, {"a": "xx------"}, fast={"b": "xxxxxxxx", "a": "----xxxx"})
    assert [(at, status) for at, _, status, _ in words] == [(0, "Unhealthy"), (2, "Unknown"), (4, "Healthy")]


def test_what_fires_again_is_not_proven_by_what_was_seen_before() -> None:
    words = told(CONFIRMED, {"a": "xx-x----"}, fast={"a": "xx------"})
    assert [(at, status) for at, _, status, _ in words] == [
        (0, "Unhealthy"),
        (2, "Unknown"),
        (3, "Unhealthy"),
        (4, "Unknown"),
    ]


def test_a_prometheus_that_was_away_proves_nothing() -> None:
    words = told(CONFIRMED, {"a": "xx------"}, fast={"a": "--xxxxxx"}, away=(0, 5 * STEP))
    assert [(at, status) for at, _, status, _ in words] == [(0, "Unhealthy"), (2, "Unknown"), (5, "Healthy")]


def test_chunks_make_no_difference() -> None:
    firing, fast = {"a": "-xxx--xx----", "b": "xxxxxxxxxxx-"}, {"a": "----------xx", "b": "xxxxxxxxxxxx"}
    whole = told(CONFIRMED, firing, fast=fast)
    for cut in range(1, 12):
        assert told(CONFIRMED, firing, fast=fast, cut=cut) == whole


def test_two_servers_that_say_the_same_are_one_alert() -> None:
    assert told(source(), {"a": "-xx---", "a2": "--xx--"}) == [
        (1, "custom/a", "Unhealthy", False), (4, "custom/a", "Unknown", True),
    ]  # fmt: skip


def test_matchers_choose_and_a_missing_label_is_no_target() -> None:
    assert told(source(matchers='alertname="Other"'), {"a": "xx"}) == []
    assert told(source(target="custom/{nobody}"), {"a": "xx"}) == []
    assert told(source(matchers=('alertname=~"Sl.*"', 'team="x"')), {"a": "x"}, labels={"team": "x"}) != []
