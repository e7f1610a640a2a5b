"""A starter's tests: one rule of each kind, on a bad day and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reactor.rulefiles.writer import as_yaml
from reactor.workbench.starter.making import JsonObject, Starter
from reactor.workbench.starter.starter_text import comment, entry
from rules.kinds.traffic.apportion import apportion
from rules.rulefile.model import API_VERSION
from rules.rulefile.route_kinds import ROUTE_KINDS
from rules.rulefile.targets import encode_segment


def text_of_test(starter: Starter, name: str) -> str:
    """Give the test of the rule file of this name: one rule of each kind, to be copied for the others."""
    lines = [
        *comment(
            f"Tests of {name}, one for each kind of rule: copy them for the others, and change them until they say "
            "what you expect. reactor test runs them; nothing is needed for it but this file."
        ),
        "", f"apiVersion: {API_VERSION}", as_yaml({"ruleFiles": [name]}, compact=True).rstrip("\n"), "tests:",
    ]  # fmt: skip
    tests = [
        *([_of_routes([made.rule for made in starter.routes])] if starter.routes else []),
        *(_of_workload(made.rule) for made in starter.workloads[:1]),
        *(_of_zones(made.rule) for made in starter.zones[:1]),
    ]
    return "\n".join([*lines, "\n\n".join("\n".join(entry(test)) for test in tests)]) + "\n"


def _input(target: str, signal: str, values: str) -> JsonObject:
    return {"target": target, "signal": signal, "values": values}


def _of_routes(rules: Sequence[JsonObject]) -> JsonObject:
    """Ten seconds are tolerated: bad at 10, away at 20; good at 50, back at 110. Routes may share a primary."""
    bad = _targets(rules[0])[rules[0]["primary"]]
    moved = [rule for rule in rules if _targets(rule)[rule["primary"]] == bad]
    heard = dict.fromkeys(target for rule in moved for target in _targets(rule).values())
    inputs = [
        _input(target, "endpoints", "Healthy Unhealthy x4 Healthy x8" if target == bad else "Healthy x13")
        for target in heard
    ]
    return {
        "name": f"{rules[0]['name']} moves when {rules[0]['primary']} is bad, and comes back", "intervalSeconds": 10,
        "inputs": inputs, "expect": [_weights(rule, at, away=at == 20) for at in (20, 110) for rule in moved],
    }  # fmt: skip


def _targets(rule: JsonObject) -> dict[str, str]:
    """Give the target of each backend: what a rule takes that names none."""
    route, found = rule["route"], {}
    for backend in rule["backends"]:
        namespace, _, name = backend["service"].rpartition("/")
        cluster = encode_segment(route["cluster"])
        found[backend["service"]] = f"service/{cluster}/{namespace or route['namespace']}/{name}"
    return found


def _weights(rule: JsonObject, at: int, *, away: bool) -> JsonObject:
    serve = {service: int((service != rule["primary"]) is away) for service in _targets(rule)}
    whole = ROUTE_KINDS[rule["route"]["kind"]].sum_to
    weights = dict(zip(serve, apportion(whole, [*serve.values()]), strict=True)) if whole else serve
    return {"at": at, "action": "SetWeights", "rule": rule["name"], "weights": weights}


def _of_workload(rule: JsonObject) -> JsonObject:
    """Five minutes are tolerated: bad at 60, placed at 360; the others are seen to be Healthy with it at 420."""
    [selector] = rule["resourceSelectors"]
    weights = rule["placement"]["replicaScheduling"]["weightPreference"]["staticWeightList"]
    clusters = {one["targetCluster"]["clusterNames"][0]: one["weight"] for one in weights}
    failed, *others = clusters
    copy = f"{selector['namespace']}/{selector['kind']}/{selector['name']}"
    inputs = [
        _input(f"cluster/{failed}", "api", "Healthy Unhealthy x7"),
        *(_input(f"cluster/{one}", "api", "Healthy x8") for one in others),
        *(_input(f"workload/{one}/{copy}", "workloads", "Healthy x8") for one in others),
    ]
    workload = {
        "namespace": selector["namespace"], "kind": selector["kind"], "name": selector["name"],
        "replicas": sum(clusters.values()), "clusters": clusters,
    }  # fmt: skip

    def expected(at: int, action: str, **more: Any) -> JsonObject:
        return {"at": at, "action": action, "rule": rule["name"], **more}

    return {
        "name": f"{rule['name']} leaves {failed} when it is bad for five minutes", "intervalSeconds": 60,
        "inventory": [{"workload": workload}], "inputs": inputs,
        "expect": [
            expected(360, "Place", because="ClusterUnhealthy"), expected(360, "Evict", **{"from": failed}),
            expected(420, "Purge", **{"from": failed}),
        ],
    }  # fmt: skip


def _of_zones(rule: JsonObject) -> JsonObject:
    """A person asks for it; the guards have three nodes a zone to judge by, of which little is needed."""
    cluster = rule["cluster"]
    zones = [zone["name"] for zone in rule["zones"]]
    inventory = {"cluster": cluster, "zones": {zone: {"nodes": 3, "healthyNodes": 3} for zone in zones}}
    inputs = [
        _input(f"zone/{encode_segment(cluster)}/{zone}", "nodes", "Healthy x4") for zone in zones
    ]  # fmt: skip
    command = {"rule": rule["name"], "zone": zones[0], "by": "me", "reason": "a look at the plan"}
    return {
        "name": f"{rule['name']} takes {zones[0]} out of service when a person asks for it", "intervalSeconds": 60,
        "inventory": [{"zones": inventory | {"demandNodes": 3}}], "commands": [{"at": 60, "isolateZone": command}],
        "inputs": inputs,
        "expect": [{"at": 60, "action": "ZoneStep", "rule": rule["name"], "step": step} for step in rule["steps"]],
    }  # fmt: skip
