"""Permissions as Kubernetes objects: a ServiceAccount for each role, its Roles, and their bindings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from reactor.workbench.rights.grant import Grant

ORDER = ("get", "list", "watch", "create", "patch", "delete")
PolicyRule = dict[str, Any]


def rules_of(grants: Iterable[Grant]) -> dict[str, list[PolicyRule]]:
    """Give the RBAC rules of each namespace; "" for all of the cluster. What holds everywhere is not repeated."""
    verbs: dict[tuple[str, str, str, str], set[str]] = {}
    for one in grants:
        verbs.setdefault((one.namespace, one.group, one.resource, one.name), set()).update(one.verbs)
    for (namespace, group, resource, name), mine in verbs.items():
        for wider in ((namespace, group, resource, ""), ("", group, resource, name), ("", group, resource, "")):
            if wider != (namespace, group, resource, name):
                mine -= verbs.get(wider, set())
    alike: dict[tuple[str, str, str, tuple[str, ...]], list[str]] = {}
    for (namespace, group, resource, name), mine in sorted(verbs.items()):
        if mine:
            key = (namespace, group, name, tuple(verb for verb in ORDER if verb in mine))
            alike.setdefault(key, []).append(resource)
    out: dict[str, list[PolicyRule]] = {}
    for (namespace, group, name, words), resources in sorted(alike.items()):
        named = {"resourceNames": [name]} if name else {}
        rule = {"apiGroups": [group], "resources": resources, **named, "verbs": list(words)}
        out.setdefault(namespace, []).append(rule)
    return out


def account(name: str, namespace: str) -> dict[str, Any]:
    """Give a ServiceAccount."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}}


def objects(name: str, namespace: str, rules: dict[str, list[PolicyRule]], *, as_role: str) -> Iterator[dict[str, Any]]:
    """Give the Roles called `as_role`, and bind them to the ServiceAccount `name` of `namespace`."""
    version = "rbac.authorization.k8s.io/v1"
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    for there, mine in rules.items():
        kind = "Role" if there else "ClusterRole"
        metadata = {"name": as_role} | ({"namespace": there} if there else {})
        yield {"apiVersion": version, "kind": kind, "metadata": metadata, "rules": mine}
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": as_role}
        yield {
            "apiVersion": version, "kind": f"{kind}Binding", "metadata": metadata, "roleRef": ref,
            "subjects": [subject],
        }  # fmt: skip


def for_helm(of_roles: dict[str, dict[str, list[PolicyRule]]]) -> dict[str, Any]:
    """Give them as the chart's value `rbac.grants`: role to a list of namespaces with their rules."""
    return {
        role: [{"namespace": there, "rules": mine} for there, mine in rules.items()]
        for role, rules in of_roles.items()
        if rules
    }
