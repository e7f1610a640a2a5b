"""HTTPRoute and GRPCRoute (gateway.networking.k8s.io): the weights of one rule's backendRefs.

Other rules, other backendRefs and all other fields belong to somebody else and are never touched. All weights zero is
never written: Envoy rejects such a route as a whole, others answer 500 or 503 (kgateway#11548, kuma#18340).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bus.messages import RouteRef, SetWeights
from reactor.actions.annotations import stamps
from reactor.actions.outcomes import Unfit
from reactor.actions.patches import Entry, changes, patch
from reactor.clients.port import JsonObject

DEFAULT_WEIGHT = 1  # Gateway API, BackendRef.weight


def managed_rule(rules: Sequence[JsonObject], wanted: int | str | None) -> int:
    """Give the index of the rule whose backendRefs move: by index, by name, or the first with two or more of them.

    Raises Unfit (RuleMissing).
    """
    if wanted is None:
        several = (index for index, rule in enumerate(rules) if len(rule.get("backendRefs") or []) > 1)
        wanted = next(several, 0)
    if isinstance(wanted, str):
        named = (index for index, rule in enumerate(rules) if rule.get("name") == wanted)
        wanted = next(named, len(rules))
    if not 0 <= wanted < len(rules):
        raise Unfit("RuleMissing", f"the route has {len(rules)} rules, and none of them is the one that is to be moved")
    return wanted


def entries(obj: JsonObject, route: RouteRef) -> list[Entry]:
    """Give the managed rule's backendRefs that are Services; two ports of one Service are two entries that go together.

    Raises Unfit (RuleMissing).
    """
    rules = (obj.get("spec") or {}).get("rules") or []
    index = managed_rule(rules, route.rule)
    refs = rules[index].get("backendRefs") or []
    return [
        _entry(f"/spec/rules/{index}/backendRefs/{position}", ref, route.namespace)
        for position, ref in enumerate(refs)
        if (ref.get("group") or "", ref.get("kind") or "Service") == ("", "Service")
    ]


def _entry(at: str, ref: Mapping[str, Any], home: str) -> Entry:
    tests = [("name", ref["name"])]
    namespace = ref.get("namespace") or home
    if "namespace" in ref:
        tests.append(("namespace", ref["namespace"]))
    service = ref["name"] if namespace == home else f"{namespace}/{ref['name']}"
    return Entry(at, tuple(tests), service, ref.get("weight"), DEFAULT_WEIGHT)


def difference(obj: JsonObject, action: SetWeights) -> list[JsonObject] | None:
    """Give the JSON Patch that makes the rule as asked; None: it already is. Raises Unfit.

    Somebody else's backendRef with a weight does not make "all of ours zero" safe: we know nothing of its health. And
    because every service named must have an entry, one weight above zero in the action is one in the resulting rule.
    """
    if action.weights and not any(action.weights.values()):
        raise Unfit("AllZero", f"{action.route.object} would be left with all weights zero")
    operations = changes(entries(obj, action.route), action.weights)
    return patch(obj, operations, write=stamps(obj, action)) if operations else None
