"""Streams, queues and key-value buckets as data: what `reactor` creates, and what an operator may create beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from bus.subjects import ROOT

PARTITIONS = 64
"""How many partitions facts are spread over. Fixed when the stream is created: far more than reactors, far fewer than
groups."""

DUPLICATE_WINDOW = timedelta(minutes=5)
"""How long the server remembers a message id: longer than any retry of ours lasts."""


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


@dataclass(frozen=True, slots=True)
class Queue:
    """One durable consumer that any number of processes share."""

    name: str
    stream: str
    filter: str
    ack_wait: timedelta
    """A message that is not acknowledged for this long is given to another."""
    max_deliver: int
    """How often it is given out before it is put aside; -1: for ever, and whoever cannot read it puts it aside."""
    max_ack_pending: int
    """How many may be in hands at once, over all processes."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """One key-value bucket."""

    name: str
    max_bytes: int
    why: str


GIB = 1 << 30

INBOX = Stream(
    "REACTOR_INBOX", (f"{ROOT}.observations.>", f"{ROOT}.webhooks.>", f"{ROOT}.commands.>"),
    "workqueue", timedelta(hours=24), 4 * GIB, "what came in and is not yet routed",
)  # fmt: skip
FACTS = Stream(
    "REACTOR_FACTS", (f"{ROOT}.facts.>",),
    "limits", timedelta(hours=24), 8 * GIB, "facts by partition, read by the partition's owner from its own position",
)  # fmt: skip
ACTIONS = Stream(
    "REACTOR_ACTIONS", (f"{ROOT}.actions.>", f"{ROOT}.own.*"),
    "workqueue", timedelta(0), 1 * GIB, "actions that are owed, and the markers that fence them",
)  # fmt: skip
DECISIONS = Stream(
    "REACTOR_DECISIONS", (f"{ROOT}.decisions.>",),
    "limits", timedelta(days=30), 8 * GIB, "the audit: each decision with the facts behind it",
)  # fmt: skip
STREAMS = (INBOX, FACTS, ACTIONS, DECISIONS)

ACK_WAIT = timedelta(seconds=10)
"""So long waits what a process had in hands that died. Not less: a cluster that lost its leader cannot hear for up to
6.5 s (measured) that somebody is still working on it. Longer work says so (`Work.extend`)."""

ROUTERS = Queue("routers", INBOX.name, f"{ROOT}.>", ACK_WAIT, -1, 2_000)
EXECUTORS = Queue("executors", ACTIONS.name, f"{ROOT}.actions.>", ACK_WAIT, -1, 1_000)
QUEUES = (ROUTERS, EXECUTORS)

GROUPS = Bucket("reactor_groups", 4 * GIB, "the state of each group, and each partition's position")
LEASES = Bucket("reactor_leases", GIB // 16, "who decides for which partition, and who is there")
INTENTS = Bucket("reactor_intents", 1 * GIB, "per object: the newest generation and what became of it")
ALERTS = Bucket("reactor_alerts", 1 * GIB, "each alert that stands, or is resolved and waits for its confirmation")
TEMPLATES = Bucket(
    "reactor_templates", 2 * GIB, "remembered copies of workloads, for the day when their cluster is dead"
)
BUCKETS = (GROUPS, LEASES, INTENTS, ALERTS, TEMPLATES)
