"""Would the worlds notice? Each of these is a mistake that a person could make in the core; every promise has some.

The table of `docs/promises.md` says by which promise each is caught.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from bus.messages import Health, Mode
from rules.core.desired import PlannedAction
from rules.core.member import Signal
from rules.core.reasons import Because
from rules.engine import deadlines, debounce, decide, guard, observe, signals, unbroken
from rules.engine import outbox as owe
from rules.kinds.traffic import secondaries
from rules.kinds.traffic.backends import BackendView
from rules.kinds.traffic.wanted_weights import DesiredWeights
from rules.kinds.workload import old_copy
from rules.kinds.zone import admission as zone_admission
from rules.kinds.zone import next_step as zone_wish
from rules.kinds.zone import request as zone_request
from rules.limits import limiter as budget_
from rules.limits.rates import PeerHealth
from rules.rehearsal import history
from rules.rehearsal.world.checkers.promise_finding import Promise
from rules.rehearsal.world.play import play_history, play_world
from rules.rehearsal.world.shrink import shortest
from rules.rehearsal.world.world_report import Worlds, as_json, lines
from tests.simulation.rulefiles import rule_set

SEEDS = range(4)
HOURS = 12.0
Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Mutant:
    """A mistake, the rules whose worlds show it, and the promise that it breaks."""

    rules: str
    promise: Promise
    patch: Patch
    seeds: int = 4


def _windows_a_twentieth_too_short(patch: pytest.MonkeyPatch) -> None:
    length = unbroken.window_length
    patch.setattr(deadlines, "window_length", lambda rule, *, healthy: length(rule, healthy=healthy) * 0.95)


def _windows_that_do_not_wait_while_health_is_unknown(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(debounce, "_wait", lambda member, _at: member)


def _late_words_taken_as_new(patch: pytest.MonkeyPatch) -> None:
    original = observe._observation

    def forgetful(rule: Any, group: Any, fact: Any, now: Any, reader: Any) -> Any:
        return original(rule, group, fact.model_copy(update={"observed_at": now}), now, reader)

    patch.setattr(observe, "_observation", forgetful)


def _windows_from_receipt(patch: pytest.MonkeyPatch) -> None:
    """A word that is repeated is taken from when it comes: bad news that is late, or said again, counts without end."""
    heard = debounce.heard

    def received(member: Any, name: str, signal: Signal, rule: Any, reader: Any) -> Any:
        later = signal.observed_at + timedelta(seconds=5)
        return heard(member, name, replace(signal, observed_at=later), rule, reader)

    patch.setattr(observe, "heard", received)


def _unknown_taken_for_bad(patch: pytest.MonkeyPatch) -> None:
    for module in (debounce, signals):
        patch.setattr(module, "is_bad", lambda _rule, status: status is not Health.HEALTHY)


def _unknown_taken_for_healthy(patch: pytest.MonkeyPatch) -> None:
    wait = debounce._wait
    patch.setattr(debounce, "_wait", lambda member, at: debounce._move(wait(member, at), at, healthy=True))
    patch.setattr(BackendView, "healthy_now", property(lambda self: self.settled is True))
    _acts_against_the_present(patch)


def _acts_against_the_present(patch: pytest.MonkeyPatch) -> None:
    """Disable the second check, which would stop a mistaken act: each promise is kept twice."""
    patch.setattr(decide, "present", lambda _rule, _group, _around, desired, _now, _reader: (desired, ()))


def _the_first_signal_decides(patch: pytest.MonkeyPatch) -> None:
    def first(member: Any, rule: Any, at: Any) -> Health | None:
        return next((one.status for one in member.signals.values()), None) if rule and at else None

    patch.setattr(debounce, "combined", first)


def _no_group_wakes_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decide, "_next_deadline", lambda *_: None)


def _windows_that_good_news_does_not_close(patch: pytest.MonkeyPatch) -> None:
    move = debounce._move

    def stubborn(member: Any, at: Any, *, healthy: bool) -> Any:
        return member if healthy and member.window is not None else move(member, at, healthy=healthy)

    patch.setattr(debounce, "_move", stubborn)


def _a_hold_that_is_not_notified(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decide, "_holding", lambda *_: None)


def _ids_used_again(patch: pytest.MonkeyPatch) -> None:
    action = owe._action

    def stuck(rule: Any, group: Any, act: PlannedAction, now: Any) -> Any:
        return action(rule, group, act, now).model_copy(update={"id": f"{group.rule}/{group.object}/1"})

    patch.setattr(owe, "_action", stuck)


def _what_is_on_its_way_is_asked_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(owe, "same", lambda *_: False)


def _what_is_asked_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    again = owe._resent
    patch.setattr(owe, "_resent", lambda group, fresh, now: (again(replace(group, outbox=()), (), now)[0], fresh))


def _weights_as_a_difference(patch: pytest.MonkeyPatch) -> None:
    """The primary's weight is taken away from the current weights, instead of giving all of them as they should be."""
    serve = secondaries._shared

    def delta(rule: Any, primary: Any, secondaries: Any) -> DesiredWeights:
        desired = serve(rule, primary, secondaries)
        if desired.weights is None:
            return desired
        return replace(
            desired, weights={one.service: max(one.weight - (one is primary), 0) for one in [primary, *secondaries]}
        )

    patch.setattr(secondaries, "_shared", delta)


def _zero_where_all_is_down(patch: pytest.MonkeyPatch) -> None:
    def zero(_rule: Any, primary: Any, secondaries: Any) -> DesiredWeights:
        return DesiredWeights(weights={one.service: 0 for one in [primary, *secondaries]}, because=Because.ALL_DOWN)

    patch.setattr(secondaries, "all_down", zero)


def _purged_without_a_look(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(old_copy, "purged_because", lambda *_, **__: Because.REPLACEMENT_HEALTHY)


def _two_zones_at_once(patch: pytest.MonkeyPatch) -> None:
    from rules.kinds.zone import record as zone_record
    from rules.kinds.zone import zone_commands as zone_commands

    def begun(rule: Any, state: Any, fact: Any, now: Any) -> Any:
        return zone_record.begun(
            rule, state, fact.zone, now, because=Because.COMMANDED, by=fact.by, reason=fact.reason, force=True,
            allowed=(),
        )  # fmt: skip

    patch.setattr(zone_commands, "_isolate", begun)
    for check in ("_isolated", "_busy", "_cooling", "_widespread"):
        patch.setattr(zone_admission, check, lambda *_: None)


def _a_zone_by_one_signal(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(zone_admission, "SOURCES_MIN", 1)
    patch.setattr(zone_wish, "SOURCES_MIN", 1)


def _a_zone_that_is_not_proven_well(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(zone_request, "dissent_on", lambda *_: None)
    _acts_against_the_present(patch)


def _too_many_bad_peers_are_no_reason(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(budget_, "peer_health", lambda *_: PeerHealth(0, 0))


def _a_pause_without_effect(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(guard, "_never", lambda *_: None)


def _no_word_about_why(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(decide, "_sentences", lambda _group: ())


def _a_decision_by_what_is_not_recorded(patch: pytest.MonkeyPatch) -> None:
    """Something outside the state and the facts has its part: a record of it proves nothing."""
    calls = iter(range(10**9))
    action = owe._action

    def drifting(rule: Any, group: Any, act: PlannedAction, now: Any) -> Any:
        return action(rule, group, act, now).model_copy(update={"detail": f"call {next(calls)}"})

    patch.setattr(owe, "_action", drifting)


def _dry_run_goes_its_own_way(patch: pytest.MonkeyPatch) -> None:
    length = unbroken.window_length

    def shorter(rule: Any, *, healthy: bool) -> timedelta:
        return length(rule, healthy=healthy) * (0.5 if rule.mode is Mode.DRY_RUN else 1)

    patch.setattr(deadlines, "window_length", shorter)


def _windows_end_by_the_clock(patch: pytest.MonkeyPatch) -> None:
    """As in version 0.1.0: a window that ends inside an outage fires in it, or when it is over."""
    patch.setattr(deadlines, "is_proven", lambda *_: True)
    _acts_against_the_present(patch)


def _any_look_will_do(patch: pytest.MonkeyPatch) -> None:
    """A status seen before an outage counts as proof at its end."""
    patch.setattr(Signal, "proves", lambda *_: True)
    patch.setattr(Signal, "is_seen", lambda *_: True)


def _what_no_look_bridges_goes_on(patch: pytest.MonkeyPatch) -> None:
    """A source that restarts is believed to have looked all the time."""
    patch.setattr(debounce, "is_broken", lambda *_: False)
    patch.setattr(signals, "goes_on", lambda last, new: (last.status_before or last.status) is new.status)


MUTANTS: tuple[Mutant, ...] = (
    Mutant("three_regions", Promise.EARLY, _windows_a_twentieth_too_short),
    Mutant("brownout", Promise.EARLY, _windows_that_do_not_wait_while_health_is_unknown),
    Mutant("linkerd_failover", Promise.BLIND, _late_words_taken_as_new),
    Mutant("oncall", Promise.EARLY, _windows_that_good_news_does_not_close),
    Mutant("active_passive", Promise.LOST, _no_group_wakes_up),
    Mutant("zones drilled", Promise.EARLY, _the_first_signal_decides),
    Mutant("zone_isolation", Promise.LOST, _a_hold_that_is_not_notified),
    Mutant("three_regions", Promise.LOST, _windows_from_receipt),
    Mutant("three_regions", Promise.DOUBLED, _ids_used_again),
    Mutant("three_regions", Promise.DOUBLED, _what_is_on_its_way_is_asked_again),
    Mutant("three_regions", Promise.DOUBLED, _what_is_asked_is_forgotten),
    Mutant("three_regions", Promise.BLIND, _unknown_taken_for_healthy),
    Mutant("three_regions", Promise.BLIND, _unknown_taken_for_bad),
    Mutant("zones drilled", Promise.BLIND, _a_zone_by_one_signal),
    Mutant("plain_clusters", Promise.BLIND, _too_many_bad_peers_are_no_reason, 16),
    Mutant("three_regions", Promise.LAST, _weights_as_a_difference),
    Mutant("proportional", Promise.LAST, _zero_where_all_is_down),
    Mutant("plain_clusters", Promise.LAST, _purged_without_a_look),
    Mutant("zones", Promise.LAST, _two_zones_at_once),
    Mutant("three_regions", Promise.LAST, _a_pause_without_effect),
    Mutant("zone_isolation", Promise.EARLY, _a_zone_that_is_not_proven_well),
    Mutant("active_passive", Promise.NEEDLESS, _windows_end_by_the_clock, 100),
    Mutant("active_passive", Promise.BLIND, _any_look_will_do),
    Mutant("active_passive", Promise.EARLY, _what_no_look_bridges_goes_on, 100),
    Mutant("three_regions", Promise.EXPLAINED, _no_word_about_why),
    Mutant("three_regions", Promise.EXPLAINED, _a_decision_by_what_is_not_recorded),
    Mutant("three_regions", Promise.REHEARSED, _dry_run_goes_its_own_way),
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.patch.__name__.strip("_"))
def test_a_broken_core_is_caught(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.patch(monkeypatch)
    found: set[Promise] = set()
    for seed in range(mutant.seeds):
        found |= {one.promise for one in play_world(rule_set(mutant.rules), seed, HOURS).broken}
        if mutant.promise in found:
            return
    pytest.fail(f"nobody noticed that {mutant.promise} is broken; broken were {sorted(found)}")


def test_every_promise_has_a_mutant() -> None:
    assert {mutant.promise for mutant in MUTANTS} == set(Promise)


# --- the shortest history --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "patch", "most"),
    [
        ("three_regions", _weights_as_a_difference, 4),
        ("proportional", _zero_where_all_is_down, 8),
        ("plain_clusters", _purged_without_a_look, 20),
        ("active_passive", _windows_end_by_the_clock, 8),
    ],
)
def test_what_breaks_is_told_with_a_history_of_a_few_events_that_breaks_it_again(
    rules: str, patch: Patch, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    patch(monkeypatch)
    seeds = ((seed, play_world(rule_set(rules), seed, HOURS)) for seed in SEEDS)
    seed, result = next((seed, result) for seed, result in seeds if result.broken)
    found = shortest(rule_set(rules), result.history, result.broken[0], result.truth)
    assert found.broken.promise is result.broken[0].promise
    assert 0 < len(found.history) <= most < len(result.history)

    told = list(lines(found))
    again = play_history(
        found.rules, history.load_history(told, "broken.jsonl").events, found.broken.at + 1, result.truth
    )
    assert found.broken in again.broken

    worlds = Worlds(HOURS, shortest=found)
    worlds.add(seed, result)
    report = as_json(worlds)
    assert [one["promise"] for one in report["broken"]] == [one.promise.value for one in result.broken]
    assert len(report["shortest"]["history"]) == len(told)


def test_rules_that_are_not_needed_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    _zero_where_all_is_down(monkeypatch)
    rules = rule_set("all down")
    result = next(result for seed in SEEDS if (result := play_world(rules, seed, HOURS)).broken)
    found = shortest(rules, result.history, result.broken[0], result.truth)
    assert [rule.name for rule in found.rules.rules] == [found.broken.rule]
