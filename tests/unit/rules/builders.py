"""Rules, facts and their results, as tests say them: services of `east/shop`, time as seconds from zero."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bus.messages import Backend, Fact, Health, Hold, Notify, Observation, Outcome, Pause, Resume, Route, SetWeights
from rules.catalog import new_group
from rules.core.group import Group
from rules.engine.decide import Decision, decide
from rules.loader import RuleSet, load_rules
from rules.rehearsal.simulation import Emitted, play
from rules.rehearsal.simulation import at as at_
from rules.rulefile.model import Rule

Event = tuple[float, Fact]
OBJECT = "east/shop/TrafficSplit/web"


def rule_file(*rules: Mapping[str, Any], sources: Sequence[Mapping[str, Any]] = ()) -> str:
    """The text of a rule file: JSON is YAML."""
    return json.dumps({"apiVersion": "reactor/v1", "sources": list(sources), "rules": list(rules)})


def rule_set(*rules: Mapping[str, Any]) -> RuleSet:
    return load_rules([("rules.yaml", rule_file(*rules))])


def failover(**keys: Any) -> dict[str, Any]:
    """A TrafficFailover of the route `web`, whose backends are read from it unless given."""
    kind = keys.pop("route_kind", "TrafficSplit")
    return {
        "name": "web", "kind": "TrafficFailover", "mode": "Enforce",
        "route": {"cluster": "east", "kind": kind, "namespace": "shop", "name": "web"},
    } | keys  # fmt: skip


def backends(*services: str | Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [{"service": service} if isinstance(service, str) else service for service in services]


def notification(**keys: Any) -> dict[str, Any]:
    return {"name": "oncall", "kind": "Notification", "mode": "Enforce", "match": "service/east/**"} | keys


def the_rule(**keys: Any) -> Rule:
    return rule_set(failover(**keys)).rules[0]


def target(service: str) -> str:
    return service if "/" in service else f"service/east/shop/{service}"


def seen(service: str, status: str, *, at: float, heard: float | None = None, **more: Any) -> Event:
    """An observation made `at` a second, and heard then or later."""
    stale = more.pop("stale", None)
    moment = at_(at)
    fact = Observation(
        target=target(service), status=Health(status), observed_at=moment, stale_seconds=stale,
        signal=more.pop("signal", "health"), **more,
    )  # fmt: skip
    return (at if heard is None else heard, fact)


def healthy(service: str, *, at: float, **more: Any) -> Event:
    return seen(service, "Healthy", at=at, **more)


def unhealthy(service: str, *, at: float, **more: Any) -> Event:
    return seen(service, "Unhealthy", at=at, **more)


def unknown(service: str, *, at: float, **more: Any) -> Event:
    return seen(service, "Unknown", at=at, **more)


def route(weights: Mapping[str, int], *, at: float = 0, **more: Any) -> Event:
    """The current state of the route `web`."""
    kind = more.pop("kind", "TrafficSplit")
    name, namespace = more.pop("name", "web"), more.pop("namespace", "shop")
    entries = tuple(Backend(service=service, weight=weight) for service, weight in weights.items())
    fact = Route(
        cluster="east", kind=kind, namespace=namespace, name=name, backends=more.pop("entries", entries),
        observed_at=at_(at), **more,
    )  # fmt: skip
    return at, fact


def outcome(action: str, status: str, *, at: float, **more: Any) -> Event:
    rule, _, rest = action.partition("/")
    object_ = rest.rpartition("/")[0]
    return at, Outcome(action=action, rule=rule, object=object_, status=status, observed_at=at_(at), **more)  # type: ignore[arg-type]


def paused(rule: str = "*", *, at: float, seconds: float | None = None) -> Event:
    return at, Pause(rule=rule, by="ann", reason="upgrade", for_seconds=seconds, observed_at=at_(at))


def resumed(rule: str = "*", *, at: float) -> Event:
    return at, Resume(rule=rule, by="ann", observed_at=at_(at))


def said(
    rules: Mapping[str, Any] | Sequence[Mapping[str, Any]], *events: Event, until: float = 1000, outcomes: bool = True
) -> list[Emitted]:
    """Everything that comes out of a history."""
    given = [rules] if isinstance(rules, Mapping) else list(rules)
    history = sorted(events, key=lambda event: event[0])
    return list(play(rule_set(*given).rules, history, until=until, outcomes=outcomes))


def moves(rules: Any, *events: Event, until: float = 1000, outcomes: bool = True) -> list[tuple[float, dict[str, int]]]:
    """The weights that are asked for, with the second in which they are."""
    return weights_of(said(rules, *events, until=until, outcomes=outcomes))


def weights_of(things: Iterable[Emitted]) -> list[tuple[float, dict[str, int]]]:
    return [(one.at, dict(one.what.weights)) for one in things if isinstance(one.what, SetWeights)]


def holds(rules: Any, *events: Event, until: float = 1000, outcomes: bool = True) -> list[tuple[float, str]]:
    """The holds that begin, with their second."""
    things = said(rules, *events, until=until, outcomes=outcomes)
    return [(one.at, one.what.held) for one in things if isinstance(one.what, Hold)]


def words(rules: Any, *events: Event, until: float = 1000) -> list[tuple[float, str]]:
    """Notifications to people, each with its second."""
    return [(one.at, one.what.message) for one in said(rules, *events, until=until) if isinstance(one.what, Notify)]


def step(rule: Rule, group: Group | None, now: float, *events: Event) -> Decision:
    """One decision on these facts."""
    return decide(rule, group or new_group(rule, OBJECT), [fact for _, fact in events], at_(now))
