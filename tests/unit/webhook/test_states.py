"""Effect of posts on the state of an alert."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.messages import Health
from reactor.alerts.alert import Alert
from reactor.alerts.states import LATE, AlertOpinion, AlertOutcome, AlertState, health_of, speaker, take
from tests.unit.webhook.builders import SHOP, alert, moment, resolved

Post = tuple[dict[str, object], float]
"""Body of a post, and the second in which it came in."""


def fold(*posts: Post, believe: bool = False) -> tuple[AlertState, list[AlertOutcome]]:
    state: AlertState | None = None
    fates = []
    for raw, at in posts:
        state, fate = take(state, Alert.read(raw), moment(at), opinion=SHOP, believe=believe)
        fates.append(fate)
    assert state is not None
    return state, fates


def test_a_firing_alert_is_unhealthy() -> None:
    state, fates = fold((alert(), 1))
    assert (health_of(state), fates) == (Health.UNHEALTHY, [AlertOutcome.TAKEN])
    assert state.detail == "checkout is down"


def test_what_a_later_release_stored_of_an_alert_is_written_back() -> None:
    stored = {**fold((alert(), 1))[0].model_dump(mode="json"), "ofALaterRelease": {"any": "thing"}}
    again, _ = take(AlertState.model_validate(stored), Alert.read(alert()), moment(301), opinion=SHOP, believe=False)
    assert again.model_dump(mode="json") == {**stored, "last_post_at": again.model_dump(mode="json")["last_post_at"]}


def test_a_repeat_is_a_heartbeat_and_no_new_incident() -> None:
    state, fates = fold((alert(), 1), (alert(), 301), (alert(), 601))
    assert fates == [AlertOutcome.TAKEN, AlertOutcome.REPEATED, AlertOutcome.REPEATED]
    assert (state.changed_at, state.last_post_at) == (moment(1), moment(601))


def test_a_duplicate_within_seconds_changes_nothing_at_all() -> None:
    first, _ = fold((alert(), 1))
    again, fate = take(first, Alert.read(alert()), moment(1.33), opinion=SHOP, believe=False)
    assert again is first
    assert fate is AlertOutcome.REPEATED


def test_a_start_that_moves_is_no_new_episode() -> None:
    state, _ = fold((alert(starts=0), 1), (alert(starts=-35), 30), (alert(starts=20), 60))
    assert (state.status, state.changed_at, state.starts_at) == ("firing", moment(1), moment(20))


def test_resolved_is_not_recovered_unless_it_is_believed() -> None:
    assert health_of(fold((alert(), 1), (resolved(), 110))[0]) is Health.UNKNOWN
    assert health_of(fold((alert(), 1), (resolved(), 110), believe=True)[0]) is Health.HEALTHY


def test_resolved_first_seen_is_ignored_unless_it_is_believed() -> None:
    state, fates = fold((resolved(), 110))
    assert (fates, state.opened, speaker([state])) == ([AlertOutcome.IGNORED], False, None)
    state, fates = fold((resolved(), 110), believe=True)
    assert (fates, health_of(state)) == ([AlertOutcome.TAKEN], Health.HEALTHY)


def test_a_firing_that_comes_after_its_own_end_does_not_open_it_again() -> None:
    assert fold((alert(), 1), (resolved(), 110), (alert(), 2))[1][-1] is AlertOutcome.IGNORED
    assert fold((alert(), 1), (resolved(), 110), (alert(), 111))[1][-1] is AlertOutcome.IGNORED
    assert fold((resolved(), 110), (alert(), 1))[1] == [AlertOutcome.IGNORED, AlertOutcome.IGNORED]


def test_a_list_of_the_api_counts_by_when_it_was_asked_for_and_when_the_alert_was_received() -> None:
    ended = (alert(), 1.0), (resolved(ends=100), 110.0)
    fresh = alert() | {"updatedAt": moment(105).isoformat()}
    assert fold(*ended, (fresh, 111))[1][-1] is AlertOutcome.TAKEN
    assert fold(*ended, (fresh, 109))[1][-1] is AlertOutcome.IGNORED
    old = alert() | {"updatedAt": moment(99).isoformat()}
    assert fold(*ended, (old, 1000))[1][-1] is AlertOutcome.IGNORED


def test_a_new_episode_opens_it_again() -> None:
    state, fates = fold((alert(), 1), (resolved(ends=100), 110), (alert(starts=105), 111))
    assert (state.status, state.changed_at, fates[-1]) == ("firing", moment(111), AlertOutcome.TAKEN)


def test_the_same_episode_that_still_fires_later_opens_it_again() -> None:
    """Prometheus was away: Alertmanager said resolved, and the alert comes back with its old start."""
    state, fates = fold((alert(), 1), (resolved(ends=240), 250), (alert(), 300))
    assert (state.status, fates[-1]) == ("firing", AlertOutcome.TAKEN)


def test_the_end_of_an_older_episode_does_not_close_a_newer_one() -> None:
    state, fates = fold((alert(starts=200), 201), (resolved(ends=100), 202))
    assert (state.status, fates[-1]) == ("firing", AlertOutcome.IGNORED)


def test_a_resolved_without_an_end_ends_when_it_came() -> None:
    raw = resolved() | {"endsAt": None}
    assert fold((alert(), 1), (raw, 110))[0].resolved_at == moment(110)


def test_a_second_resolved_is_a_repeat() -> None:
    state, fates = fold((alert(), 1), (resolved(), 110), (resolved(), 111), (resolved(), 400))
    assert fates[2:] == [AlertOutcome.REPEATED, AlertOutcome.REPEATED]
    assert state.changed_at == moment(110)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_order_of_arrival_does_not_matter_where_times_tell(order: tuple[int, ...]) -> None:
    posts = [(alert(starts=0), 1.0), (resolved(starts=0, ends=100), 110.0), (alert(starts=200), 210.0)]
    state, _ = fold(*(posts[index] for index in order))
    assert (state.status, state.starts_at) == ("firing", moment(200))


SECONDS = st.integers(0, 600)
POST = st.tuples(st.booleans(), SECONDS, SECONDS, SECONDS).map(
    lambda p: (alert(firing=p[0], starts=p[1], ends=None if p[0] else p[1] + p[2]), float(p[1] + p[2] + p[3]))
)


@given(st.lists(POST, min_size=1, max_size=8), st.booleans())
def test_taking_a_post_twice_is_taking_it_once(posts: list[Post], believe: bool) -> None:
    once, _ = fold(*posts, believe=believe)
    raw, at = posts[-1]
    again, fate = take(once, Alert.read(raw), moment(at), opinion=SHOP, believe=believe)
    assert again == once
    assert fate in (AlertOutcome.REPEATED, AlertOutcome.IGNORED)


@given(POST, POST)
def test_two_posts_in_either_order_say_the_same(a: Post, b: Post) -> None:
    if a[1] == b[1]:
        return  # received at the same moment: either may count
    assert health_of(fold(a, b)[0]) is health_of(fold(b, a)[0])


@given(st.lists(POST, min_size=1, max_size=8))
def test_only_a_firing_post_makes_unhealthy_and_only_belief_makes_healthy(
    posts: list[Post],
) -> None:
    state, _ = fold(*posts)
    assert health_of(state) is not Health.HEALTHY
    if all(raw["status"] == "resolved" for raw, _ in posts):
        assert health_of(state) is Health.UNKNOWN
        assert not state.opened


@given(st.lists(POST, min_size=1, max_size=8), SECONDS)
def test_a_firing_received_well_after_all_else_is_believed(posts: list[Post], starts: int) -> None:
    newest = max(at for _, at in posts) + LATE.total_seconds()
    assert fold(*posts, (alert(starts=starts), newest))[0].status == "firing"


def one(fingerprint: str, *posts: Post, confirmed: bool = False) -> AlertState:
    return fold(*posts)[0].model_copy(update={"fingerprint": fingerprint, "confirmed": confirmed})


def test_the_worst_alert_speaks_for_the_target() -> None:
    fires = one("a", (alert(), 9))
    waits = one("b", (alert(), 1), (resolved(), 110))
    over = one("0", (alert(), 1), (resolved(), 90), confirmed=True)
    assert speaker([over, waits, fires]) is fires
    assert speaker([over, waits]) is waits
    assert speaker([over]) is over
    assert speaker([]) is None


def test_two_targets_of_one_alert_have_two_keys() -> None:
    state = one("a", (alert(), 1))
    other = state.model_copy(update={"target": "cluster/east"})
    assert state.key != other.key
    assert other.opinion == AlertOpinion("am", "am", "cluster/east")


@pytest.mark.parametrize("believe", [False, True])
def test_the_end_of_an_episode_that_was_never_posted_begins_the_recovery_again(believe: bool) -> None:
    """The bus was away while it fired again; the group is posted for another alert."""
    before, _ = fold((alert(starts=0), 1), (resolved(starts=0, ends=10), 11), believe=believe)
    before = before.model_copy(update={"confirmed": True})
    state, fate = take(before, Alert.read(resolved(starts=14, ends=18)), moment(19), opinion=SHOP, believe=believe)
    assert (fate, state.changed_at, state.confirmed) == (AlertOutcome.TAKEN, moment(19), believe)
    again, fate = take(state, Alert.read(resolved(starts=0, ends=10)), moment(20), opinion=SHOP, believe=believe)
    assert (fate, again) == (AlertOutcome.REPEATED, state)
