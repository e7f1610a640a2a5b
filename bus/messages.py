"""Every message that travels, as frozen models in CloudEvents 1.0 envelopes.

Facts go in (observation, inventory, command, outcome), actions come out, decisions are the audit of both.
Structured mode, all in the JSON body: seven CloudEvents headers cost four times the message (measured, design 4).
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel


class Health(StrEnum):
    """The three answers. Unknown means nobody knows: it is neither failure nor recovery."""

    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"
    UNKNOWN = "Unknown"


class Mode(StrEnum):
    """How far a rule may go."""

    ENFORCE = "Enforce"
    DRY_RUN = "DryRun"
    OFF = "Off"


# A target is a path with at least a kind and a name; NUL and control characters have no business in one.
Target = Annotated[str, StringConstraints(min_length=3, max_length=1024, pattern=r"^[a-z]+(/[^/\x00-\x1f]+)+$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=253)]
Text = Annotated[str, StringConstraints(max_length=4096)]


class Message(BaseModel):
    """One thing said. Frozen; unknown keys are refused; camelCase on the wire, snake_case here."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True,
        serialize_by_alias=True,
    )  # fmt: skip

    type: ClassVar[str]
    """The CloudEvents type."""

    @property
    def about(self) -> str:
        """The CloudEvents subject: what this message is about."""
        raise NotImplementedError


class Observation(Message):
    """A target's health as one source saw it at one moment."""

    type: ClassVar[str] = "dev.alert-reactor.observation.v1"

    target: Target
    status: Health
    signal: Name = "health"
    """Which of several opinions about the target this is; the source's name by default."""
    observed_at: AwareDatetime
    """When it was seen, by the source's clock."""
    stale_seconds: Annotated[float, Field(gt=0, le=86_400 * 366)] | None = None
    """Seconds after which silence makes it Unknown; None: it never goes stale."""
    resolved: bool = False
    """Unknown because an alert was resolved without proof: another signal's Healthy settles it."""
    labels: dict[str, Text] = {}
    detail: Text = ""
    """One line for people: what was seen (`HTTP 503`)."""

    @property
    def about(self) -> str:
        return self.target


class Backend(Message):
    """One entry of a route's list of backends."""

    service: Name
    """The Service's name; `namespace/name` where it lives in another namespace than the route."""
    weight: Annotated[int, Field(ge=0, le=1_000_000)] = 1


class RouteRef(Message):
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


class Route(RouteRef):
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


class Pause(Message):
    """Command: rules whose names match do not act until they are resumed."""

    type: ClassVar[str] = "dev.alert-reactor.pause.v1"

    rule: Name
    """A pattern of rule names; `*` is all of them."""
    by: Name
    reason: Text
    observed_at: AwareDatetime

    @property
    def about(self) -> str:
        return self.rule


class Resume(Message):
    """Command: ends a pause."""

    type: ClassVar[str] = "dev.alert-reactor.resume.v1"

    rule: Name
    by: Name
    reason: Text = ""
    observed_at: AwareDatetime

    @property
    def about(self) -> str:
        return self.rule


class Outcome(Message):
    """What became of an action."""

    type: ClassVar[str] = "dev.alert-reactor.outcome.v1"

    action: Annotated[str, StringConstraints(min_length=1, max_length=1400)]
    """The action's id."""
    rule: str = ""
    object: str = ""
    """Whose action it was."""
    status: Literal["Done", "Failed", "Refused"]
    """Done: the world is as asked. Failed: it is not, try again. Refused: a newer decision stands, forget it."""
    reason: Name | None = None
    detail: Text = ""
    wrote: bool = True
    """Whether anything had to be written: Done without a write means that the world already was as asked."""
    observed_at: AwareDatetime

    @property
    def about(self) -> str:
        return self.action


Fact = Observation | Route | Pause | Resume | Outcome


class ActionMessage(Message):
    """What every action carries. Absolute, idempotent, and refused where a newer generation is known."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=1400)]
    """`rule/object/generation`: derived, never random."""
    rule: Name
    object: Annotated[str, StringConstraints(min_length=1, max_length=1100)]
    generation: Annotated[int, Field(ge=1)]
    mode: Mode
    because: Name
    detail: Text = ""
    decided_at: AwareDatetime
    epoch: int = 0
    """Set by the decider that publishes: the fence of its partition."""

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


class Notify(ActionMessage):
    """Tell people."""

    type: ClassVar[str] = "dev.alert-reactor.notify.v1"

    to: tuple[str, ...] = ()
    message: Text


Action = SetWeights | Notify


class Hold(Message):
    """The rule would act or may have to, and does not: with the reason."""

    type: ClassVar[str] = "dev.alert-reactor.hold.v1"

    rule: Name
    object: str
    held: Name
    detail: Text = ""
    decided_at: AwareDatetime

    @property
    def about(self) -> str:
        return self.object


class DecisionRecord(Message):
    """Audit: one step of one group that changed what is asked, or why nothing is."""

    type: ClassVar[str] = "dev.alert-reactor.decision.v1"

    rule: Name
    object: str
    decided_at: AwareDatetime
    facts: tuple[dict[str, Any], ...] = ()
    """The facts that led to this step, as they came."""
    actions: tuple[dict[str, Any], ...] = ()
    held: str | None = None
    because: tuple[str, ...] = ()
    """One sentence for each member that the decision rests on."""

    @property
    def about(self) -> str:
        return self.object


class WebhookPost(Message):
    """One chunk of a webhook body, journaled before it is answered."""

    type: ClassVar[str] = "dev.alert-reactor.webhook.v1"

    source: Name
    """The AlertmanagerWebhook source that it came in by."""
    post: Name
    """SHA-256 of the whole body, the same for all its chunks."""
    chunk: Annotated[int, Field(ge=0)] = 0
    chunks: Annotated[int, Field(ge=1)] = 1
    alerts: tuple[dict[str, Any], ...]
    truncated: int = 0
    """How many alerts Alertmanager says it left out."""
    observed_at: AwareDatetime

    @property
    def about(self) -> str:
        return self.source


def iso(moment: datetime) -> str:
    """RFC 3339 with microseconds as they are."""
    return moment.isoformat().replace("+00:00", "Z")
