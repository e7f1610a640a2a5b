"""The promises of the product, over any history that can happen."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bus.messages import Action, Mode, SetWeights
from rules.engine.decide import decide
from rules.engine.group_codec import dump_group, load_group
from rules.rehearsal.simulation import at
from rules.rulefile.model import Rule
from tests.unit.rules.builders import Event, route, the_rule
from tests.unit.rules.histories import (
    BACKENDS,
    HOME,
    MEDDLING,
    QUIET,
    RULES,
    SERVICES,
    Run,
    done,
    end,
    events,
    instants,
    silence,
    soon,
    trouble,
    words,
)
from tests.unit.rules.oracle import Heard, Patience, could_know

QUICK = settings(max_examples=60)
PATIENCE = st.builds(Patience, st.sampled_from([0, 3, 10]), st.sampled_from([0, 7]), st.booleans())


def rule_of(patience: Patience, **keys: Any) -> Rule:
    unknown = "Unhealthy" if patience.unknown_is_bad else "Hold"
    windows = {"tolerationSeconds": patience.toleration, "recoverySeconds": patience.recovery}
    return the_rule(**windows, treatUnknownAs=unknown, backends=BACKENDS, **keys)


def played(rule: Rule, history: list[Heard], *more: Event, **how: Any) -> Run:
    return Run(rule, **how).play([route(HOME), *events(history), *more], end(history) + QUIET)


# --- never early ---------------------------------------------------------------------------------------------------


MEMORY = 120
"""A secondary may be used although it was left before, when no other is; so it may have been bad before it was used."""


def check_never_early(run: Run, history: list[Heard], patience: Patience) -> None:
    """Check that a backend that loses all its weight had been bad for long enough by its observations, unless the
    primary takes over."""
    weights, got = HOME, dict.fromkeys(SERVICES, 0.0)
    for now, asked in run.moves:
        for service in SERVICES:
            if weights[service] and not asked[service] and (service == "a" or not asked["a"]):
                first = int(got[service]) if service == "a" else max(int(got[service]) - MEMORY, 0)
                assert could_know(history, service, patience, first, int(now)), (now, service, asked)
            if asked[service] and not weights[service]:
                got[service] = now
        weights = asked


@given(words(), PATIENCE, st.sampled_from(["Hold", "Primary", "Spread"]))
@QUICK
def test_no_backend_loses_traffic_before_its_toleration_is_over(
    history: list[Heard], patience: Patience, all_down: str
) -> None:
    run = played(rule_of(patience, onAllDown=all_down), history)
    check_never_early(run, history, patience)


def test_a_window_waits_since_what_a_late_word_says_and_not_since_the_silence_before_it() -> None:
    """Found by the property above: traffic left a second early."""
    history = [
        Heard("a", "Healthy", 0, 0), Heard("b", "Healthy", 0, 0), Heard("a", "Unhealthy", 0, 0, "y", 6),
        Heard("a", "Unknown", 5, 7, "y"), Heard("a", "Unhealthy", 7, 7),
    ]  # fmt: skip
    patience = Patience(10, 0)
    run = played(rule_of(patience), history)
    check_never_early(run, history, patience)
    assert [(when, dict(weights)) for when, weights in run.moves] == [(12, {"a": 0, "b": 1, "c": 0})]


# --- never lost ----------------------------------------------------------------------------------------------------


def check_never_lost(run: Run, history: list[Heard]) -> None:
    """Check that the final traffic, or what is owed, follows the last observations."""
    last = {word.service: word.status for word in history}
    owed = [dict(owed.action.weights) for owed in run.group.outbox if isinstance(owed.action, SetWeights)]
    weights = owed[-1] if owed else dict(run.group.state.route.backends if run.group.state.route else ())
    ready = [service for service in ("b", "c") if last.get(service) == "Healthy"]
    if last.get("a") == "Healthy":
        assert weights == HOME
    elif last.get("a") == "Unhealthy" and ready:
        assert weights == {service: int(service in ready) for service in SERVICES}


@given(words(unknown=False, delays=False, signals=["x"]), PATIENCE)
@QUICK
def test_a_bad_target_that_stays_bad_gets_its_action(history: list[Heard], patience: Patience) -> None:
    check_never_lost(played(rule_of(patience), history), history)


@given(words(unknown=False, delays=False, signals=["x"]), PATIENCE, st.sampled_from([silence, trouble]))
@QUICK
def test_it_is_owed_whatever_becomes_of_its_outcomes(history: list[Heard], patience: Patience, answer: Any) -> None:
    check_never_lost(played(rule_of(patience), history, answer=answer), history)


# --- never doubled -------------------------------------------------------------------------------------------------


@given(words(), MEDDLING, RULES, st.data())
@QUICK
def test_a_fact_that_comes_again_changes_nothing(
    history: list[Heard], meddling: list[Event], rule: Rule, data: st.DataObject
) -> None:
    run = Run(rule, answer=soon)
    heard: list[Any] = []
    for now, facts in instants([route(HOME), *events(history), *meddling]):
        outcomes = run.take(facts, now)
        for when, outcome in outcomes:
            run.take([outcome], when)
        heard += [*facts, *(fact for _, fact in outcomes)]
        # Of one moment the last word counts, so what comes again is older, or the very last one.
        again = [fact for fact in heard if fact.observed_at < at(now) or fact is heard[-1]]
        # Half a second later, so that a step of a gradual return may just have become due: the fact adds nothing to it.
        without = decide(rule, run.group, [], at(now + 0.5))
        twice = decide(rule, run.group, [data.draw(st.sampled_from(again))], at(now + 0.5))
        assert (twice.group, twice.actions) == (without.group, without.actions)


@given(words(), MEDDLING, RULES, st.sampled_from([done, silence, trouble]))
@QUICK
def test_actions_of_one_id_never_differ(history: list[Heard], meddling: list[Event], rule: Rule, answer: Any) -> None:
    contents: dict[str, Action] = {}
    for _, action in played(rule, history, *meddling, answer=answer).actions:
        assert contents.setdefault(action.id, action) == action


@given(words(), MEDDLING, RULES, st.sampled_from([done, silence, trouble]))
@QUICK
def test_generations_only_grow(history: list[Heard], meddling: list[Event], rule: Rule, answer: Any) -> None:
    run = played(rule, history, *meddling, answer=answer)
    fresh = list(dict.fromkeys(action.id for _, action in run.actions if isinstance(action, SetWeights)))
    assert [int(id_.rpartition("/")[2]) for id_ in fresh] == list(range(1, len(fresh) + 1))


@given(words(), RULES)
@QUICK
def test_nothing_is_asked_that_is_already_so(history: list[Heard], rule: Rule) -> None:
    run = played(rule, history)
    assert all(before != after for (_, before), (_, after) in pairwise([(0, HOME), *run.moves]))


# --- never blind ---------------------------------------------------------------------------------------------------


@given(words(), st.sampled_from(["Hold", "Primary", "Spread", "Zero"]))
@QUICK
def test_not_knowing_never_moves_traffic(history: list[Heard], all_down: str) -> None:
    blind = [word for word in history if word.status != "Unhealthy"]
    assert played(the_rule(backends=BACKENDS, onAllDown=all_down), blind).moves == []


@given(words(), RULES)
@QUICK
def test_a_service_without_observations_never_gets_traffic_but_by_spreading(history: list[Heard], rule: Rule) -> None:
    unheard = [word for word in history if word.service != "b"]
    for _, asked in played(rule, unheard).moves:
        assert not asked["b"]


# --- never the last one --------------------------------------------------------------------------------------------


@given(words(), MEDDLING, RULES)
@QUICK
def test_weights_never_become_all_zero_unless_the_rule_says_so(
    history: list[Heard], meddling: list[Event], rule: Rule
) -> None:
    for _, asked in played(rule, history, *meddling).moves:
        assert any(asked.values()) or getattr(rule, "on_all_down", None) == "Zero"


# --- deterministic, safe to restart, and the same in any order -----------------------------------------------------


@given(words(), MEDDLING, RULES, st.sampled_from([done, silence, trouble]))
@QUICK
def test_a_restart_at_any_moment_forgets_nothing(
    history: list[Heard], meddling: list[Event], rule: Rule, answer: Any
) -> None:
    whole = played(rule, history, *meddling, answer=answer)
    restarted = played(rule, history, *meddling, answer=answer, between=lambda group: load_group(dump_group(group)))
    assert whole.decisions == restarted.decisions


@given(words(signals=["x", "y"]), MEDDLING, RULES, st.randoms(use_true_random=False))
@QUICK
def test_facts_of_one_instant_count_the_same_in_any_order(
    history: list[Heard], meddling: list[Event], rule: Rule, random: Any
) -> None:
    straight, shuffled = Run(rule), Run(rule)
    for now, facts in instants([route(HOME), *events(history), *meddling]):
        mixed = random.sample(facts, len(facts))
        one, other = straight.take(facts, now), shuffled.take(mixed, now)
        assert straight.decisions[-1] == shuffled.decisions[-1]
        assert one == other


@given(words(), MEDDLING, RULES, st.lists(st.integers(0, 150), max_size=20))
@QUICK
def test_looking_more_often_than_needed_changes_nothing(
    history: list[Heard], meddling: list[Event], rule: Rule, looks: list[int]
) -> None:
    watched = played(rule, history, *meddling, looks=looks)
    assert played(rule, history, *meddling).moves == watched.moves


# --- late news, modes ----------------------------------------------------------------------------------------------


@given(words(), RULES, st.sampled_from(SERVICES), st.sampled_from(["Healthy", "Unhealthy", "Unknown"]))
@QUICK
def test_late_news_never_undoes_newer_news(history: list[Heard], rule: Rule, service: str, status: str) -> None:
    run = played(rule, history)
    seen = [word.seen for word in history if word.service == service and word.signal == "x"]
    if not seen or max(seen) == 0:
        return
    now = end(history) + QUIET
    late = Heard(service, status, max(seen) - 1, now, "x")
    after = decide(rule, run.group, [fact for _, fact in events([late])], at(now))
    assert after.group == run.group
    assert after.actions == ()


@given(words(), RULES)
@QUICK
def test_a_dry_run_decides_as_it_would_if_it_acted_and_owes_nothing(history: list[Heard], rule: Rule) -> None:
    dry = rule.model_copy(update={"mode": Mode.DRY_RUN, "notify": ()})
    acting, rehearsing = played(rule, history), played(dry, history)
    assert acting.moves == rehearsing.moves
    assert not any(decision.group.outbox for _, decision in rehearsing.decisions)


@given(words(), MEDDLING, RULES)
@QUICK
def test_a_rule_that_is_off_does_nothing(history: list[Heard], meddling: list[Event], rule: Rule) -> None:
    off = rule.model_copy(update={"mode": Mode.OFF})
    for _, decision in played(off, history, *meddling).decisions:
        assert (decision.actions, decision.held, decision.group.outbox) == ((), None, ())
