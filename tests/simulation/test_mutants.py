"""Would the tests notice? Each of these is a mistake that a person could make; every one has to be caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bus.messages import Observation
from rules.engine import debounce, decide, observe, owe
from rules.group import Group, Member
from rules.kinds import traffic
from rules.kinds.wish import Wish
from tests.simulation.worlds import Weather, World
from tests.unit.rules.builders import route
from tests.unit.rules.histories import HOME, Run, events, silence, soon
from tests.unit.rules.oracle import Heard, Patience
from tests.unit.rules.test_promises import check_never_early, check_never_lost, rule_of

PATIENCE = Patience(toleration=20, recovery=30)
BAD_WEATHER = Weather(outage=1 / 15, doubt=0.15, delay_max=15, lengths=(10, 15, 40, 300))
CALM = Weather(outage=1 / 15, doubt=0, loss=0, silence=0, delay_max=0, doubles=0, skew_max=0, lengths=(10, 40, 300))
Check = Callable[[], None]


def played(history: list[Heard], **how: Any) -> Run:
    return Run(rule_of(PATIENCE), **how).play([route(HOME), *events(history)], history[-1].heard + 300)


def never_early() -> None:
    for seed in range(4):
        history = World(seed, 600, BAD_WEATHER).history()
        check_never_early(played(history), history, PATIENCE)


def never_lost() -> None:
    for seed in range(6):
        history = [replace(word, stale=None) for word in World(seed, 900, CALM).history()]
        for answer in (soon, silence):
            check_never_lost(played(history, answer=answer), history)


def never_the_last_one() -> None:
    for seed in range(4):
        for _, asked in played(World(seed, 900, BAD_WEATHER).history()).moves:
            assert any(asked.values())


@pytest.mark.parametrize("check", [never_early, never_lost, never_the_last_one])
def test_the_core_as_it_is_passes(check: Check) -> None:
    check()


def caught(check: Check) -> bool:
    try:
        check()
    except AssertionError:
        return True
    return False


def test_windows_that_do_not_wait_while_nobody_knows_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debounce, "_wait", lambda member, _at: member)
    assert caught(never_early)


def test_windows_a_second_too_short_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    length = debounce._length
    monkeypatch.setattr(debounce, "_length", lambda rule, *, healthy: length(rule, healthy=healthy) * 0.95)
    assert caught(never_early)


def test_taking_late_news_as_new_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    original = observe._observation

    def forgetful(rule: Any, group: Group, fact: Observation, now: Any) -> Group:
        return original(rule, group, fact.model_copy(update={"observed_at": now}), now)

    monkeypatch.setattr(observe, "_observation", forgetful)
    history = [
        Heard("a", "Healthy", 0, 0), Heard("b", "Healthy", 0, 0), Heard("a", "Unhealthy", 10, 10),
        Heard("a", "Healthy", 12, 12), Heard("a", "Unhealthy", 11, 13),
    ]  # fmt: skip
    assert caught(lambda: check_never_early(played(history), history, PATIENCE))


def test_windows_that_never_close_again_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    move = debounce._move

    def stubborn(member: Member, at: Any, *, healthy: bool) -> Member:
        return member if healthy and member.window is not None else move(member, at, healthy=healthy)

    monkeypatch.setattr(debounce, "_move", stubborn)
    assert caught(never_early) or caught(never_lost)


def test_forgetting_to_wake_up_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decide, "_wake", lambda *_: None)
    assert caught(never_lost)


def test_taking_silence_for_failure_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    wait = debounce._wait
    monkeypatch.setattr(debounce, "_wait", lambda member, at: debounce._move(wait(member, at), at, healthy=False))
    assert caught(never_early)


def test_zero_everywhere_when_all_is_down_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def zero(_rule: Any, primary: traffic.Backend, secondaries: Any) -> Wish:
        return Wish({backend.service: 0 for backend in [primary, *secondaries]})

    monkeypatch.setattr(traffic, "_all_down", zero)
    assert caught(never_the_last_one)


def test_believing_that_what_was_asked_is_done_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    # An action that nobody carried out and nobody owes: asked for once, lost for good.
    again = owe._again
    monkeypatch.setattr(owe, "_again", lambda group, fresh, now: (again(replace(group, owed=()), (), now)[0], fresh))
    history = [Heard("a", "Unhealthy", 0, 0), Heard("b", "Healthy", 0, 0)]

    def owed_until_done() -> None:
        run = Run(rule_of(PATIENCE), answer=silence).play([route(HOME), *events(history)], 200)
        assert len(run.actions) > 5

    assert caught(owed_until_done)
    monkeypatch.undo()
    owed_until_done()


def test_following_the_first_signal_instead_of_the_worst_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        debounce,
        "combined",
        lambda member, rule, at: next(iter(member.signals.values())).status if rule and at else None,
    )
    history = [
        Heard("a", "Healthy", 0, 0, "x"), Heard("a", "Healthy", 0, 0, "y"), Heard("b", "Healthy", 0, 0, "x"),
        Heard("a", "Unhealthy", 10, 10, "y"),
    ]  # fmt: skip
    last = [word for word in history if word != history[0]]
    assert caught(lambda: check_never_lost(played(history), last))
