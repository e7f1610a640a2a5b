"""Overflow over any history: nothing is moved to what is not known to bear anything, and all weights make 100."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bus.messages import Health, Observation, SetWeights
from rules.loader import load_rules
from rules.rehearsal.simulation import at, play
from tests.examples import many
from tests.unit.rules.test_overflow import RULE, WELL

RULES = load_rules([("web.yaml", RULE + "  onAllDown: Hold\n")]).rules
PERCENTS = st.none() | st.sampled_from([0, 20, 50, 71, 100])
SIGNALS = st.sampled_from(["readiness", "probe"])
WORDS = st.tuples(st.integers(1, 200), st.sampled_from("abc"), st.sampled_from([*Health]), PERCENTS, SIGNALS)


def bears(fact: Observation) -> bool:
    if fact.healthy_percent is not None:
        return fact.healthy_percent > 0
    return fact.status is Health.HEALTHY


@given(st.lists(WORDS, max_size=14))
@many(400)
def test_nothing_is_moved_to_what_is_unseen_or_bad_and_all_make_a_hundred(
    words: list[tuple[int, str, Health, int | None, str]],
) -> None:
    facts = [
        (
            float(second),
            Observation(
                target=f"service/east/shop/{name}", status=status, signal=signal, observed_at=at(second),
                healthy_percent=None if status is Health.UNKNOWN else percent,
            ),
        )
        for second, name, status, percent, signal in sorted(words, key=lambda word: word[0])
    ]  # fmt: skip
    weights = {"a": 1, "b": 0, "c": 0}
    for one in play(RULES, [*WELL, *facts], until=300):
        if not isinstance(one.what, SetWeights):
            continue
        assert sum(one.what.weights.values()) == 100
        last = {(fact.target, fact.signal): fact for when, fact in [*WELL[1:], *facts] if when <= one.at}
        for name, weight in one.what.weights.items():
            if weights[name] or not weight:
                continue
            said = [fact for (target, _), fact in last.items() if target.endswith(f"/{name}")]
            assert said
            assert all(fact.status is not Health.UNKNOWN and bears(fact) for fact in said), (one.at, name)
        weights = dict(one.what.weights)
