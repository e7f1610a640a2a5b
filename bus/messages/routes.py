"""Routes and their weights."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import AwareDatetime, Field, StringConstraints, model_validator

from bus.messages.base import ActionMessage, Message, MessagePart, Name, Text

RouteKind = Literal[
    "TrafficSplit", "HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute", "VirtualService", "TraefikService", "HTTPProxy",
    "ServiceSplitter", "Custom",
]  # fmt: skip
"""Kinds of objects whose weights can be moved."""
LoadBalancerKind = Literal["HAProxy", "Webhook", "Route53", "TargetGroups"]
LOAD_BALANCERS = frozenset(get_args(LoadBalancerKind))
"""Kinds of routes that are in no cluster: what is moved is an entry of the settings' `loadBalancers`."""
WEIGHT_MAX = 1_000_000
"""Greatest weight of one backend, as Gateway API has it."""


class Backend(MessagePart):
    """One entry of a route's list of backends."""

    service: Name
    """The Service's name; `namespace/name` where it lives in another namespace than the route."""
    weight: Annotated[int, Field(ge=0, le=WEIGHT_MAX)] = 1


def check_place(kind: str, **place: str) -> None:
    """Raise ValueError unless a route has a cluster and a namespace, and a load balancer neither."""
    inside = kind not in LOAD_BALANCERS
    for key, value in place.items():
        if bool(value) is not inside:
            msg = f"{key} is {'required' if inside else 'left out'} with kind {kind}"
            raise ValueError(msg)


class RouteRef(MessagePart):
    """Reference to an object with weights."""

    cluster: Name | Literal[""] = ""
    """Name of the cluster; empty for a load balancer, as is `namespace`."""
    kind: RouteKind | LoadBalancerKind
    custom_kind: Annotated[str, Field(max_length=253)] = ""
    """With the kind Custom: its name in the settings' `routeKinds`."""
    namespace: Name | Literal[""] = ""
    name: Name
    """Name of the object; of a load balancer, its name in the settings."""
    rule: int | str | None = None
    """Index or name of the rule within the route whose backends move; None: the first with two or more."""

    @property
    def called(self) -> str:
        """The kind's own name, also where the settings describe it."""
        return self.custom_kind or self.kind

    @model_validator(mode="after")
    def _has_its_place(self) -> Self:
        check_place(self.kind, cluster=self.cluster, namespace=self.namespace)
        return self

    @property
    def object(self) -> str:
        """`east/shop/TrafficSplit/checkout`, with `#rule` where one is named; `edge/HAProxy/edge`."""
        if self.kind in LOAD_BALANCERS:
            return f"{self.name}/{self.kind}/{self.name}"
        path = f"{self.cluster}/{self.namespace}/{self.called}/{self.name}"
        return path if self.rule is None else f"{path}#{self.rule}"


class Route(RouteRef, Message):
    """Inventory: a route and its current state in its cluster, or that it is there no more."""

    type: ClassVar[str] = "dev.alert-reactor.route.v1"

    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}
    backends: tuple[Backend, ...] = ()
    sum_to: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """With the kind Custom: sum that the weights must have; 0: their ratio counts."""
    all_zero: bool = False
    """With the kind Custom: True if all weights may be zero."""
    exists: bool = True
    problem: Text = ""
    """Reason why the route cannot be used although it exists (no such rule, a malformed weight); empty: it can."""
    life: Annotated[str, StringConstraints(max_length=253)] = ""
    """Id of the life of a load balancer that forgets its weights when it starts: another one after each start. Empty:
    it forgets none."""
    observed_at: AwareDatetime

    @property
    def about(self) -> str:
        return self.object


class SetWeights(ActionMessage):
    """Make the route's weights exactly these."""

    type: ClassVar[str] = "dev.alert-reactor.set-weights.v1"

    route: RouteRef
    weights: dict[str, int]
    """Service name to weight, for each backend that the rule manages."""
    remember: dict[str, int] = {}
    """The healthy weights, to be kept on the object so that ratios survive a wiped bus."""

    @property
    def summary(self) -> str:
        weights = ", ".join(f"{name}={weight}" for name, weight in self.weights.items())
        return f"set {self.object} to {weights}"

    @property
    def shown(self) -> dict[str, Any]:
        return {"weights": self.weights}

    @property
    def peers(self) -> frozenset[str]:
        return frozenset({self.route.cluster or f"loadBalancer {self.route.name}"})
