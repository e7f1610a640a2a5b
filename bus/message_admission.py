"""Admission of messages to subjects. A message that does not agree with its subject is refused, from every sender.

A NATS server binds permissions to subjects and never reads a body. So the subject says what a message may be: its
class, its kind, and whose signal it carries. Every reader of the bus reads through `read_message`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from bus.envelope import Event, decode
from bus.errors import Malformed
from bus.messages import (
    Action,
    AnyCommand,
    DecisionRecord,
    Excess,
    Fact,
    Hold,
    Inventory,
    Message,
    Observation,
    WebhookPost,
)
from bus.subjects import ROOT, token

ANY = "*"
"""A token that the message does not decide: a partition, or a name that the publisher chose."""


@dataclass(frozen=True, slots=True)
class Channel:
    """One class of subjects: `reactor.<class>.…`."""

    messages: tuple[type[Message], ...]
    tokens: Callable[[Any], Sequence[str]]
    """Gives the tokens behind the class that this message must come on; ANY takes each."""
    open_ended: bool = False
    """True if more tokens may follow."""


def command_kind(kind: type[Message]) -> str:
    """The token by which commands and facts say their kind: `isolatezone`."""
    return token(kind.__name__.lower())


def fact_kinds(*kinds: type[Message]) -> Sequence[str]:
    """The same of several."""
    return [command_kind(kind) for kind in kinds]


def _as_fact(fact: Any) -> Sequence[str]:
    if isinstance(fact, Observation):
        return ANY, "observation", token(fact.target), token(f"{fact.signal}-{fact.status.value}")
    return ANY, command_kind(type(fact)), token(fact.about)


CHANNELS: Mapping[str, Channel] = {
    "observations": Channel((Observation,), lambda one: (token(one.signal), ANY), open_ended=True),
    "inventory": Channel(get_args(Inventory), lambda _: (ANY, ANY), open_ended=True),
    "webhooks": Channel((WebhookPost,), lambda one: (token(one.source),)),
    "parked": Channel((WebhookPost,), lambda one: (token(one.source),)),
    "excess": Channel((Excess,), lambda one: (one.source,)),
    "commands": Channel(get_args(AnyCommand), lambda one: (command_kind(type(one)), one.user or ANY)),
    "facts": Channel(get_args(Fact), _as_fact),
    "actions": Channel(get_args(Action), lambda one: (ANY, token(type(one).__name__), token(one.object))),
    "decisions": Channel((DecisionRecord, Hold), lambda one: (ANY, token(one.rule))),
}
"""Every class of subjects that carries messages in envelopes."""


def read_message(subject: str, body: bytes) -> Event:
    """Decode a message and check that its subject allows it. Raises Malformed."""
    event = decode(body)
    if why := message_refusal(subject, event.data):
        raise Malformed(why)
    return event


def message_refusal(subject: str, message: Message) -> str:
    """Reason why this message may not come on this subject; empty: it may."""
    name = type(message).__name__
    root, _, rest = subject.partition(".")
    class_, *tokens = rest.split(".")
    channel = CHANNELS.get(class_) if root == ROOT else None
    if channel is None or not isinstance(message, channel.messages):
        return f"{name} may not come on {subject}"
    wanted = channel.tokens(message)
    if not _agree(tokens, wanted, open_ended=channel.open_ended):
        return f"this {name} belongs on {ROOT}.{class_}.{'.'.join(wanted)}, and came on {subject}"
    source = message.source if isinstance(message, Observation) and class_ == "observations" else ""
    if source and token(source) != tokens[0]:
        return f"the source {source!r} does not speak on {subject}"
    return ""


def _agree(tokens: Sequence[str], wanted: Sequence[str], *, open_ended: bool) -> bool:
    if len(tokens) < len(wanted) or (len(tokens) > len(wanted) and not open_ended):
        return False
    for there, need in zip(tokens, wanted, strict=False):  # noqa: SIM110 - of every message twice, at a third of the cost
        if need not in (there, ANY):
            return False
    return True
