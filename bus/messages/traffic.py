"""Routes and their weights."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import AwareDatetime, Field

from bus.messages.base import ActionMessage, Message, Name, Part, Text


class Backend(Part):
    """One entry of a route's list of backends."""

    service: Name
    """The Service's name; `namespace/name` where it lives in another namespace than the route."""
    weight: Annotated[int, Field(ge=0, le=1_000_000)] = 1


class RouteRef(Part):
    """Which object's weights are meant."""

    cluster: Name
    kind: Literal["TrafficSplit", "HTTPRoute", "GRPCRoute"]
    namespace: Name
    name: Name
    rule: int | str | None = None
    """Gateway API only: index or name of the rule whose backendRefs move; None: the first with two or more."""

    @property
    def object(self) -> str:
        """`east/shop/TrafficSplit/checkout`, with `#rule` where one is named."""
        path = f"{self.cluster}/{self.namespace}/{self.kind}/{self.name}"
        return path if self.rule is None else f"{path}#{self.rule}"


class Route(RouteRef, Message):
    """Inventory: a route as it stands in its cluster, or that it stands there no more."""

    type: ClassVar[str] = "dev.alert-reactor.route.v1"

    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}
    backends: tuple[Backend, ...] = ()
    exists: bool = True
    problem: Text = ""
    """Why the route cannot be used although it exists (no such rule, a malformed weight); empty: it can."""
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
