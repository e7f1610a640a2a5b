"""Records of commands in the audit: by whom, when, and why, whatever becomes of them."""

from __future__ import annotations

from bus.messages import Command, DecisionRecord
from reactor.audit.chain import ChainEntry


def audited(command: Command, id_: str) -> ChainEntry:
    """Give the record of a command. `id_`: what makes it the same when it is written again."""
    record = DecisionRecord(
        rule=command.rule, object=str(getattr(command, "object", None) or getattr(command, "zone", "*")),
        decided_at=command.observed_at, facts=(command.model_dump(mode="json"),),
        because=(f"{command.who} said {type(command).__name__}{_length(command)}: {command.reason}",),
    )  # fmt: skip
    return ChainEntry(record, f"command/{id_}", "/reactor/router")


def _length(command: Command) -> str:
    seconds = getattr(command, "for_seconds", None)
    return f" for {seconds:g} s" if seconds is not None else ""
