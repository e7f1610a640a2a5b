"""Base of all messages, and the types of their fields."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from bus.characters import all_seen


class Health(StrEnum):
    """The three answers. Unknown means that the health is not known: it is neither failure nor recovery."""

    HEALTHY = "Healthy"
    UNHEALTHY = "Unhealthy"
    UNKNOWN = "Unknown"


class Mode(StrEnum):
    """Mode of a rule: how far it may go."""

    ENFORCE = "Enforce"
    DRY_RUN = "DryRun"
    APPROVE = "Approve"
    OFF = "Off"


_Seen = AfterValidator(all_seen)
# A target is a path with at least a kind and a name; control and invisible characters have no business in one.
Target = Annotated[str, StringConstraints(min_length=3, max_length=1024, pattern=r"^[a-z]+(/[^/\x00-\x1f]+)+$"), _Seen]
Name = Annotated[str, StringConstraints(min_length=1, max_length=253), _Seen]
Text = Annotated[str, StringConstraints(max_length=4096)]
Words = Annotated[Text, _Seen]
"""A person's, in one line."""
ObjectName = Annotated[str, StringConstraints(min_length=1, max_length=1100), _Seen]
ActionId = Annotated[str, StringConstraints(min_length=1, max_length=1400), _Seen]


class MessagePart(BaseModel):
    """A piece of a message. Frozen; unknown keys, and numbers that JSON has not, are refused; camelCase on the wire."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, alias_generator=to_camel, validate_by_name=True,
        validate_by_alias=True, serialize_by_alias=True, defer_build=True,
    )  # fmt: skip


class Message(MessagePart):
    """One thing said."""

    type: ClassVar[str]
    """The CloudEvents type."""

    @property
    def about(self) -> str:
        """The CloudEvents subject: what this message is about."""
        raise NotImplementedError


class Statement(Message):
    """Statement of a rule about a cluster, for other rules. It counts while the rule is there and names the cluster."""

    cluster: Name
    rule: Name


class ActionMessage(Message):
    """Action. Absolute, idempotent, and refused where a newer generation is known."""

    id: ActionId
    """`rule/object/generation`: derived, never random."""
    rule: Name
    object: ObjectName
    concurrency_key: Annotated[str, StringConstraints(max_length=512)] = ""
    """Actions of one key replace each other; those of different keys run side by side, also for one object."""
    generation: Annotated[int, Field(ge=1)]
    mode: Mode
    because: Name
    detail: Text = ""
    decided_at: AwareDatetime
    proven_at: AwareDatetime | None = None
    """Time at which the oldest part of its evidence was seen; None: it needs none, or it counts until stale."""
    epoch: int = 0
    """Set by the decider that publishes: the fence of its partition."""

    @property
    def about(self) -> str:
        return self.object

    @property
    def summary(self) -> str:
        """One line for people: the effect of the action."""
        raise NotImplementedError

    @property
    def shown(self) -> dict[str, Any]:
        """Content that `reactor simulate` prints and rule tests expect, by the keys that both use, in this order."""
        raise NotImplementedError

    @property
    def peers(self) -> frozenset[str]:
        """Peers that it writes to: clusters by name, `loadBalancer <name>`, `notifier <name>`, `Karmada`.

        One that does not answer holds up its own actions and no others. Empty: only the bus.
        """
        raise NotImplementedError


def iso(moment: datetime) -> str:
    """RFC 3339 with microseconds as they are."""
    return moment.isoformat().replace("+00:00", "Z")
