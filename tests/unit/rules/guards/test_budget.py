"""Guards that several groups share: who may go, who waits, and why."""

from __future__ import annotations

from typing import Any

from bus.messages import AcquireReply, AcquireRequest, Action, Cluster, Fact, Health, Observation
from rules.catalog import new_group
from rules.engine.decide import Decision, decide
from rules.limits.limiter import LimiterRule
from rules.rehearsal.simulation import at
from rules.rulefile.guards import Guards
from tests.unit.rules.builders import failover, healthy, route, rule_set, unhealthy
from tests.unit.rules.guards.world import World, down, home, never, shared, up, web, webs


def actor(peers: str = "cluster/*", at_least: int = 0, **keys: Any) -> LimiterRule:
    guards = Guards.model_validate(keys, strict=False)
    return LimiterRule(name="@all", guards=guards, guarded=("w",), peers=(peers,), at_least=at_least)


def claim(object_: str, *, when: float = 0, generation: int = 1, wanted: bool = True) -> AcquireRequest:
    return AcquireRequest(
        guard="all", rule="w", object=object_, generation=generation, wanted=wanted, observed_at=at(when)
    )


def seen(cluster: str, status: str = "Unhealthy", *, when: float = 0, **more: Any) -> Observation:
    return Observation(target=f"cluster/{cluster}", status=Health(status), observed_at=at(when), **more)


def listed(cluster: str, *, when: float = 0, exists: bool = True) -> Cluster:
    return Cluster(name=cluster, exists=exists, observed_at=at(when))


class Desk:
    """One guard, and all that it has answered."""

    def __init__(self, rule: LimiterRule) -> None:
        self.rule, self.group = rule, new_group(rule, "*")

    def hear(self, now: float, *facts: Fact) -> dict[str, str]:
        """Give who is answered in this step: `yes`, or why not."""
        decision: Decision = decide(self.rule, self.group, facts, at(now))
        self.group = decision.group
        assert decision.actions == ()
        assert decision.held is None
        said = [fact for fact in decision.emits if isinstance(fact, AcquireReply)]
        return {fact.object: "yes" if fact.granted else fact.reason for fact in said}


# --- turns ---------------------------------------------------------------------------------------------------------


def test_the_group_that_came_first_goes_first() -> None:
    desk = Desk(actor(maxConcurrent=1))
    assert desk.hear(0, claim("b")) == {"b": "yes"}
    assert desk.hear(1, claim("c", when=1)) == {"c": "MaxConcurrent"}
    assert desk.hear(2, claim("a", when=2)) == {"a": "MaxConcurrent"}
    assert desk.hear(3, claim("b", when=3, wanted=False)) == {"c": "yes"}
    assert desk.hear(4, claim("c", when=4, wanted=False)) == {"a": "yes"}


def test_a_group_that_gives_up_loses_its_place() -> None:
    desk = Desk(actor(maxConcurrent=1))
    desk.hear(0, claim("a"), claim("b"), claim("c"))
    assert desk.hear(1, claim("b", when=1, wanted=False)) == {}
    assert desk.hear(2, claim("b", when=2)) == {"b": "MaxConcurrent"}
    assert desk.hear(3, claim("a", when=3, wanted=False)) == {"c": "yes"}


def test_asking_again_gets_the_same_answer_and_takes_nothing() -> None:
    desk = Desk(actor(maxConcurrent=1, ratePerSecond=0.1))
    assert desk.hear(0, claim("a")) == {"a": "yes"}
    assert desk.hear(1, claim("a")) == {"a": "yes"}
    assert desk.hear(15, claim("a", when=15)) == {"a": "yes"}
    assert desk.hear(16, claim("b", when=16)) == {"b": "MaxConcurrent"}
    assert desk.hear(17, claim("a", when=17, wanted=False)) == {"b": "yes"}


def test_a_token_comes_at_its_moment_and_wakes_the_guard() -> None:
    desk = Desk(actor(ratePerSecond=0.5))
    assert desk.hear(0, claim("a"), claim("b"), claim("c")) == {"a": "yes", "b": "RateLimited", "c": "RateLimited"}
    assert desk.group.next_deadline == at(2)
    assert desk.hear(1.999999) == {}
    assert desk.hear(2) == {"b": "yes"}
    assert desk.group.next_deadline == at(4)
    assert desk.hear(4) == {"c": "yes"}


def test_tokens_do_not_save_up() -> None:
    desk = Desk(actor(ratePerSecond=0.5))
    desk.hear(0, claim("a"))
    assert desk.hear(500, claim("b", when=500), claim("c", when=500)) == {"b": "yes", "c": "RateLimited"}


def test_one_that_goes_on_keeps_its_slot_and_pays_again() -> None:
    desk = Desk(actor(maxConcurrent=1, ratePerSecond=0.1))
    desk.hear(0, claim("a"), claim("b"))
    assert desk.hear(1, claim("a", when=1, generation=2)) == {"a": "RateLimited"}
    assert desk.hear(10) == {"a": "yes"}
    assert desk.hear(30, claim("a", when=30, generation=2, wanted=False)) == {"b": "yes"}


def test_a_late_word_revives_nothing() -> None:
    desk = Desk(actor(maxConcurrent=1))
    desk.hear(1, claim("a", when=0), claim("a", when=1, wanted=False))
    assert desk.hear(2, claim("a", when=0)) == {}
    assert desk.hear(3, claim("b", when=3)) == {"b": "yes"}


def test_what_was_given_back_before_it_was_received_is_not_granted() -> None:
    desk = Desk(actor(maxConcurrent=1))
    assert desk.hear(5, claim("a", when=5, wanted=False)) == {}
    assert desk.hear(6, claim("a", when=4)) == {}


def test_a_group_that_falls_silent_loses_its_slot_after_ten_minutes() -> None:
    desk = Desk(actor(maxConcurrent=1))
    desk.hear(0, claim("a"))
    desk.hear(590, claim("b", when=590))
    assert desk.group.next_deadline == at(600)
    assert desk.hear(600) == {"b": "yes"}


def test_claims_of_a_rule_that_it_does_not_guard_concern_it_not() -> None:
    world = World(webs(2), [shared(["w0"], maxConcurrent=1)], answers=never)
    world.play(*home(2), *down(0, 1, at=10), until=20)
    assert sorted(world.times) == [(10, "w0"), (10, "w1")]
    assert {fact.rule for fact in world.claims()} == {"w0"}


# --- peers ---------------------------------------------------------------------------------------------------------


def test_too_many_bad_peers_hold_all_groups_until_they_are_well() -> None:
    desk = Desk(actor(maxUnhealthy=1))
    desk.hear(0, *(seen(name, "Healthy") for name in "abcd"), seen("a", when=0.5))
    assert desk.hear(1, claim("x", when=1)) == {"x": "yes"}
    assert desk.hear(2, seen("b", when=2), claim("y", when=2)) == {"x": "WidespreadFailure", "y": "WidespreadFailure"}
    assert desk.hear(3, seen("b", "Healthy", when=3)) == {"x": "yes", "y": "yes"}


def test_unknown_counts_as_bad_also_by_silence() -> None:
    desk = Desk(actor(maxUnhealthy=1))
    desk.hear(0, seen("a", "Healthy", stale_seconds=30), seen("b", "Healthy"), seen("c", "Unknown"), claim("x"))
    assert desk.hear(29) == {}
    assert desk.group.next_deadline == at(30)
    assert desk.hear(30) == {"x": "WidespreadFailure"}


def test_too_few_healthy_peers_hold() -> None:
    desk = Desk(actor(minHealthy=2))
    assert desk.hear(0, claim("x")) == {"x": "WidespreadFailure"}
    desk.hear(1, seen("a", "Healthy", when=1))
    assert desk.hear(2, seen("b", "Healthy", when=2)) == {"x": "yes"}


def test_a_cluster_of_the_inventory_counts_before_it_has_an_observation() -> None:
    desk = Desk(actor(maxUnhealthy="40%", rounding="Down"))
    assert desk.hear(0, seen("a"), seen("b", "Healthy"), claim("x")) == {"x": "WidespreadFailure"}
    assert desk.hear(1, listed("c", when=1)) == {"x": "yes"}
    assert desk.hear(2, listed("c", when=2, exists=False)) == {"x": "WidespreadFailure"}
    assert desk.hear(3, listed("c", when=1.5)) == {}  # late news


def test_a_cluster_that_is_gone_is_not_bad() -> None:
    desk = Desk(actor(maxUnhealthy=1))
    desk.hear(0, seen("a"), seen("b"), seen("c", "Healthy"), claim("x"))
    assert desk.hear(1, listed("b", when=1, exists=False)) == {"x": "yes"}


def test_with_too_few_peers_bad_ones_are_no_reason_to_hold() -> None:
    desk = Desk(actor(maxUnhealthy="40%", rounding="Down", at_least=3))
    assert desk.hear(0, seen("a"), seen("b", "Healthy"), claim("x")) == {"x": "yes"}
    assert desk.hear(1, seen("c", when=1)) == {"x": "WidespreadFailure"}


def test_what_is_suspended_keeps_its_slot_and_its_token() -> None:
    desk = Desk(actor(maxUnhealthy=0, maxConcurrent=1, ratePerSecond=0.01))
    desk.hear(0, seen("a", "Healthy"), claim("x"), claim("y"))
    assert desk.hear(1, seen("a", when=1)) == {"x": "WidespreadFailure", "y": "WidespreadFailure"}
    assert desk.hear(2, seen("a", "Healthy", when=2)) == {"x": "yes", "y": "MaxConcurrent"}


def test_a_partial_disruption_slows_down_and_a_full_one_stops() -> None:
    desk = Desk(actor(ratePerSecond=1, disruption={"unhealthyAt": "50%", "secondaryRatePerSecond": 0.1}))
    desk.hear(0, *(seen(name, "Healthy") for name in "abcdef"))
    desk.hear(1, *(seen(name, when=1) for name in "abc"))
    said = desk.hear(2, *(claim(name, when=2) for name in "xyz"))
    assert said == {"x": "yes", "y": "Disrupted", "z": "Disrupted"}
    assert desk.hear(11) == {}
    assert desk.hear(12) == {"y": "yes"}
    assert desk.hear(13, *(seen(name, when=13) for name in "def")) == {"x": "Disrupted", "y": "Disrupted"}
    assert desk.hear(100) == {}
    well = [seen(name, "Healthy", when=200) for name in "bcdef"]
    assert desk.hear(200, *well) == {"x": "yes", "y": "yes", "z": "RateLimited"}
    assert desk.hear(200.9) == {"z": "yes"}  # while nothing might be done, nothing filled up


def test_a_bucket_that_was_empty_stays_so_when_the_pace_changes() -> None:
    desk = Desk(actor(ratePerSecond=1, disruption={"unhealthyAt": 3, "secondaryRatePerSecond": 0.01}))
    desk.hear(0, *(seen(name, "Healthy") for name in "abcdef"), claim("x"))
    desk.hear(0.5, *(seen(name, when=0.5) for name in "abc"), claim("y", when=0.5))
    assert desk.group.next_deadline == at(50.5)  # half a token in the first half second, the rest at one in 100 s


def test_the_details_have_numbers() -> None:
    desk = Desk(actor(maxConcurrent=2, maxUnhealthy="40%", rounding="Down"))
    desk.hear(0, seen("a", "Healthy"), claim("x"), claim("y"), claim("z"))
    detail = {one.object: one.detail for one in desk.group.state.queue}
    assert detail["z"] == "2 of 2 in flight: w on x, w on y"
    desk.hear(1, seen("a", when=1))
    detail = {one.object: one.detail for one in desk.group.state.queue}
    assert detail["z"] == "1 of 1 peers are bad, maxUnhealthy 40% allows 0"


# --- together with groups ------------------------------------------------------------------------------------------


def test_a_guard_on_a_rule_is_shared_by_all_its_groups_and_by_no_other_rule() -> None:
    selected = failover(
        name="all", route={"cluster": "east", "kind": "TrafficSplit", "selector": "app"}, guards={"maxConcurrent": 1}
    )
    rules = rule_set(selected, web(9, guards={"maxConcurrent": 1})).rules
    routes = [route({f"a{n}": 1, f"b{n}": 0}, name=f"w{n}", labels={"app": "x"} if n < 2 else {}) for n in (0, 1, 9)]
    services = [healthy(f"{letter}{n}", at=0) for letter in "ab" for n in (0, 1, 9)]
    world = World(list(rules), answers=lambda _action, now: [(now + 5, "Done")])
    world.play(*routes, *services, *(unhealthy(f"a{n}", at=10) for n in (0, 1, 9)), until=100)
    assert world.times == [(10, "all"), (10, "w9"), (15, "all")]


def test_a_slot_is_free_when_the_action_is_done() -> None:
    def answers(action: Action, _now: float) -> list[tuple[float, str]]:
        return [(15, "Done")] if action.rule == "w0" else []

    world = World(webs(2), [shared(maxConcurrent=1)], answers=answers).play(*home(2), *down(0, 1, at=10), until=20)
    assert world.times == [(10, "w0"), (15, "w1")]


def test_a_slot_is_kept_by_what_goes_on_with_another_action() -> None:
    def answers(action: Action, _now: float) -> list[tuple[float, str]]:
        return [(15, "Refused")] if action.id.startswith("w0") and action.generation == 1 else []

    world = World(webs(2), [shared(maxConcurrent=1)], answers=answers).play(*home(2), *down(0, 1, at=10), until=20)
    assert world.times == [(10, "w0"), (15, "w0")]


def test_an_action_that_fails_keeps_its_slot_while_it_is_tried_again() -> None:
    world = World(webs(2), [shared(maxConcurrent=1)], answers=lambda _action, now: [(now + 1, "Failed")])
    world.play(*home(2), *down(0, 1, at=10), until=3000)
    assert world.times == [(10, "w0")]


def test_a_slot_is_free_when_the_action_is_no_longer_wanted() -> None:
    def answers(action: Action, now: float) -> list[tuple[float, str]]:
        return [(now + 1, "Done")] if action.generation > 1 else []  # the first one never comes back

    world = World(webs(2), [shared(maxConcurrent=1)], answers=answers)
    world.play(*home(2), *down(0, 1, at=10), *up(0, at=20), until=30)
    assert world.times == [(10, "w0"), (20, "w0"), (21, "w1")]


def test_the_way_back_asks_no_limiter() -> None:
    world = World(webs(1), [shared(ratePerSecond=0.001)]).play(*home(1), *down(0, at=10), *up(0, at=20), until=60)
    assert world.times == [(10, "w0"), (20, "w0")]


def test_what_is_rehearsed_takes_no_turn_from_what_happens() -> None:
    dry = webs(3, mode="DryRun")[:2]
    real = webs(3)[2:]
    world = World([*dry, *real], [shared(ratePerSecond=0.01)])
    world.play(*home(3), *down(0, 1, at=10), *down(2, at=11), until=60)
    assert world.times == [(10, "w0"), (11, "w2")]
    assert ("w1", "RateLimited") in [(rule, why) for _, rule, why in world.held]


def test_a_rehearsal_gives_its_slot_back() -> None:
    world = World(webs(2, mode="DryRun"), [shared(maxConcurrent=1)]).play(*home(2), *down(0, 1, at=10), until=60)
    assert world.times == [(10, "w0"), (10, "w1")]


def test_two_guards_of_which_one_holds_spend_nothing_of_the_other() -> None:
    guards = [
        shared(name="slow", ratePerSecond=0.01),
        shared(name="well", maxUnhealthy=1, peers="service/*/*/a*"),
    ]
    world = World(webs(3), guards).play(*home(3), *down(0, 1, at=10), *up(1, at=20), *down(2, at=21), until=30)
    assert [(when, rule) for when, rule in world.times] == [(20, "w0")]
    assert not [fact for fact in world.claims() if fact.guard == "guard.slow" and fact.observed_at < at(20)]


def test_groups_that_need_two_guards_never_wait_for_each_other() -> None:
    guards = [shared(name="one", maxConcurrent=1), shared(name="two", maxConcurrent=1)]
    world = World(webs(4), guards, delays=lambda fact, _now: [0.1 * (len(getattr(fact, "rule", "")) % 3) + 0.1])
    world.play(*home(4), *down(0, 1, 2, 3, at=10), until=300)
    assert sorted(rule for _, rule in world.times) == ["w0", "w1", "w2", "w3"]


def test_a_guard_that_is_silent_is_asked_again_and_named() -> None:
    lost: list[Fact] = []

    def delays(fact: Fact, now: float) -> list[float]:
        if isinstance(fact, AcquireReply) and now < 40:
            lost.append(fact)
            return []
        return [0]

    world = World(webs(1), [shared(maxConcurrent=1)], delays=delays).play(*home(1), *down(0, at=10), until=100)
    assert world.held == [(25, "w0", "AwaitingGuard")]
    assert len(lost) == 10  # from 10 on, every 3 s
    assert world.times == [(40, "w0")]


def test_a_request_that_was_lost_is_said_again_after_three_seconds() -> None:
    def delays(fact: Fact, now: float) -> list[float]:
        return [] if isinstance(fact, AcquireRequest) and now < 11 else [0]

    world = World(webs(1), [shared(maxConcurrent=1)], delays=delays).play(*home(1), *down(0, at=10), until=100)
    assert (world.times, world.held) == ([(13, "w0")], [])


def test_a_grant_that_was_lost_is_given_again_within_a_minute() -> None:
    def delays(fact: Fact, now: float) -> list[float]:
        return [] if isinstance(fact, AcquireReply) and fact.granted and 10 < now < 20 else [0]

    world = World(
        webs(2), [shared(maxConcurrent=1)], delays=delays, answers=lambda _action, now: [(now + 5, "Done")]
    ).play(*home(2), *down(0, 1, at=10), until=200)  # fmt: skip
    assert world.times == [(10, "w0"), (70, "w1")]
