"""Permissions on the bus of each role, made from subjects and topology.

Each user has an inbox prefix of its own, so that none sees or forges what is for another. Only processes that carry
rules out may make consumers, and only on what they read: a consumer can deliver what is stored to any subject. People
read without consumers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import get_args

from bus import topology
from bus.message_admission import command_kind, fact_kinds
from bus.messages import (
    AcquireReply,
    AcquireRequest,
    AnyCommand,
    Approve,
    Inventory,
    Outcome,
    Pause,
    Reject,
    Resume,
    TrafficCommand,
)
from bus.subjects import COMMANDS, ROOT, commands_position, inbox, token
from bus.topology import Bucket, Queue, Stream

API = "$JS.API"


@dataclass(frozen=True, slots=True)
class Permissions:
    """Permissions of one user. NATS denies everything else."""

    user: str
    why: str
    publish: tuple[str, ...]
    subscribe: tuple[str, ...] = ()

    @property
    def inbox(self) -> str:
        """The prefix of this user's inboxes: the setting `bus.inboxPrefix`."""
        return inbox(self.user)


def _name(kept: Stream | Bucket) -> str:
    return kept.name if isinstance(kept, Stream) else f"KV_{kept.name}"


def _read(*kept: Stream | Bucket) -> Iterable[str]:
    """Permissions to read what is stored, without a consumer."""
    for one in kept:
        yield from (f"{API}.{what}.{_name(one)}" for what in ("STREAM.INFO", "STREAM.MSG.GET", "DIRECT.GET"))


def _follow(*kept: Stream | Bucket) -> Iterable[str]:
    """Permissions to read with consumers that the user makes and drops itself."""
    yield from _read(*kept)
    for one in kept:
        yield from (f"{API}.CONSUMER.{what}.{_name(one)}.*" for what in ("CREATE", "DELETE"))
        yield f"$JS.FC.{_name(one)}.>"


def _work(*queues: Queue) -> Iterable[str]:
    """Permissions to take a share of a queue, and to resume it where a person paused it."""
    for one in queues:
        name = f"{one.stream}.{one.name}"
        yield from (f"{API}.CONSUMER.{what}.{name}" for what in ("INFO", "MSG.NEXT", "PAUSE"))
        yield from (f"$JS.ACK.{name}.>", f"$JS.ACK.*.*.{name}.>")


def _write(*buckets: Bucket) -> Iterable[str]:
    for one in buckets:
        yield f"$KV.{one.name}.>"
        yield from _read(one)


def _facts(*kinds: str) -> Iterable[str]:
    for kind in kinds:
        yield f"{ROOT}.facts.*.{kind}.>"


def _make() -> Iterable[str]:
    """Permissions to make streams, buckets and queues."""
    for kept in (*topology.STREAMS, *topology.BUCKETS):
        yield from (f"{API}.STREAM.{what}.{_name(kept)}" for what in ("CREATE", "UPDATE"))
    for queue in topology.QUEUES:
        yield f"{API}.CONSUMER.DURABLE.CREATE.{queue.stream}.{queue.name}"


LOOK = (
    f"{API}.INFO",
    *(f"{API}.STREAM.INFO.{_name(kept)}" for kept in (*topology.STREAMS, *topology.BUCKETS)),
    *(f"{API}.CONSUMER.INFO.{queue.stream}.{queue.name}" for queue in topology.QUEUES),
)
"""Permissions to see which streams, buckets and queues there are."""
PRESENT = (
    *LOOK, *_follow(topology.LEASES), *_read(topology.GROUPS), f"$KV.{topology.LEASES.name}.>",
    f"$KV.{topology.GROUPS.name}.probe", f"{ROOT}.alive.*",
)  # fmt: skip
"""Permissions of every process: to be present, to see the others, and to try a write."""
VIEW = (*LOOK, *_read(topology.GROUPS, topology.LEASES, topology.FACTS, topology.DECISIONS))
NEWEST_RECORD = f"{API}.STREAM.MSG.GET.{topology.DECISIONS.name}"
"""Permission to read the newest record, so that the audit goes on after it."""
INVENTORY = tuple(fact_kinds(*get_args(Inventory)))
SEEN = ("observation", *INVENTORY)

_OPERATOR = (Pause, Resume, Approve, Reject, *get_args(TrafficCommand))
USER = "<user>"
"""Placeholder of the user's own name, the last token of each command's subject."""

_PUBLISH: Mapping[str, tuple[str, Callable[[], Iterable[str]]]] = {
    "observer": ("runs sources", lambda: (*PRESENT, *_facts(*SEEN), *_write(topology.TEMPLATES))),
    "receiver": ("takes alerts", lambda: (*PRESENT, f"{ROOT}.webhooks.*", f"{ROOT}.parked.*")),
    "router": ("routes what comes in", lambda: (
        *PRESENT, *_work(topology.ROUTERS, topology.PARKED_POSTS, topology.DELAYED), *_write(topology.ALERTS),
        *_follow(topology.ALERTS), *_facts(*SEEN, *fact_kinds(*get_args(AnyCommand))), f"{ROOT}.parked.*",
        f"{ROOT}.excess.*", f"{ROOT}.decisions.{COMMANDS}.*",
        f"$KV.{topology.GROUPS.name}.{commands_position()}", NEWEST_RECORD,
    )),
    "decider": ("decides", lambda: (
        *PRESENT, *_follow(topology.FACTS, topology.GROUPS), *_write(topology.GROUPS), *_read(topology.ACTIONS),
        *_facts("observation", *fact_kinds(AcquireRequest, AcquireReply)), f"{ROOT}.actions.>", f"{ROOT}.owner.*",
        f"{ROOT}.decisions.*.*", f"{ROOT}.refresh.*", NEWEST_RECORD,
    )),
    "executor": ("carries actions out", lambda: (
        *PRESENT, *_work(topology.EXECUTORS), *_write(topology.INTENTS, topology.TEMPLATES, topology.LINKS),
        *_facts(*INVENTORY, *fact_kinds(Outcome)), f"{ROOT}.wanted.*",
    )),
    "web": ("serves the page, and gives the commands of people who may", lambda: (
        *PRESENT, *_follow(topology.GROUPS, topology.DECISIONS, topology.FACTS), *_write(topology.LINKS),
        *(f"{ROOT}.commands.{command_kind(one)}.{USER}" for one in (Pause, Resume, Approve, Reject)),
    )),
    "viewer": ("looks: status, explain, audit, replay, fleet", lambda: VIEW),
    "operator": ("looks, pauses, resumes, approves, rejects and moves traffic", lambda: (
        *VIEW, *(f"{ROOT}.commands.{command_kind(one)}.{USER}" for one in _OPERATOR),
    )),
    "zones": ("looks and gives every command, isolating zones too", lambda: (*VIEW, f"{ROOT}.commands.*.{USER}")),
}  # fmt: skip
_SUBSCRIBE: Mapping[str, tuple[str, ...]] = {
    "observer": (f"{ROOT}.refresh.*",),
    "router": (f"{ROOT}.refresh.*",),
    "decider": (f"{ROOT}.wanted.*",),
}
PEOPLE = ("viewer", "operator", "zones")
PROCESSES = ("observer", "receiver", "router", "decider", "executor", "web")
ROLES = ("reactor", *_PUBLISH)
"""`reactor` is a process with all roles, which may make what is missing."""


def of_role(role: str) -> Permissions:
    """The permissions of one of ROLES, as a user of that name."""
    return of_person(role, role) if role in PEOPLE else _of_process(role)


def of_person(name: str, role: str) -> Permissions:
    """The permissions of one person with one of the roles PEOPLE: commands in this name only."""
    user, (why, publish) = token(name), _PUBLISH[role]
    return Permissions(
        user, why, _once(subject.replace(USER, user) for subject in publish()), (f"{inbox(user)}.>",)
    )  # fmt: skip


def _of_process(role: str, user: str | None = None) -> Permissions:
    if role == "reactor":
        parts = [_of_process(name, role) for name in PROCESSES]
        publish = [*(subject for part in parts for subject in part.publish), *_make()]
        subscribe = [subject for part in parts for subject in part.subscribe if not subject.startswith("_INBOX")]
        return Permissions(role, "a process with all roles", _once(publish), _once([f"{inbox(role)}.>", *subscribe]))
    why, publish_ = _PUBLISH[role]
    heard = (*_SUBSCRIBE.get(role, ()), f"{ROOT}.alive.*")
    mine = _once(subject.replace(USER, user or role) for subject in publish_())
    return Permissions(role, why, mine, (f"{inbox(role)}.>", *heard))


def of_source(name: str) -> Permissions:
    """The permissions of a source outside the reactor: to say what it saw, with its own signal."""
    user = token(name)
    subject = f"{ROOT}.observations.{user}.>"
    return Permissions(user, f"speaks with the signal {name}", (subject,), (f"{inbox(user)}.>",))


def _once(subjects: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(subjects))
