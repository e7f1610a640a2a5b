"""Streams, queues and key-value buckets as data: what `reactor` creates, and what an operator may create beforehand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from bus.subjects import ROOT

PARTITIONS = 64
"""Number of partitions that facts are spread over. Fixed when the stream is created: far more than reactors, far fewer
than groups."""

DUPLICATE_WINDOW = timedelta(minutes=5)
"""Time for which the server remembers a message id: longer than any retry of ours lasts."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One JetStream stream."""

    name: str
    subjects: tuple[str, ...]
    retention: Literal["limits", "workqueue"]
    """limits: kept for max_age. workqueue: kept until one reader has acknowledged it."""
    max_age: timedelta
    max_bytes: int
    """Bytes on disk. A limits stream then drops its oldest; a work queue refuses new messages, so that none is lost."""
    why: str
    drops_oldest: bool = False
    """True: this work queue drops its oldest messages when it is full."""


@dataclass(frozen=True, slots=True)
class Queue:
    """One durable consumer that any number of processes share."""

    name: str
    stream: str
    filter: str
    ack_wait: timedelta
    """A message that is not acknowledged for this long is given to another."""
    max_deliver: int
    """Deliveries of a message before it is quarantined; -1: without end; readers quarantine what they cannot read."""
    max_ack_pending: int
    """Most messages in flight at once, over all processes."""
    in_progress: timedelta | None = None
    """Interval at which a share extends all that it holds, so that `ack_wait` can be short. None: its user calls
    `extend`."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """One key-value bucket."""

    name: str
    max_bytes: int
    why: str
    max_age: timedelta = timedelta(0)
    """Time for which a key is kept after it was last written; 0: without end."""


GIB = 1 << 30

INBOX = Stream(
    "REACTOR_INBOX", (f"{ROOT}.observations.>", f"{ROOT}.inventory.>", f"{ROOT}.webhooks.>", f"{ROOT}.commands.>"),
    "workqueue", timedelta(hours=24), 4 * GIB, "what came in and is not yet routed",
)  # fmt: skip
FACTS = Stream(
    "REACTOR_FACTS", (f"{ROOT}.facts.>",),
    "limits", timedelta(hours=24), 8 * GIB, "facts by partition, read by the partition's owner from its own position",
)  # fmt: skip
ACTIONS = Stream(
    "REACTOR_ACTIONS", (f"{ROOT}.actions.>", f"{ROOT}.owner.*"),
    "workqueue", timedelta(0), 1 * GIB, "actions that are owed, and the markers that fence them",
)  # fmt: skip
DECISIONS = Stream(
    "REACTOR_DECISIONS", (f"{ROOT}.decisions.>",),
    "limits", timedelta(days=30), 8 * GIB, "the audit: each decision with the facts behind it",
)  # fmt: skip
PARKED = Stream(
    "REACTOR_PARKED", (f"{ROOT}.parked.>",),
    "workqueue", timedelta(hours=1), GIB // 4, "large posts, and posts for sources that the routers do not know yet",
)  # fmt: skip
EXCESS = Stream(
    "REACTOR_EXCESS", (f"{ROOT}.excess.>",),
    "workqueue", timedelta(hours=1), GIB // 4, "what publishers said faster than they may, until its turn comes",
    drops_oldest=True,
)  # fmt: skip
STREAMS = (INBOX, FACTS, ACTIONS, DECISIONS, PARKED, EXCESS)

ACK_WAIT = timedelta(seconds=5)
"""Time after which an action whose executor died or does not run is given to another. A cluster that lost its leader
cannot hear for up to 6.5 s (measured) that it is still being worked on, and gives it to another as well. That one asks
the decider first, and all writes are conditional: the second one finds the world as asked. Longer work says so
(`Work.extend`)."""
ROUTE_WAIT = timedelta(seconds=2)
"""The same for a router. Shorter than a change of leaders: windows wait for it, and to route a message twice is
harmless, because each fact has an id that follows from the message's."""

ROUTERS = Queue("routers", INBOX.name, f"{ROOT}.>", ROUTE_WAIT, -1, 2_000, in_progress=timedelta(seconds=0.5))
PARKED_POSTS = replace(ROUTERS, name="parked", stream=PARKED.name, filter=f"{ROOT}.parked.>")
DELAYED = replace(ROUTERS, name="excess", stream=EXCESS.name, filter=f"{ROOT}.excess.>")
EXECUTORS = Queue("executors", ACTIONS.name, f"{ROOT}.actions.>", ACK_WAIT, -1, 1_000)
QUEUES = (ROUTERS, PARKED_POSTS, DELAYED, EXECUTORS)

GROUPS = Bucket(
    "reactor_groups", 4 * GIB, "the state of each group, each partition's position, and rules for their way back"
)
LEASES = Bucket("reactor_leases", GIB // 16, "who decides for which partition, and who is there")
KEPT = timedelta(days=30)
"""Time for which keys are kept: what is needed is written again long before."""
INTENTS = Bucket("reactor_intents", 1 * GIB, "per object: the newest generation and what became of it", KEPT)
ALERTS = Bucket("reactor_alerts", 1 * GIB, "each alert that fires, or is resolved and waits for its confirmation")
TEMPLATES = Bucket(
    "reactor_templates", 2 * GIB, "remembered copies of workloads, for the day when their cluster is dead", KEPT
)
LINKS = Bucket("reactor_links", GIB // 16, "the keys that sign links for approval, and which links were used", KEPT)
BUCKETS = (GROUPS, LEASES, INTENTS, ALERTS, TEMPLATES, LINKS)
