"""Outcomes of actions, records of decisions, and other messages that are kept."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AwareDatetime, Field, StringConstraints

from bus.messages.base import ActionId, ActionMessage, Health, Message, MessagePart, Name, ObjectName, Target, Text


class Outcome(Message):
    """Outcome of an action."""

    type: ClassVar[str] = "dev.alert-reactor.outcome.v1"

    action: ActionId
    rule: str = ""
    object: str = ""
    """Object of the action."""
    status: Literal["Done", "Failed", "Refused"]
    """Done: the world is as asked. Failed: it is not, try again. Refused: there is a newer decision, drop it."""
    reason: Name | None = None
    detail: Text = ""
    wrote: bool = True
    """True if anything had to be written: Done without a write means that the world already was as asked."""
    observed_at: AwareDatetime

    @property
    def about(self) -> str:
        return self.action


class WantedRequest(MessagePart):
    """An executor asks the decider whether an action that it is about to carry out is still wanted.

    Sent as a request on the core subject `reactor.wanted.<partition>` and stored nowhere.
    """

    action: ActionId
    rule: Name
    object: ObjectName


class WantedReply(MessagePart):
    """The decider's answer to a WantedRequest, decided on evidence from after the question."""

    wanted: bool
    detail: Text = ""
    """Reason why not, in one sentence."""
    at: AwareDatetime
    """The moment up to which the decider has decided: no earlier than the question."""


class Notify(ActionMessage):
    """Tell people."""

    type: ClassVar[str] = "dev.alert-reactor.notify.v1"

    to: tuple[str, ...] = ()
    message: Text
    resolves: bool = False
    """True if this ends what people were told before of this object."""
    request: Annotated[str, StringConstraints(max_length=64)] = ""
    """Fingerprint of what people are asked to approve; empty: they are asked for nothing."""
    link: Annotated[str, StringConstraints(max_length=4096)] = ""
    """URL at which people can approve it. Set when it is sent, and not stored: the executor makes it."""

    @property
    def summary(self) -> str:
        return self.message

    @property
    def shown(self) -> dict[str, Any]:
        return {"message": self.message}

    @property
    def peers(self) -> frozenset[str]:
        return frozenset(f"notifier {name}" for name in self.to)


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


class LookSeen(MessagePart):
    """The last look of one signal before a decision."""

    signal: Name
    source: str = ""
    """The source that was asked; empty: none could be."""
    observed_at: AwareDatetime
    since: AwareDatetime
    """Since when the signal has seen the status without a break."""
    valid_until: AwareDatetime | None = None
    """Time up to which it proves the status; None: until it is stale."""
    detail: Text = ""


class TargetEvidence(MessagePart):
    """Evidence of an action for one target."""

    target: Target
    status: Health
    window_began: AwareDatetime
    """Begin of its toleration or recovery, or of the status."""
    window_ended: AwareDatetime | None = None
    """End of that window, or when an action became due by the target: looks from then or later prove it. None: there
    was no such time, and looks since `window_began` do."""
    looks: tuple[LookSeen, ...] = ()
    """The newest look of each signal that agrees with the status."""


class ChainLink(MessagePart):
    """Link of a record to the one before it in its partition."""

    number: Annotated[int, Field(ge=1)]
    """Counts the records of the partition."""
    previous: Annotated[str, Field(max_length=64)] = ""
    """SHA-256 of the body of the record before, in hexadecimal; empty: there was none."""
    previous_at: AwareDatetime | None = None
    """Time of that decision: it shows if retention has removed the record by now."""
    signature: Annotated[str, Field(max_length=64)] = ""
    """HMAC-SHA256 of the chain, the number, and both of the record before, in hexadecimal; empty: there is no key."""


class DecisionRecord(Message):
    """Audit: one step of one group that changed what is asked, or why nothing is."""

    type: ClassVar[str] = "dev.alert-reactor.decision.v1"

    rule: Name
    object: str
    decided_at: AwareDatetime
    facts: tuple[dict[str, Any], ...] = ()
    """The facts that led to this step, as they came, each with its name as `fact`."""
    actions: tuple[dict[str, Any], ...] = ()
    """Actions that were asked for, each with its name as `action`."""
    held: str | None = None
    because: tuple[str, ...] = ()
    """One sentence for each member that the decision rests on."""
    before: dict[str, Any] | None = None
    """The group's state before the facts; None: no group decided, as with a command that was given."""
    shared_group: dict[str, Any] | None = None
    """State that the groups of the rule share, where its kind has one."""
    evidence: tuple[TargetEvidence, ...] = ()
    """Evidence of the actions, for the targets that are left and those that replace them."""
    listening_since: AwareDatetime | None = None
    """Since when the decider had heard the bus without a break; None: it does not say, or always."""
    skew_seconds: Annotated[float, Field(ge=0)] = 0
    """Seconds by which clocks may have differed: windows were longer by it."""
    digest: str = ""
    """Digest of the rule and of the guards that hold for it: what is decided again by another rule proves nothing."""
    chain: ChainLink | None = None
    """Link to the record before; None: written by a version before chains."""

    @property
    def about(self) -> str:
        return self.object


class Delayed(MessagePart):
    """One message of a publisher, as it came in."""

    subject: Annotated[str, Field(min_length=1, max_length=4096)]
    body: str
    """Its bytes in base64: they are not decoded yet."""
    sequence: Annotated[int, Field(ge=0)]
    """Sequence in the inbox."""
    stored_at: AwareDatetime
    """Time at which it came into the inbox, by the server's clock."""
    traceparent: str | None = None


class Excess(Message):
    """Messages of a publisher beyond `bus.observationsAtOnce`, which wait for their turn."""

    type: ClassVar[str] = "dev.alert-reactor.excess.v1"

    source: Name
    """The publisher: the source in its subjects, as their token."""
    delayed: tuple[Delayed, ...]
    observed_at: AwareDatetime
    """Time at which the first of these came in."""

    @property
    def about(self) -> str:
        return self.source


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
    """Number of alerts that Alertmanager says it left out."""
    observed_at: AwareDatetime

    @property
    def about(self) -> str:
        return self.source
