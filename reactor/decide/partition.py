"""Deciding for one partition: read its facts in order, decide, store what is owed, only then publish it.

The epoch that is taken at the start fences everything that is published: a paused or cut off owner is refused by the
server itself. Groups are kept in memory and written when they owe something, all others every second with the position,
so that what was read after the last checkpoint is read again, and folding it in again changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, get_args

from bus import subjects
from bus.errors import Malformed, Refused
from bus.message_admission import read
from bus.messages import Fact
from bus.port import Bus, Delivery, Fence, LogReader
from bus.topology import FACTS
from reactor.audit.chain import ChainWriter
from reactor.audit.signing import Signer
from reactor.decide.checkpoint_pace import CHECKPOINT, WRITERS, CheckpointPace, CheckpointTurn, Unsaved
from reactor.decide.encoder import DecisionEncoder, Trace, report
from reactor.decide.group_traces import GroupTraces, untraced
from reactor.decide.latest import observations, standing
from reactor.decide.questions import Questions
from reactor.decide.refreshing import Refresher
from reactor.decide.store import OwnershipLost, PartitionStore
from reactor.decide.watermark import Watermark
from reactor.route.publisher import FactPublisher
from reactor.runtime import telemetry
from reactor.runtime.clock import Clock
from reactor.runtime.failpoints import reach
from reactor.runtime.quarantine import quarantine
from reactor.runtime.slices import sliced
from reactor.runtime.standstill import LAP
from rules.core.reader import Reader
from rules.core.reasons import Held
from rules.engine.decide import Decision
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.engine.subscriptions import RuleObject
from rules.kinds.quorum.kind import QuorumRule, judge_of

log = logging.getLogger(__name__)

CATCH_UP = timedelta(milliseconds=5)
"""So soon it is asked again whether all is known while something waits for that, and then half as often each time."""
CATCH_UP_MAX = timedelta(milliseconds=500)
"""Many partitions may wait for one router's work; a fact that comes is taken at once all the same."""
FRESH = timedelta(milliseconds=250)
"""Facts that were stored so lately are on time: they are decided on without asking whether there are newer ones."""
IDLE = timedelta(seconds=30)
"""So long a partition waits at most for facts or a window."""
FOREVER = timedelta(days=1)
LOADING = 4
"""How many partitions are loaded at the same time: a takeover may bring ten thousand groups."""
RING_BATCH = 100
"""Groups that are decided between two pauses of the loop: some 20 ms."""
AUDIT_BATCH = 25
"""Records that are made between two pauses of the loop: some 5 ms."""
SKEW_STEP = 0.005
"""In seconds: by how much clocks may differ is rounded up to such steps."""
_FACTS = frozenset(get_args(Fact))


@dataclass(frozen=True, slots=True)
class PartitionContext:
    """What every partition of this process shares."""

    bus: Bus
    clock: Clock
    routing: Routing
    partitions: int
    name: str
    signer: Signer | None = None
    """Signs the audit."""
    loading: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LOADING))
    """Partitions that are being loaded: each has its share of the event loop, and so has everything else."""
    writers: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(WRITERS))
    """Partitions that write a checkpoint. The others read on meanwhile."""
    unsaved: Unsaved = field(default_factory=Unsaved)
    """What is read again if this process dies."""

    _places: dict[tuple[str, str], int] = field(default_factory=dict)

    def partition_of(self, rule: str, scope: str) -> int:
        """The partition in which the rule's groups of this scope live. Each partition asks for those of all rules."""
        if (place := self._places.get((rule, scope))) is None:
            place = subjects.partition_of(*self.routing.home(rule, scope), self.partitions)
            self._places[rule, scope] = place
        return place

    @property
    def publisher(self) -> FactPublisher:
        """Who publishes what groups say to each other."""
        return FactPublisher(self.bus, self.routing, self.partitions, self.clock, source="/reactor/decider")


class Partition:
    """One partition while we own it."""

    def __init__(self, shared: PartitionContext, number: int) -> None:
        self._shared = shared
        self._number = number
        self._chain = ChainWriter(shared.bus, number, shared.signer)
        self._records = PartitionStore(shared.bus, number, shared.name, shared.routing.rule_set)
        self._position = 0
        self._pace = CheckpointPace(shared.clock, shared.unsaved)
        self._writing = CheckpointTurn(shared.writers)
        self.group_store = GroupStore(shared.routing, mine=lambda *_: False)  # none, until they are loaded
        self._encoder = DecisionEncoder(number, Fence("", 0), shared.publisher)
        self._refresher = Refresher(shared.bus, shared.clock)
        self._questions = Questions(lambda: self.group_store, self._refresher, shared.clock)
        self._catching_up = False
        self._again = CATCH_UP
        self._traces = GroupTraces()
        self._recalled = True
        """Whether we know all that was said of targets that no group listened to when this partition was taken over."""
        self._inherited = True
        """Whether what the owner before us owed is still to be published."""
        self._began = shared.clock.now()
        self._listening_since = self._began
        """Since when no outage of the bus, and no pause of this process, has kept us from asking and hearing."""
        self._stopped_at = shared.clock.standstill.long_ended_at
        """When a long standstill was over, as far as it was looked into."""
        self._overdue: datetime | None = None
        """Since when windows wait for what came in to be known."""
        self._now = datetime.min.replace(tzinfo=UTC)
        """The moment up to which was decided."""
        self._reading: LogReader | None = None
        self._came: Sequence[Delivery] = ()
        """What has come and is not being decided on yet."""
        self._coming: asyncio.Task[Sequence[Delivery]] | None = None
        """The facts that are waited for; goes on from turn to turn until some come."""
        self._suspended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when this process was suspended: what it owns may be another's by now."""

    async def run(self, stop: asyncio.Event) -> None:
        """Decide until told to stop, or until the partition is another owner's.

        Raises Lost, Unavailable; StreamRecreated: what was read has to be loaded again.
        """
        try:
            fence = await self._shared.bus.acquire_epoch(subjects.owner(self._number), self._shared.name)
            self._encoder = DecisionEncoder(self._number, fence, self._shared.publisher)
            reach("decider.epoch-taken")
            async with self._shared.loading:
                await self._load()
            reach("decider.loaded")
            async with self._shared.bus.read(FACTS, subjects.facts(self._number), after=self._position) as reading:
                self._reading = reading
                known = Watermark(self._shared.bus, self._shared.clock, reading)
                stopped = asyncio.create_task(stop.wait())
                unwatch = self._shared.clock.standstill.watch(self._on_suspended)
                try:
                    async with self._listening():
                        while not stopped.done():
                            await self._turn(reading, known, stopped)
                finally:
                    unwatch()
                    stopped.cancel()
                    await self._leave_waiting()
            await self._checkpoint()
        except Refused as error:
            raise OwnershipLost(f"partition {self._number}: {error}") from error
        finally:
            self._reading = None
            self._writing.leave()
            self._pace.leave()

    @property
    def unread(self) -> int:
        """How many facts it has not begun to decide on, for all it heard."""
        return len(self._came) + (self._reading.unread if self._reading is not None else 0)

    async def _next(self, reading: LogReader) -> Sequence[Delivery]:
        self._came = await reading.next(FOREVER)
        return self._came

    @asynccontextmanager
    async def _listening(self) -> AsyncIterator[None]:
        """Answer executors, and those who need to know what the Quorum sources of this partition see now."""
        quorums = [rule.source for rule in self._shared.routing.rules.values() if isinstance(rule, QuorumRule)]
        bus = self._shared.bus
        async with AsyncExitStack() as stack:
            stack.push_async_callback(await bus.listen(subjects.wanted(self._number), self._questions.answer))
            for judge, source in ((judge_of(one.name), one.name) for one in quorums):
                if self._mine(*judge):
                    handle = partial(self._questions.refresh, judge)
                    stack.push_async_callback(await bus.listen(subjects.refresh(source), handle))
            yield

    async def _load(self) -> None:
        groups, self._position = await self._records.load()
        self.group_store = GroupStore(self._shared.routing, groups, mine=self._mine)
        self.group_store.reader = self._reader(self._began)
        self.group_store.reconsider(self._shared.clock.now())
        self._recalled = not self._position
        await self._records.forget(self.group_store)  # those of rules that are no more: no fact will ever speak of them
        await self._chain.load(self._records.audited)
        await self._audit_owed()
        if self._position and self._records.other_rules:
            await self._fold_what_stands()

    async def _fold_what_stands(self) -> None:
        """Our rules have groups, or targets, that those before us did not have: for them, all that stands is news.

        The others have had it: what is not newer changes nothing.
        """
        facts = await standing(self._shared.bus, self._number, self._position)
        log.info("partition %d: %d standing facts are read by other rules", self._number, len(facts))
        for start in range(0, len(facts), RING_BATCH):
            some = facts[start : start + RING_BATCH]
            now = self._as_late_as(some)
            await self._carry(self.group_store.apply(some, now, known=False), now)
            await asyncio.sleep(0)
        self._recalled = True

    async def _publish_owed(self) -> None:
        """The owner before us may have stored what it owes, or grants, and not published it; nothing is taken twice.

        Only after all facts were read: what was right for it may be the wrong thing to do by now.
        """
        actions = self._encoder.actions(self._owing(), untraced)
        said = self._encoder.facts(self.group_store.outstanding(self._shared.clock.now()), untraced)
        if messages := [*actions, *said]:
            await self._shared.bus.publish_all(messages)

    async def _audit_owed(self) -> None:
        """The owner before us may have published actions and died before their records: each gets one that says at
        least that it was asked for. At once: with its outcome, an action is owed no more."""
        await self._audit(self._owing(), self._shared.clock.now(), untraced)

    def _owing(self) -> list[Decision]:
        return [
            Decision(group, actions, because=("it was owed when this partition was taken over",))
            for group in self.group_store.groups.values()
            if (actions := tuple(entry.action for entry in group.outbox if entry.wanted and not entry.failed))
        ]

    def _mine(self, rule: str, scope: str) -> bool:
        return self._shared.partition_of(rule, scope) == self._number

    async def _turn(self, reading: LogReader, known: Watermark, stopped: asyncio.Task[bool]) -> None:
        """Wait for facts or for the next alarm, whichever comes first, and decide."""
        began = self._shared.clock.monotonic()
        wait = self._wait()
        coming = self._coming = self._coming or asyncio.create_task(self._next(reading))
        any_of: set[asyncio.Future[Any]] = {coming, stopped, self._suspended}
        if self._writing.coming is not None:
            any_of.add(self._writing.coming)
        await asyncio.wait(any_of, timeout=wait.total_seconds(), return_when=asyncio.FIRST_COMPLETED)
        if stopped.done() and not coming.done():
            return
        deliveries: Sequence[Delivery] = ()
        if coming.done():
            self._coming, self._came, deliveries = None, (), coming.result()
        if self._suspended.done():
            self._suspended = asyncio.get_running_loop().create_future()
        if self._was_stopped(began, wait):
            await self._records.still_ours()
            self._listening_since = self._shared.clock.now()
        if deliveries:
            await self._take(deliveries)
        await self._ring(known)
        if self._inherited and not self._catching_up and await known.up_to(self._began, self._position):
            await self._publish_owed()
            self._inherited = False
        await self._checkpoint_in_turn()

    async def _checkpoint_in_turn(self) -> None:
        if self._checkpoint_wait() > 0:
            self._writing.leave()  # what a decision stored left nothing to write
            return
        self._writing.get_in_line()
        if self._writing.is_ours:
            try:
                await self._checkpoint()
            finally:
                self._writing.leave()

    def _on_suspended(self) -> None:
        if not self._suspended.done():
            self._suspended.set_result(None)

    async def _leave_waiting(self) -> None:
        """The next owner of the partition reads again what comes."""
        if self._coming is not None:
            self._coming.cancel()
            await asyncio.gather(self._coming, return_exceptions=True)

    def _was_stopped(self, began: float, wait: timedelta) -> bool:
        """Whether this process stood still during a turn that began then and was to take so long."""
        clock = self._shared.clock
        stopped_at = clock.standstill.long_ended_at
        noticed = stopped_at > self._stopped_at
        self._stopped_at = stopped_at
        return noticed or clock.monotonic() - began > wait.total_seconds() + LAP.total_seconds()

    def _checkpoint_wait(self) -> float:
        news, changed = self._records.unsaved(self._position, self._chain.head)
        return self._pace.wait(news=news, changed=changed)

    def _look_at_listening(self) -> None:
        """Let the book know how well we hear. Where windows could not be looked at for long, sources were not asked."""
        now, alarm = self._shared.clock.now(), self.group_store.next_alarm()
        if alarm is not None and alarm <= now:
            self._overdue = min(alarm, self._overdue or alarm)
        if self._overdue is not None and now - self._overdue > LAP:
            self._listening_since = now
        reader = self._reader(self._listening_since)
        if reader != self.group_store.reader:
            self.group_store.reader = reader

    def _reader(self, listening_since: datetime) -> Reader:
        # Who dated a fact may be as far off the bus's clock as we may be, and to the other side. In whole steps: what
        # follows from a reader that is the same is computed once.
        skew = 2 * self._shared.clock.skew_seconds
        return Reader(listening_since, math.ceil(skew / SKEW_STEP) * SKEW_STEP)

    def _wait(self) -> timedelta:
        clock = self._shared.clock
        # Without ticks of the process only a short wait shows that it was stopped.
        longest = CHECKPOINT if self._inherited or not clock.standstill.is_watched else IDLE
        if self._writing.coming is None:
            longest = min(longest, timedelta(seconds=max(self._checkpoint_wait(), 0.001)))
        alarm = self.group_store.next_alarm()
        if alarm is None:
            return longest
        soonest = self._again if self._catching_up else timedelta(milliseconds=1)
        return min(max(alarm - clock.now(), soonest), longest)

    async def _take(self, deliveries: Sequence[Delivery]) -> None:
        facts: list[Fact] = []
        traces: list[str | None] = []
        positions: list[int] = []
        for delivery in deliveries:
            try:
                fact = read(delivery.subject, delivery.body).data
            except Malformed as error:
                quarantine(delivery, FACTS, error)
                continue
            if type(fact) in _FACTS:
                facts.append(fact)
                traces.append(delivery.traceparent)
                positions.append(delivery.sequence)
        for name, count in Counter(type(fact).__name__ for fact in facts).items():
            telemetry.facts.labels(name).inc(count)
        reach("decider.fact-read")
        if not self._recalled and self.group_store.gains(facts):
            self.group_store.recall(await observations(self._shared.bus, self._number, self._position))
            self._recalled = True
        last = deliveries[-1]
        self._look_at_listening()
        now = self._as_late_as(facts)
        known = self._is_prompt(last) and not self._runs_out(now)
        self._position = last.sequence
        self._pace.read(len(deliveries))
        with telemetry.decide_seconds.time():
            decisions = self.group_store.apply(facts, now, positions, known=known)
        self._traces.heard(facts, traces, (decision.group for decision in decisions))
        await self._carry(decisions, now)
        waited = self._shared.clock.now() - deliveries[0].stored_at
        telemetry.decision_seconds.observe(max(waited.total_seconds(), 0.0))

    def _is_prompt(self, delivery: Delivery) -> bool:
        """Facts that were long on their way may be half a story: the rest comes behind them."""
        return self._shared.clock.now() - delivery.stored_at <= FRESH

    def _runs_out(self, now: datetime) -> bool:
        """Whether a window is over by now: what speaks against it may not have come yet."""
        alarm = self.group_store.next_alarm()
        return alarm is not None and alarm <= now

    def _as_late_as(self, facts: Sequence[Fact]) -> datetime:
        """How late it is for facts that were read: as late as the newest of them, and never earlier than before.

        What ends a window may come right behind them: only `_ring`, which asks for that, lets it get later.
        """
        newest = max((fact.observed_at for fact in facts), default=self._now)
        self._now = max(self._now, min(newest, self._shared.clock.now()))
        return self._now

    async def _ring(self, known: Watermark) -> None:
        now = self._shared.clock.now()
        alarm = self.group_store.next_alarm()
        if alarm is None or alarm > now:
            self._catching_up, self._overdue = False, None
            return
        self._look_at_listening()
        until = await known.up_to(alarm, self._position)
        if until is None:
            self._again = min(2 * self._again, CATCH_UP_MAX) if self._catching_up else CATCH_UP
            if not self._catching_up:
                self._catching_up = True
                telemetry.holds.labels("", Held.CATCHING_UP).inc()
                log.info("partition %d: windows wait until older facts are read", self._number)
            return
        self._catching_up = False
        self._overdue = None
        self._now = max(self._now, until)
        while decisions := self.group_store.fire_due(self._now, at_most=RING_BATCH):
            await self._carry(decisions, self._now)
            await asyncio.sleep(0)

    async def _carry(self, decisions: Sequence[Decision], now: datetime) -> None:
        """Store the groups that owe or say something, then publish what they owe and say, then the audit."""
        self._records.changed(_key(decision) for decision in decisions if decision.news)
        self._records.changed((_key(decision) for decision in decisions if not decision.news), news=False)
        await self._records.forget(self.group_store)
        self._questions.decided()
        await self._refresher.ask(lack for decision in decisions for lack in decision.lacks)
        loud = [decision for decision in decisions if decision.actions or decision.held or decision.emits]
        if not loud:
            return
        reach("decider.decided")
        with self._traces.decided(decision for decision in loud if decision.actions) as trace:
            await self._store_and_publish(loud, now, trace)

    async def _store_and_publish(self, loud: Sequence[Decision], now: datetime, trace: Trace) -> None:
        await self._records.save(self.group_store, [_key(decision) for decision in loud])
        reach("decider.state-stored")
        if messages := [*self._encoder.actions(loud, trace), *self._encoder.facts(loud, trace)]:
            await self._shared.bus.publish_all(messages)
            reach("decider.actions-published")
        told = [decision for decision in loud if decision.actions or decision.held]
        await self._audit(told, now, trace)
        reach("decider.audit-published")
        for decision in told:
            report(decision)

    async def _audit(self, decisions: Sequence[Decision], now: datetime, trace: Trace) -> None:
        digest = self._shared.routing.digest
        entries = [
            self._encoder.audit(one, digest(one.group.rule), now, self._position, trace(one.group))
            async for one in sliced(decisions, size=AUDIT_BATCH)
        ]
        await self._chain.write_all(entries)

    async def _checkpoint(self) -> None:
        self._pace.begin()
        await self._records.checkpoint(self.group_store, self._position, self._chain.head)


def _key(decision: Decision) -> RuleObject:
    return decision.group.rule, decision.group.object
