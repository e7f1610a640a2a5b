"""What becomes of actions, and what is kept of decisions."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AwareDatetime, Field

from bus.messages.base import ActionId, ActionMessage, Message, Name, Text


class Outcome(Message):
    """What became of an action."""

    type: ClassVar[str] = "dev.alert-reactor.outcome.v1"

    action: ActionId
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


class Notify(ActionMessage):
    """Tell people."""

    type: ClassVar[str] = "dev.alert-reactor.notify.v1"

    to: tuple[str, ...] = ()
    message: Text


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
    """The facts that led to this step, as they came, each with its name as `fact`."""
    actions: tuple[dict[str, Any], ...] = ()
    """What was asked for, each with its name as `action`."""
    held: str | None = None
    because: tuple[str, ...] = ()
    """One sentence for each member that the decision rests on."""
    before: dict[str, Any] | None = None
    """The group's state before the facts; None: no group decided, as with a command that was given."""
    around: dict[str, Any] | None = None
    """What the groups of the rule knew together, where its kind has such a thing."""
    digest: str = ""
    """Of the rule and of the guards that hold for it: what is decided again by another rule proves nothing."""

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
