"""TrafficFailover: what a rule that moves the weights of a route may say."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, PrivateAttr, StringConstraints

from bus.messages import LOAD_BALANCERS, LoadBalancerKind, RouteKind
from rules.kinds.traffic.failback_policy import FailbackMode, OnDrift, TrafficFailback
from rules.rulefile.fields import ClusterName, KubeName, Model, Seconds, Selector, Template
from rules.rulefile.model import STEPS_MAX, Rule
from rules.rulefile.readings import Readings
from rules.rulefile.route_kinds import service_of

RULES_MAX = 1024
"""Largest number of rules of a route that can be named by their index."""


class RouteSelection(Model):
    """Selection of one route, or with a selector, of routes."""

    cluster: ClusterName | Literal[""] = ""
    """A cluster of the settings. Required for a route of a cluster, left out with a load balancer."""
    kind: RouteKind | LoadBalancerKind
    """Of split.smi-spec.io, the Gateway API, Istio, Traefik, Contour or Consul; Custom, a kind of the settings; or what
    a load balancer of the settings is: HAProxy, Webhook, Route53, TargetGroups."""
    custom_kind: Annotated[str, StringConstraints(min_length=1, max_length=253)] | None = None
    """With Custom: its name among the settings' `routeKinds`."""
    namespace: KubeName | None = None
    """Required with a name; with a selector, all namespaces by default. Left out with a load balancer."""
    name: KubeName | None = None
    """Of one route; or `selector` instead. Of a load balancer: its name among the settings' `loadBalancers`."""
    selector: Selector | None = None
    """Every such route with these labels."""
    rule: (
        Annotated[int, Field(ge=0, le=RULES_MAX - 1)]
        | Annotated[str, StringConstraints(min_length=1, max_length=253)]
        | None
    ) = None
    """The rule of a route that has rules: index or name of the one whose backends move; by default the first with two
    or more. A VirtualService's http routes are counted first, then its tls and its tcp routes."""

    @property
    def called(self) -> str:
        """The kind's own name, also where the settings describe it."""
        return self.custom_kind or self.kind

    @property
    def in_cluster(self) -> bool:
        """True if the route is in a cluster; else it is a load balancer of the settings."""
        return self.kind not in LOAD_BALANCERS


class BackendRule(Model):
    """One backend of a route, and whose health speaks for it."""

    service: Annotated[str, StringConstraints(min_length=1, max_length=253)]
    """The Service's name, as in the route; `namespace/name` where it lives in another namespace."""
    target: Template | None = None
    """Default: `service/<the route's cluster>/<its namespace>/<service>`. Required with a load balancer."""
    weight: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    """Its share when healthy. Default: the weight remembered from the route, else 1."""
    tier: Annotated[int, Field(ge=0, le=1000)] = 1
    """Lower tiers are used first."""
    treat_unknown_as: Literal["Healthy"] | None = None
    """Healthy: a secondary whose health is Unknown may get traffic. Use it if its only signal needs traffic."""


class Distribution(StrEnum):
    """Distribution of traffic among ready secondaries."""

    EQUAL = "Equal"
    PROPORTIONAL = "Proportional"


class OnAllDown(StrEnum):
    """Weights that are written when no backend is ready."""

    HOLD = "Hold"
    PRIMARY = "Primary"
    SPREAD = "Spread"
    ZERO = "Zero"


class Overflow(Model):
    """Load of a tier that is partly healthy, as in Envoy's priority levels."""

    overprovisioning_factor: Annotated[int, Field(ge=100, le=1000)] = 140
    """In percent: with 140 a tier bears all of the load until less than 72 % of it are healthy."""


class FailbackStep(Model):
    """One step of a gradual return."""

    percent: Annotated[int, Field(gt=0, le=100)]
    """The primary's share, in percent."""
    pause_seconds: Seconds
    """The time for which this share is kept before the next step."""


class TrafficFailover(Rule):
    """Moves the weights of a route when backends fail."""

    kind: Literal["TrafficFailover"]
    route: RouteSelection
    """The route whose weights this rule moves, or the routes that it selects."""
    primary: Annotated[str, StringConstraints(max_length=253)] | None = None
    """Default: the annotation failover.linkerd.io/primary-service, else the first backend."""
    backends: tuple[BackendRule, ...] | None = Field(default=None, min_length=1, max_length=64)
    """Default: read from the route."""
    distribution: Distribution = Distribution.EQUAL
    """Distribution among ready secondaries: each weight 1, or each its own `weight`."""
    on_all_down: OnAllDown = OnAllDown.HOLD
    """With no backend ready. Hold: write nothing. Primary: all to it. Spread: all share. Zero: TrafficSplit, and Custom
    where the settings allow it."""
    steps: tuple[FailbackStep, ...] = Field(default=(), max_length=STEPS_MAX)
    """Gradual return to the primary; empty: at once."""
    overflow: Overflow | None = None
    """A tier that is partly healthy keeps what it bears, and the rest spills to the next: tiers in order, the primary a
    tier of its own before tier 1. By the `healthyPercent` of targets, else 100 or 0 by their status. Not together with
    `steps` or Trial."""
    failback: TrafficFailback = TrafficFailback()
    """The return of traffic to the primary."""
    on_drift: OnDrift = OnDrift.RESTORE
    """Another writer changed the weights. Restore: put them right. Hold: leave them until `releaseTraffic`."""
    _readings: Mapping[str, Readings] = PrivateAttr(default_factory=dict)
    _of_objects: dict[str, TrafficFailover] | None = PrivateAttr(default=None)

    @property
    def default_peers(self) -> tuple[str, ...]:
        """All services."""
        return ("service/**",)

    def model_post_init(self, _context: object) -> None:
        """Note whether its backends have placeholders for names of the route."""
        texts = [text for one in self.backends or () for text in (one.service, one.target)] + [self.primary]
        if self.route.selector is not None and any("{" in text for text in texts if text):
            self._of_objects = {}

    def by_services(self) -> TrafficFailover:
        """Give the rule with the Services of the hosts that it names, as a VirtualService has them."""
        kind, namespace = self.route.kind, self.route.namespace
        if namespace is None or self.route.name is None:
            return self  # each route of a selector has a namespace of its own
        primary = service_of(kind, namespace, self.primary) if self.primary is not None else None
        backends = self.backends and tuple(
            one.model_copy(update={"service": service_of(kind, namespace, one.service)}) for one in self.backends
        )
        same = (primary, backends) == (self.primary, self.backends)
        return self if same else self.model_copy(update={"primary": primary, "backends": backends})

    @property
    def templated(self) -> bool:
        """True if its backends have placeholders for names of the route."""
        return self._private("_of_objects") is not None

    @property
    def of_objects(self) -> dict[str, TrafficFailover]:
        """The rule with the names of each route filled in; a cache."""
        known: dict[str, TrafficFailover] | None = self._private("_of_objects")
        return known if known is not None else {}

    def seen_with(self, skew: timedelta) -> Self:
        """The same, for each route too: what was filled in for other clocks does not count."""
        rule = super().seen_with(skew)
        if rule is not self and rule.templated:
            rule._of_objects = {}  # noqa: SLF001 - its own
        return rule

    def plain(self) -> TrafficFailover:
        """The same, with nothing left to fill."""
        self._of_objects = None
        return self

    @property
    def readings(self) -> Mapping[str, Readings]:
        """Readings of the sources of its signals, by signal; those of queries only."""
        return self._readings

    def reading(self, readings: Mapping[str, Readings]) -> TrafficFailover:
        """Give the rule as it is loaded beside its sources."""
        rule = self.model_copy()
        rule._readings = dict(readings)  # noqa: SLF001 - its own
        return rule

    @property
    def own_way_back(self) -> bool:
        """True if the return does not follow the window of all signals."""
        way = self.failback
        return way.mode is not FailbackMode.AUTOMATIC or way.signals is not None

    @property
    def backs_off(self) -> bool:
        """True if a backend that fails again has to wait longer."""
        way = self.failback
        written = "backoff" in way.model_fields_set
        return self.recovery_seconds > 0 or way.mode is FailbackMode.TRIAL or written
