"""An executor carries out only what the rules that it knows allow."""

from __future__ import annotations

from typing import Any

import pytest

from bus.messages import Action, Mode, Notify, RouteRef, SetTaints, SetWeights, ZoneStep
from reactor.execute.authority import action_refusal
from rules.engine.routing import Routing
from rules.rehearsal.simulation import at
from tests.unit.rules.builders import failover, notification, rule_set

NOW = at(0)


def weights(rule: str = "web", *, name: str = "web", object_: str = "", **more: Any) -> SetWeights:
    route = RouteRef(cluster="east", kind="TrafficSplit", namespace="shop", name=name)
    fields: dict[str, Any] = {"mode": Mode.ENFORCE, "generation": 1, "because": "X", "decided_at": NOW} | more
    return SetWeights(
        id="i", rule=rule, object=object_ or route.object, route=route, weights={"web": 0, "west": 1}, **fields
    )


def tell(rule: str, *to: str) -> Notify:
    return Notify(
        id="i", rule=rule, object="east/shop/TrafficSplit/web", generation=1, mode=Mode.ENFORCE, because="X",
        decided_at=NOW, to=to, message="m",
    )  # fmt: skip


def zone(**more: Any) -> ZoneStep:
    fields: dict[str, Any] = {"cluster": "east", "zone": "z-a", "object": "east/z-a"} | more
    return ZoneStep(
        id="i", rule="web", generation=1, mode=Mode.ENFORCE, because="X", decided_at=NOW, carrier="Kubernetes",
        phase="Failover", status="InProgress", step="Fence", **fields,
    )  # fmt: skip


def why(action: Action, **keys: Any) -> str:
    rules = rule_set(failover(notify=["ops"]) | keys, notification(notify=["ops"]))
    return action_refusal(Routing.of(rules), action)


@pytest.mark.parametrize("mode", ["Enforce", "Approve"])
def test_what_a_rule_may_ask_for_is_allowed(mode: str) -> None:
    assert why(weights(), mode=mode) == ""
    assert why(tell("web", "ops"), mode=mode) == ""


def test_a_rehearsing_rule_may_only_tell_people() -> None:
    assert why(tell("web", "ops"), mode="DryRun") == ""
    assert "DryRun" in why(weights(), mode="DryRun")


@pytest.mark.parametrize(
    ("action", "keys", "said"),
    [
        (weights("unheard-of"), {}, "not known"),
        (weights(mode=Mode.DRY_RUN), {}, "never carried out"),
        (weights(), {"mode": "Off"}, "Off"),
        (tell("web", "ops"), {"mode": "Off"}, "Off"),
        (tell("web", "ops", "others"), {}, "does not notify others"),
        (weights(name="other"), {}, "does not match"),
        (weights(name="other", object_="east/shop/TrafficSplit/web"), {}, "would write to"),
        (weights("oncall"), {}, "never asks for"),
        (zone(), {}, "never asks for"),
        (
            SetTaints(
                id="i", rule="web", object="cluster/east", generation=1, mode=Mode.ENFORCE, because="X",
                decided_at=NOW, cluster="east", taints=(), carrier="Kubernetes",
            ),
            {}, "never asks for",
        ),
    ],
)  # fmt: skip
def test_what_the_rules_do_not_allow_is_refused(action: Action, keys: dict[str, Any], said: str) -> None:
    assert said in why(action, **keys)


def test_a_name_with_slashes_makes_no_other_object() -> None:
    keys = {"route": {"cluster": "east", "kind": "TrafficSplit", "namespace": "shop", "selector": "a=b"}}
    assert why(weights(), **keys) == ""
    assert "does not match" in why(weights(name="a/b"), **keys)


def test_a_zone_step_is_of_the_rules_own_cluster() -> None:
    keys = {
        "name": "web", "kind": "ZoneIsolation", "mode": "Enforce", "cluster": "east", "steps": ["Fence", "Verify"],
        "zones": [{"name": f"z-{one}", "id": one} for one in "abc"],
    }  # fmt: skip
    routing = Routing.of(rule_set(keys))
    assert action_refusal(routing, zone()) == ""
    assert "would write to" in action_refusal(routing, zone(cluster="west", object="west/z-a"))
    assert "would write to" in action_refusal(routing, zone(zone="z-b"))
