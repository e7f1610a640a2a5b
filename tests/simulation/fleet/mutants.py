"""The fleet with one mistake in it: each is a mistake that a hurried change could make, and must be caught."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from bus.messages import Fact, Observation, Outcome, SetTaints
from bus.port import Outgoing
from reactor.actions.execution import ExecutionContext
from reactor.audit.chain import Head
from reactor.decide.decision_publisher import DecisionPublisher
from reactor.decide.encoder import DecisionEncoder
from reactor.decide.group_traces import untraced
from reactor.decide.store import PartitionStore
from reactor.execute import executor
from reactor.execute.cancellation import CancellationCheck
from reactor.execute.intent import Intent
from rules.core.group import Group
from rules.core.reasons import Because
from rules.engine import deadlines, debounce, decide, evidence, groups, guard, signals
from rules.engine import observe as facts_in
from rules.engine.decide import Decision
from rules.engine.groups import GroupStore
from rules.engine.pauses import PAUSES
from rules.kinds.cluster_taint import kind as taint_kind
from rules.kinds.cluster_taint.model import ClusterTaint
from rules.kinds.workload import causes, old_copy
from rules.kinds.workload.model import WorkloadFailover
from rules.kinds.zone import kind as zone_kind
from rules.kinds.zone import zone_commands
from rules.kinds.zone.model import ZoneIsolation
from rules.limits import approvals
from rules.rulefile.model import Rule

Mutant = Callable[[pytest.MonkeyPatch], None]


def saved_after_publish(patch: pytest.MonkeyPatch) -> None:
    """Actions are published first, and the groups that owe them stored after that."""

    async def publish(
        self: Any, group_store: GroupStore, decisions: Sequence[Decision], _now: datetime, _position: int
    ) -> None:
        keys = [(decision.group.rule, decision.group.object) for decision in decisions]
        self._records.changed(keys)
        if actions := self._encoder.actions(decisions, untraced):
            await self._bus.publish_all(actions)
            await self._records.save(
                group_store, [key for key, one in zip(keys, decisions, strict=True) if one.actions]
            )

    patch.setattr(DecisionPublisher, "publish", publish)


def no_fence(patch: pytest.MonkeyPatch) -> None:
    """Actions carry an epoch, and the server is not asked to check it."""
    action = DecisionEncoder.action

    def unfenced(self: DecisionEncoder, *args: Any) -> Outgoing:
        message = action(self, *args)
        return Outgoing(message.subject, message.body, message.id, None, message.traceparent)

    patch.setattr(DecisionEncoder, "action", unfenced)


def from_receipt(patch: pytest.MonkeyPatch) -> None:
    """Windows run from when an observation is heard, not from when it was made."""
    folded = facts_in.folded

    def late(rule: Any, group: Any, fact: Fact, now: datetime) -> Any:
        if isinstance(fact, Observation):
            fact = fact.model_copy(update={"observed_at": now})
        return folded(rule, group, fact, now)

    patch.setattr(facts_in, "folded", late)


def position_first(patch: pytest.MonkeyPatch) -> None:
    """The position is stored before the groups that it is about."""
    checkpoint = PartitionStore.checkpoint

    async def reversed_order(self: Any, group_store: GroupStore, position: int, audited: Head) -> None:
        dirty, self._dirty = self._dirty, set()
        await checkpoint(self, group_store, position, audited)
        self._dirty = dirty
        await checkpoint(self, group_store, position, audited)

    patch.setattr(PartitionStore, "checkpoint", reversed_order)


def windows_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A new owner takes over what is settled, and not the windows that are open."""
    load = PartitionStore.load

    async def settled_only(self: PartitionStore) -> tuple[list[Group], int]:
        groups, position = await load(self)
        return [_without_windows(group) for group in groups], position

    patch.setattr(PartitionStore, "load", settled_only)


def _without_windows(group: Group) -> Group:
    members = {target: replace(member, window=None) for target, member in group.members.items()}
    return replace(group, members=members, next_deadline=None)


def stale_not_refused(patch: pytest.MonkeyPatch) -> None:
    """The executor carries an older action out although a newer one was."""
    read = Intent.read

    def ageless(body: bytes) -> Any:
        return replace(read(body), generation=-1, epoch=-1)

    async def always(*_: Any) -> None:
        return None

    patch.setattr(Intent, "read", ageless)
    patch.setattr(CancellationCheck, "__call__", always)  # which would notice most of them


def acknowledged_first(patch: pytest.MonkeyPatch) -> None:
    """The executor acknowledges what it takes before it has carried it out."""
    one = executor.Executor._one

    async def hasty(self: Any, work: Any, delivery: Any) -> None:
        await work.ack([delivery])
        await one(self, work, delivery)

    patch.setattr(executor.Executor, "_one", hasty)


def no_intent_check(patch: pytest.MonkeyPatch) -> None:
    """The executor writes whatever it is given, and looks at no intent."""

    async def write(self: Any, action: Any, *_: Any, **_more: Any) -> Outcome:
        outcome: Outcome = await self._write(action, ExecutionContext())
        return outcome

    patch.setattr(executor.Executor, "_act_by_intent", write)


def owed_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A new owner does not publish what the one before it owed."""

    async def nothing(self: Any, *_: Any) -> None:
        return

    patch.setattr(DecisionPublisher, "publish_owed", nothing)


def named_without_its_date(patch: pytest.MonkeyPatch) -> None:
    """An action's message has the name that the same action had before its rule was removed and put back."""
    action = DecisionEncoder.action

    def undated(self: DecisionEncoder, *args: Any) -> Outgoing:
        message = action(self, *args)
        name = re.sub("@[^#]*#", "#", message.id)
        return Outgoing(message.subject, message.body, name, message.fence, message.traceparent)

    patch.setattr(DecisionEncoder, "action", undated)


def shorter_windows_count(patch: pytest.MonkeyPatch) -> None:
    """A window that is over by the rule as it was is over, whatever the rule says now."""
    patch.setattr(groups, "lengthened", lambda member, _rule: member)


def edits_are_not_considered(patch: pytest.MonkeyPatch) -> None:
    """Groups are decided by an edited rule only when they are decided anyway."""
    patch.setattr(GroupStore, "reconsider", lambda *_: None)


def without_evidence(patch: pytest.MonkeyPatch) -> None:
    """Windows run out by the clock, whatever is seen when they are over."""
    patch.setattr(deadlines, "is_proven", lambda *_: True)
    patch.setattr(decide, "present", lambda *seen: (seen[3], ()))


def zones_without_evidence(patch: pytest.MonkeyPatch) -> None:
    """A zone's windows run out by the clock, and its steps are taken, whatever is seen when they are over."""
    _by_the_clock(patch, ZoneIsolation)


def taints_without_evidence(patch: pytest.MonkeyPatch) -> None:
    """A cluster is tainted, and its taints are taken off, by the clock, whatever is seen when its window is over."""
    _by_the_clock(patch, ClusterTaint)


def workloads_without_evidence(patch: pytest.MonkeyPatch) -> None:
    """A workload leaves by the clock, whatever is seen of its copies when its toleration is over."""
    _by_the_clock(patch, WorkloadFailover)


def recoveries_count_before_a_move(patch: pytest.MonkeyPatch) -> None:
    """A copy that has not left yet has to be good for recoverySeconds until its toleration begins again."""
    ticked = causes.ticked_copy
    patch.setattr(causes, "ticked_copy", lambda *known, **_: ticked(*known, leaves=True))


def old_copies_go_at_once(patch: pytest.MonkeyPatch) -> None:
    """The old copy is purged as soon as its replacement is placed, before that was seen Healthy."""
    patch.setattr(
        old_copy, "purged_because", lambda *_, placed, **_more: Because.REPLACEMENT_HEALTHY if placed else None
    )


def _by_the_clock(patch: pytest.MonkeyPatch, kind: type[Rule]) -> None:
    is_proven, present = deadlines.is_proven, evidence.present

    def proven(member: Any, rule: Any, end: datetime) -> bool:
        return isinstance(rule, kind) or is_proven(member, rule, end)

    def unasked(*seen: Any) -> Any:
        return (seen[3], ()) if isinstance(seen[0], kind) else present(*seen)

    patch.setattr(deadlines, "is_proven", proven)
    patch.setattr(decide, "present", unasked)


def old_taints_stay_wanted(patch: pytest.MonkeyPatch) -> None:
    """A taint that is asked for is put on whenever an executor comes to it, whatever its cluster is like by then."""
    confirms = CancellationCheck.__call__

    async def unasked(self: Any) -> None:
        if not isinstance(self._action, SetTaints):
            await confirms(self)

    patch.setattr(CancellationCheck, "__call__", unasked)


def taints_in_doubt_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A write of taints that was called off, or whose answer was lost, counts as one that was never tried."""
    known = taint_kind._is_known_to_have
    patch.setattr(taint_kind, "_is_known_to_have", lambda state, want: known(replace(state, unconfirmed=None), want))


def a_yes_counts_again(patch: pytest.MonkeyPatch) -> None:
    """A person's yes outlives the request that it was for: the same plan needs none in the next outage."""
    patch.setattr(guard, "dropped", lambda group: group)
    patch.setattr(approvals, "due", lambda _: approvals.NEVER)


def orders_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A zone that a person has isolated comes back by itself, as if the rule had isolated it."""
    follow = zone_commands.follow

    def unnamed(rule: Any, state: Any, fact: Any, now: datetime) -> Any:
        after = follow(rule, state, fact, now)
        return after if after.isolation is None else replace(after, isolation=replace(after.isolation, by=""))

    patch.setattr(zone_commands, "follow", unnamed)


def lost_isolations_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A group that has lost its record does not ask the nodes whether their zone is isolated."""
    patch.setattr(zone_kind, "taken_up", lambda _rule, state, _now: state)


def unseen_time_counts(patch: pytest.MonkeyPatch) -> None:
    """A status that is the same before and after a time without a look counts as unbroken."""
    patch.setattr(debounce, "is_broken", lambda *_: False)
    patch.setattr(signals, "goes_on", lambda last, new: (last.status_before or last.status) is new.status)


def pauses_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A new owner takes over all groups, and not that a person has paused them."""
    load = PartitionStore.load

    async def resumed(self: PartitionStore) -> tuple[list[Group], int]:
        groups, position = await load(self)
        return [replace(group, paused=None) for group in groups if group.rule != PAUSES], position

    patch.setattr(PartitionStore, "load", resumed)


MUTANTS: dict[str, Mutant] = {
    one.__name__: one
    for one in (
        saved_after_publish, no_fence, from_receipt, position_first, no_intent_check,
        owed_forgotten, windows_forgotten, stale_not_refused, acknowledged_first, without_evidence,
        named_without_its_date, shorter_windows_count, edits_are_not_considered,
        zones_without_evidence, unseen_time_counts, pauses_forgotten, taints_without_evidence,
        old_taints_stay_wanted, taints_in_doubt_forgotten, a_yes_counts_again, orders_are_forgotten,
        lost_isolations_forgotten,
        workloads_without_evidence, recoveries_count_before_a_move, old_copies_go_at_once,
    )
}  # fmt: skip
