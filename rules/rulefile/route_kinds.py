"""The kinds of routes: where each keeps its weights, and what they have to add up to.

One description for each kind. The inventory, the writes, the versions asked for, the watches, the checks and the
permissions that the documents name all go by it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

EVERY = "[*]"
"""In a path, after the list of a route's rules: each of them has backends of its own."""
FQDN = re.compile(r"([^./]+)\.([^./]+)\.svc(\..+)?")
"""A Service's name, its namespace, and the cluster's domain."""
PATH = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")
"""A dotted path to a field."""


@dataclass(frozen=True, slots=True)
class RouteFormat:
    """Format of a kind of route: its API, and how it is read and written. Fields are named by dotted paths."""

    group: str
    """API group."""
    plural: str
    versions: tuple[str, ...]
    """Those that we can read, the one that we like best first."""
    backends: tuple[str, ...]
    """Paths of the weighted lists: `spec.backends`, or with rules `spec.rules[*].backendRefs`. Rules of several lists
    count on from one list to the next."""
    name: str = "name"
    """In a backend: the Service's name."""
    namespace: str = ""
    """In a backend: its namespace; empty: it has none."""
    weight: str = "weight"
    """In a backend: its weight."""
    rule_name: str = ""
    """In a rule: its name; empty: rules have none, and are found by index."""
    default_weight: int | None = None
    """Weight of a backend without one; None: it must have one."""
    sum_to: int = 0
    """Sum that the weights of a list must have; 0: their ratio counts."""
    all_zero: bool = False
    """True if the data plane accepts that all weights are zero."""
    even_at_zero: bool = False
    """True if all weights zero, or none given, means equal shares."""
    decimals: bool = False
    """True if weights may be fractions."""
    hosts: bool = False
    """True if names are hosts: `name`, or `name.namespace.svc.cluster.local`."""
    own_name: bool = False
    """True if a backend without a name is the Service of the route's own name."""
    only: tuple[tuple[str, tuple[object, ...]], ...] = ()
    """Entries of the list that are backends: those whose fields have one of these values; None: it is not there."""

    @property
    def has_rules(self) -> bool:
        """True if a route of this kind has rules, each with backends of its own."""
        return any(EVERY in path for path in self.backends)


_GATEWAY = "gateway.networking.k8s.io"
_SERVICE = (("group", (None, "")), ("kind", (None, "Service")))
"""Only Services have a name that rules can mean; entries of other kinds keep the weight that they have."""


def _gateway(plural: str, *versions: str) -> RouteFormat:
    """All routes of the Gateway API are alike. All zero: Envoy rejects such a route as a whole, others answer 500."""
    return RouteFormat(
        _GATEWAY, plural, versions, ("spec.rules[*].backendRefs",),
        namespace="namespace", rule_name="name", default_weight=1, only=_SERVICE,
    )  # fmt: skip


ROUTE_KINDS: Mapping[str, RouteFormat] = {
    # v1alpha2 is what linkerd-smi documents; v1alpha4 and v1alpha3 are other meshes', v1alpha1 has quantity weights.
    # With all zero Linkerd sends traffic to the apex service.
    "TrafficSplit": RouteFormat(
        "split.smi-spec.io", "trafficsplits", ("v1alpha2", "v1alpha4", "v1alpha3", "v1alpha1"), ("spec.backends",),
        name="service", all_zero=True,
    ),
    "HTTPRoute": _gateway("httproutes", "v1", "v1beta1"),
    # GRPCRoute came to v1 later than HTTPRoute (Gateway API 1.1), so `v1` alone does not say that it is in there.
    "GRPCRoute": _gateway("grpcroutes", "v1", "v1alpha2"),
    "TCPRoute": _gateway("tcproutes", "v1", "v1alpha2"),
    "TLSRoute": _gateway("tlsroutes", "v1", "v1alpha3", "v1alpha2"),
    # Istio takes any ratio but all zero of several destinations; older versions want a sum of 100. Only
    # its http routes have names. A weight of 0 is the same as none, and one alone gets everything.
    "VirtualService": RouteFormat(
        "networking.istio.io", "virtualservices", ("v1", "v1beta1", "v1alpha3"),
        ("spec.http[*].route", "spec.tls[*].route", "spec.tcp[*].route"),
        name="destination.host", rule_name="name", default_weight=0, sum_to=100, even_at_zero=True, hosts=True,
    ),
    # What names another TraefikService is none of ours. All zero: 503.
    "TraefikService": RouteFormat(
        "traefik.io", "traefikservices", ("v1alpha1",), ("spec.weighted.services",),
        namespace="namespace", default_weight=1, only=(("kind", (None, "Service")),),
    ),
    # The weight of a mirror says how much of the traffic is copied to it.
    "HTTPProxy": RouteFormat(
        "projectcontour.io", "httpproxies", ("v1",), ("spec.routes[*].services",),
        default_weight=0, even_at_zero=True, only=(("mirror", (None, False)),),
    ),
    "ServiceSplitter": RouteFormat(
        "consul.hashicorp.com", "servicesplitters", ("v1alpha1",), ("spec.splits",),
        name="service", namespace="namespace", default_weight=0, sum_to=100, decimals=True, own_name=True,
    ),
}  # fmt: skip
"""By the kind that rule files name. `Custom` is described in the settings."""
CUSTOM = "Custom"
RouteKinds = Mapping[str, RouteFormat]


def kind_of(kind: str, custom_kind: str | None, custom: RouteKinds) -> RouteFormat:
    """Give the description of a route's kind. `custom`: those of the settings. Raises KeyError where these lack it."""
    return custom[custom_kind or ""] if kind == CUSTOM else ROUTE_KINDS[kind]


def service_of(kind: str, namespace: str, name: str) -> str:
    """Give a backend's name as rules know it: of a Service's host its name, or `namespace/name` elsewhere."""
    known = ROUTE_KINDS.get(kind)
    if known is None or not known.hosts or (host := FQDN.fullmatch(name)) is None:
        return name
    return str(host[1] if host[2] == namespace else f"{host[2]}/{host[1]}")


def described(kind: str) -> str:
    """Give the article and the kind, for sentences."""
    return f"{'an' if kind.startswith(('HTTP', 'HAProxy')) else 'a'} {kind}"
