"""One object of each kind of route, with the two backends `p` and `s`, and beside them fields that must not change.

Unit tests, contract tests and documents use this table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bus.messages import RouteKind, RouteRef
from reactor.clients.kubernetes_port import JsonObject
from rules.rulefile.route_kinds import ROUTE_KINDS, RouteFormat

Weights = Sequence[Any]
"""Of p and s, in this order; None: left out."""

POOLS = RouteFormat(
    "example.com", "pools", ("v1", "v1beta1"), ("spec.rules[*].pool.members",), name="target.ref",
    weight="share", rule_name="id", sum_to=1000,
)  # fmt: skip
"""A kind of the settings."""
CUSTOM = {"Pool": POOLS}


@dataclass(frozen=True)
class Sample:
    """Recipe for an object of a kind, and the rule in it that is meant."""

    kind: RouteKind
    spec: Callable[[list[JsonObject]], JsonObject]
    """Of the object, from its two backends."""
    backend: Callable[[str], JsonObject]
    """Of a Service, without its weight."""
    rule: int | str | None = None
    custom_kind: str = ""
    others: dict[str, int] = field(default_factory=dict)
    """Backends beside p and s, and their weights."""
    note: str = ""

    @property
    def described(self) -> RouteFormat:
        return CUSTOM[self.custom_kind] if self.custom_kind else ROUTE_KINDS[self.kind]

    @property
    def whole(self) -> int:
        """All of the weight of p and s."""
        return self.described.sum_to or 1

    @property
    def name(self) -> str:
        return f"{self.custom_kind or self.kind}{self.note and f'-{self.note}'}"

    def ref(self, namespace: str = "shop") -> RouteRef:
        return RouteRef(
            cluster="east", kind=self.kind, custom_kind=self.custom_kind, namespace=namespace, name="checkout",
            rule=self.rule,
        )  # fmt: skip

    def object(self, weights: Weights, *, version: str = "", namespace: str = "shop") -> JsonObject:
        backends = []
        for service, weight in zip(("p", "s"), weights, strict=True):
            one = self.backend(service)
            if self.described.hosts:
                one["destination"]["host"] = f"{service}.{namespace}.svc.cluster.local"
            if weight is not None:
                one[self.described.weight] = weight
            backends.append(one)
        return {
            "apiVersion": f"{self.described.group}/{version or self.described.versions[0]}",
            "kind": self.custom_kind or self.kind,
            "metadata": {"name": "checkout", "namespace": namespace},
            "spec": self.spec(backends),
        }


def _gateway(backends: list[JsonObject], **more: Any) -> JsonObject:
    return {"parentRefs": [{"name": "gateway"}], **more, "rules": [{"backendRefs": backends}]}


def _ref(service: str) -> JsonObject:
    return {"group": "", "kind": "Service", "name": service, "port": 80}


def _rules(backends: list[JsonObject]) -> JsonObject:
    rules = [{"backendRefs": [_ref("docs") | {"weight": 3}]}, {"name": "pay", "backendRefs": backends}]
    return {"parentRefs": [{"name": "gateway"}], "rules": rules}


def _destination(service: str) -> JsonObject:
    return {"destination": {"host": service, "port": {"number": 80}}}


def _virtual(part: str) -> Callable[[list[JsonObject]], JsonObject]:
    def spec(backends: list[JsonObject]) -> JsonObject:
        docs = {"name": "docs", "timeout": "3s", "route": [{"destination": {"host": "docs"}}]}
        match = {"tls": [{"sniHosts": ["shop.example"]}], "tcp": [{"port": 27017}], "http": [{"uri": {"prefix": "/"}}]}
        named = {"name": "pay"} if part == "http" else {}
        moved = {"match": match[part], "route": backends, **named}
        return {"hosts": ["shop.example"]} | {"http": [docs]} | {part: [docs, moved] if part == "http" else [moved]}

    return spec


def _weighted(backends: list[JsonObject]) -> JsonObject:
    other = {"kind": "TraefikService", "name": "p", "weight": 9}
    return {"weighted": {"services": [*backends, other], "sticky": {"cookie": {"name": "lb"}}}}


def _proxy(backends: list[JsonObject]) -> JsonObject:
    docs = {"conditions": [{"prefix": "/docs"}], "services": [{"name": "docs", "port": 80}]}
    copy = {"name": "copy", "port": 80, "mirror": True, "weight": 10}
    return {"virtualhost": {"fqdn": "shop.example"}, "routes": [docs, {"services": [*backends, copy]}]}


def _pool(backends: list[JsonObject]) -> JsonObject:
    return {
        "note": "kept",
        "rules": [{"id": "docs", "pool": {"members": []}}, {"id": "pay", "pool": {"members": backends}}],
    }


def _named(service: str) -> JsonObject:
    return {"name": service, "port": 80}


SAMPLES = [
    Sample("TrafficSplit", lambda b: {"service": "checkout", "backends": b}, lambda s: {"service": s}),
    Sample("HTTPRoute", _rules, _ref, "pay"),
    Sample("GRPCRoute", _rules, _ref, 1),
    Sample("TCPRoute", _gateway, _ref),
    Sample("TLSRoute", lambda b: _gateway(b, hostnames=["shop.example"]), _ref),
    Sample("VirtualService", _virtual("http"), _destination, "pay", note="http"),
    Sample("VirtualService", _virtual("tls"), _destination, 1, note="tls"),
    Sample("VirtualService", _virtual("tcp"), _destination, note="tcp"),
    Sample("TraefikService", _weighted, _named),
    Sample("HTTPProxy", _proxy, _named, 1),
    Sample(
        "ServiceSplitter", lambda b: {"splits": [*b, {"service": "x", "weight": 0, "serviceSubset": "v2"}]},
        lambda s: {"service": s, "requestHeaders": {"set": {"x": "y"}}}, others={"x": 0},
    ),
    Sample("Custom", _pool, lambda s: {"target": {"ref": s}, "zone": "a"}, "pay", custom_kind="Pool"),
]  # fmt: skip
NAMES = [sample.name for sample in SAMPLES]
