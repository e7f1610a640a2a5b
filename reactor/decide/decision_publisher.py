"""Stores the groups of decisions, then publishes their actions and facts, then records them in the audit.

In this order a process may die at any point: what is stored and not published, the next owner publishes again.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from bus.port import Bus, Fence
from reactor.audit.chain import ChainWriter
from reactor.decide.encoder import DecisionEncoder, Trace, report, report_restarts
from reactor.decide.group_traces import GroupTraces, untraced
from reactor.decide.partition_context import PartitionContext
from reactor.decide.store import PartitionStore
from reactor.runtime.failpoints import reach
from reactor.runtime.slices import sliced
from rules.engine.decide import Decision
from rules.engine.groups import GroupStore
from rules.engine.subscriptions import RuleObject

AUDIT_BATCH = 25
"""Records that are made between two pauses of the loop: some 5 ms."""


class DecisionPublisher:
    """Publisher of the decisions of one partition, while we own it."""

    def __init__(self, shared: PartitionContext, number: int, records: PartitionStore) -> None:
        self._bus: Bus = shared.bus
        self._digest = shared.routing.digest
        self._number = number
        self._facts = shared.publisher
        self._records = records
        self._encoder = DecisionEncoder(number, Fence("", 0), shared.publisher)
        self.chain = ChainWriter(shared.bus, number, shared.signer)
        """Audit of this partition."""
        self.traces = GroupTraces()

    def behind(self, fence: Fence) -> None:
        """Fence all that is published from now on."""
        self._encoder = DecisionEncoder(self._number, fence, self._facts)

    async def publish(
        self, group_store: GroupStore, decisions: Sequence[Decision], now: datetime, position: int
    ) -> None:
        """Store, publish and record these decisions, of which some may ask for nothing. `position`: of the last fact
        that was read. Raises OwnershipLost, Refused, Unavailable."""
        report_restarts(decisions)
        loud = [decision for decision in decisions if decision.actions or decision.held or decision.emits]
        if not loud:
            return
        reach("decider.decided")
        with self.traces.decided(decision for decision in loud if decision.actions) as trace:
            await self._records.save(group_store, [group_key(decision) for decision in loud])
            reach("decider.state-stored")
            if messages := [*self._encoder.actions(loud, trace), *self._encoder.facts(loud, trace)]:
                await self._bus.publish_all(messages)
                reach("decider.actions-published")
            told = [decision for decision in loud if decision.actions or decision.held]
            await self._audit(told, now, position, trace)
            reach("decider.audit-published")
            for decision in told:
                report(decision)

    async def publish_owed(self, group_store: GroupStore, now: datetime) -> None:
        """Publish what the owner before us stored and may not have published; nothing is taken twice.

        Only after all facts were read: what was right for it may be the wrong thing to do by now.
        """
        actions = self._encoder.actions(_owed(group_store), untraced)
        facts = self._encoder.facts(group_store.outstanding(now), untraced)
        if messages := [*actions, *facts]:
            await self._bus.publish_all(messages)

    async def audit_owed(self, group_store: GroupStore, now: datetime, position: int) -> None:
        """Record the actions that the owner before us may have published without a record: that they were asked for.

        At once: with its outcome, an action is owed no more."""
        await self._audit(_owed(group_store), now, position, untraced)

    async def _audit(self, decisions: Sequence[Decision], now: datetime, position: int, trace: Trace) -> None:
        entries = [
            self._encoder.audit(one, self._digest(one.group.rule), now, position, trace(one.group))
            async for one in sliced(decisions, size=AUDIT_BATCH)
        ]
        await self.chain.write_all(entries)


def group_key(decision: Decision) -> RuleObject:
    """Key of the decision's group: its rule and its object."""
    return decision.group.rule, decision.group.object


def _owed(group_store: GroupStore) -> list[Decision]:
    return [
        Decision(group, actions, because=("it was owed when this partition was taken over",))
        for group in group_store.groups.values()
        if (actions := tuple(entry.action for entry in group.outbox if entry.wanted and not entry.failed))
    ]
