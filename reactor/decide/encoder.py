"""Turns decisions into messages: actions behind their fence, facts for other groups, the audit, the log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from bus import subjects
from bus.envelope import encode
from bus.messages import Action, Fact, Mode, iso
from bus.port import Fence, Outgoing
from reactor.audit.chain import ChainEntry
from reactor.route.publisher import FactPublisher
from reactor.runtime import telemetry
from rules.core.group import Group
from rules.engine.decide import Decision
from rules.rehearsal.decision_replay import recorded

log = logging.getLogger(__name__)
SOURCE = "/reactor/decider"
RESTARTS_MAX = 10
"""Windows that restarted together and have a line of the log each; more have one line in all."""


Trace = Callable[[Group], str | None]
"""Gives the traceparent of what is decided for a group; None: it is not traced."""


@dataclass(frozen=True, slots=True)
class DecisionEncoder:
    """Speaks for one partition while we own it."""

    number: int
    fence: Fence
    publisher: FactPublisher

    def actions(self, decisions: Sequence[Decision], trace: Trace) -> list[Outgoing]:
        """The actions that executors are to carry out: what a dry run would do stays in the audit."""
        return [
            self.action(decision.group, action, trace(decision.group))
            for decision in decisions
            for action in decision.actions
            if action.mode is Mode.ENFORCE
        ]

    def action(self, group: Group, action: Action, trace: str | None) -> Outgoing:
        """One action, fenced by the epoch of this ownership."""
        asks = next((entry.tries + entry.rounds for entry in group.outbox if entry.action.id == action.id), 1)
        action = action.model_copy(update={"epoch": self.fence.epoch})
        # The id names the ask: after each answer that is not Done the same action has to reach an executor again. And
        # the moment of its decision: a rule that is put back counts from one again.
        id_ = f"{action.id}@{iso(action.decided_at)}#{asks}"
        subject = subjects.action(self.number, type(action).__name__, action.object)
        body = encode(action, id=id_, source=SOURCE, time=action.decided_at)
        return Outgoing(subject, body, id_, self.fence, trace)

    def facts(self, decisions: Sequence[Decision], trace: Trace) -> list[Outgoing]:
        """Facts of these decisions for other groups, one message for each partition that each concerns."""
        return [
            message
            for decision in decisions
            for fact in decision.emits
            for message in self.publisher.messages(fact, _id(decision.group, fact), trace(decision.group))
        ]

    def audit(self, decision: Decision, digest: str, now: datetime, position: int, trace: str | None) -> ChainEntry:
        """The record of a decision that asked for something, or holds."""
        group = decision.group
        id_ = f"{self.number}/{self.fence.epoch}/{group.rule}/{group.object}/{now.isoformat()}/{position}"
        return ChainEntry(recorded(decision, digest, now), id_, SOURCE, trace)


def _id(group: Group, fact: Fact) -> str:
    """Id of the message of a fact: the same for the same fact of the same moment, in every process and at every try."""
    kind = type(fact).__name__.lower()
    return f"{group.rule}/{group.object}/{kind}/{iso(fact.observed_at)}/{subjects.token(fact.model_dump_json())}"


def _what(action: Action) -> object:
    """Give what the log says of an action beside its kind: its weights, its message, its step."""
    return next((value for key in ("weights", "message", "step") if (value := getattr(action, key, None))), "")


def report_restarts(decisions: Iterable[Decision]) -> None:
    """Tell the log which windows have restarted, and why: after a gap in which nothing looked it may be thousands."""
    restarted = [(one.group, *restart) for one in decisions for restart in one.restarts.items()]
    for group, target, restart in restarted[:RESTARTS_MAX]:
        extra = {"rule": group.rule, "object": group.object, "target": target, "at": iso(restart.at)}
        log.info(restart.words, extra=extra)
    if len(restarted) > RESTARTS_MAX:
        log.info("%d more windows restarted: `reactor status` shows each", len(restarted) - RESTARTS_MAX)


def report(decision: Decision) -> None:
    """Tell the log and the metrics what was decided."""
    group, held = decision.group, decision.held
    for action in decision.actions:
        telemetry.decisions.labels(action.rule, action.because).inc()
        if not log.isEnabledFor(logging.INFO):
            continue
        kind = type(action).__name__
        would = "" if action.mode is Mode.ENFORCE else " (dry run)"
        log.info(
            "%s%s", kind, would,
            extra={"rule": action.rule, "object": action.object, "because": action.because, "id": action.id,
                   "what": _what(action)},
        )  # fmt: skip
    if held is not None:
        telemetry.holds.labels(group.rule, held.reason).inc()
        extra = {"rule": group.rule, "object": group.object, "reason": held.reason, "detail": held.detail}
        log.warning("on hold", extra=extra)
