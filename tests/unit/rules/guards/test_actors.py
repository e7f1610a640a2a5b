"""Guards that a rule asks, and the limiters that keep them."""

from __future__ import annotations

from typing import Any

from bus.messages import Mode
from rules.engine.known_kinds import implied
from rules.kinds.quorum.model import QuorumRule
from rules.kinds.workload.model import WorkloadFailover
from rules.limits.limiter import LimiterRule
from rules.limits.limiters import CLUSTERS, limits_of
from rules.rulefile.guards import Guards
from rules.rulefile.model import Rule
from rules.rulefile.sources import Quorum
from tests.unit.rules.builders import notification, rule_set
from tests.unit.rules.guards.world import shared, webs


def guards(**keys: Any) -> Guards:
    return Guards.model_validate(keys, strict=False)


def failover(name: str = "nginx", mode: Mode = Mode.ENFORCE, **keys: Any) -> Rule:
    """A WorkloadFailover rule of which only its kind and its guards matter here."""
    return WorkloadFailover.model_construct(name=name, mode=mode, guards=guards(**keys) if keys else None, signals=None)


def asks(rule: Rule, *file_guards: Any) -> list[str]:
    return list(limits_of(rule, file_guards).shared)


def budget(name: str, *rules: Rule, files: Any = ()) -> LimiterRule:
    [found] = [one for one in implied(rules, files, ()) if one.name == f"@{name}"]
    assert isinstance(found, LimiterRule)
    return found


# --- whom a rule asks ----------------------------------------------------------------------------------------------


def test_a_rule_without_guards_asks_no_limiter() -> None:
    assert asks(webs(1)[0]) == []
    assert implied(webs(3), (), ()) == []


def test_limits_of_one_group_need_no_actor() -> None:
    [rule] = webs(1, guards={"cooldownSeconds": 60, "approval": {}})
    assert asks(rule) == []
    assert limits_of(rule).own == (rule.guards,)


def test_a_guard_of_a_file_is_asked_by_the_rules_that_it_means() -> None:
    one, two = webs(2, guards={"maxConcurrent": 1})
    guard = shared(["w1", "shop-*"], name="all", maxConcurrent=2)
    assert asks(one, guard) == ["rule.w0"]
    assert asks(two, guard) == ["guard.all", "rule.w1"]
    assert budget("guard.all", one, two, files=[guard]).guarded == ("w1",)


def test_tokens_are_asked_for_last_and_all_rules_ask_in_one_order() -> None:
    [rule] = webs(1, guards={"ratePerSecond": 1})
    files = [shared(name="z", maxConcurrent=1), shared(name="a", ratePerSecond=1), shared(name="b", maxConcurrent=1)]
    assert asks(rule, *files) == ["guard.b", "guard.z", "guard.a", "rule.w0"]


def test_guards_that_only_count_peers_are_asked_first() -> None:
    [rule] = webs(1, guards={"maxUnhealthy": 0})
    files = [shared(name="a", maxConcurrent=1), shared(name="b", maxConcurrent=1, maxUnhealthy=2)]
    assert asks(rule, *files) == ["rule.w0", "guard.a", "guard.b"]


def test_a_rehearsal_has_guards_of_its_own() -> None:
    [real], [dry] = webs(1), webs(1, mode="DryRun")
    guard = shared(maxConcurrent=1)
    assert asks(dry, guard) == ["guard.all~dry-run"]
    assert asks(real, guard) == ["guard.all"]


def test_a_rule_that_is_off_needs_no_guard() -> None:
    assert implied(webs(1, mode="Off"), [shared(maxConcurrent=1)], ()) == []


# --- what WorkloadFailover has by default --------------------------------------------------------------------------


def test_workload_failover_is_limited_by_default() -> None:
    assert asks(failover()) == ["clusters", "evictions"]
    clusters = budget("clusters", failover("one"), failover("two"))
    assert (clusters.guards.max_unhealthy, clusters.guards.rounding) == ("40%", "Down")
    assert (clusters.peers, clusters.at_least, clusters.guarded) == (("cluster/*",), 3, ("one", "two"))
    evictions = budget("evictions", failover("one"), failover("two"))
    assert (evictions.guards.rate_per_second, evictions.peers) == (0.5, ())


def test_what_is_said_takes_the_place_of_a_default() -> None:
    assert asks(failover(ratePerSecond=2)) == ["clusters", "rule.nginx"]
    assert asks(failover(maxUnhealthy="100%")) == ["rule.nginx", "evictions"]
    assert asks(failover(minHealthy=2)) == ["rule.nginx", "evictions"]
    assert asks(failover(maxConcurrent=2)) == ["clusters", "rule.nginx", "evictions"]
    assert asks(failover(), shared(ratePerSecond=2)) == ["clusters", "guard.all"]


def test_switching_the_default_off_leaves_no_limit_on_peers() -> None:
    rule = budget("rule.nginx", failover(maxUnhealthy="100%"))
    assert rule.guards.max_unhealthy == "100%"
    assert rule.guards is not CLUSTERS


# --- whom an actor counts ------------------------------------------------------------------------------------------


def test_peers_are_by_default_what_the_rules_act_on() -> None:
    limit: dict[str, Any] = {"maxUnhealthy": 2}
    assert budget("rule.w0", *webs(1, guards=limit)).peers == ("service/**",)
    assert budget("rule.nginx", failover(**limit)).peers == ("cluster/*",)
    assert budget("rule.oncall", *rule_set(notification(guards=limit)).rules).peers == ("service/east/**",)
    assert budget("guard.all", *webs(2), failover(), files=[shared(**limit)]).peers == ("service/**", "cluster/*")
    assert budget("guard.all", *webs(2), files=[shared(**limit, peers="zone/*/a")]).peers == ("zone/*/a",)


def test_no_target_is_counted_where_nothing_asks_for_it() -> None:
    assert budget("guard.all", *webs(2), files=[shared(maxConcurrent=1)]).peers == ()


def test_a_rules_own_guard_uses_the_rules_signals() -> None:
    assert budget("rule.w0", *webs(1, signals=["probe"], guards={"maxUnhealthy": 1})).signals == ("probe",)
    assert budget("guard.all", *webs(1, signals=["probe"]), files=[shared(maxUnhealthy=1)]).signals is None


def test_a_quorum_source_is_an_actor() -> None:
    source = Quorum(
        name="zone-a", kind="Quorum", members="node/prod/*", target="zone/prod/a", unhealthy_at=2,
    )  # fmt: skip
    [actor] = implied((), (), [source])
    assert isinstance(actor, QuorumRule)
    assert (actor.name, actor.source) == ("@quorum.zone-a", source)
