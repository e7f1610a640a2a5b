"""Entries with golden files in tests/golden/entries: each kind of entry of a key-value bucket but groups
(golden/groups), and the marker of a partition's owner, which is a message of a stream.

An entry is written and read by the code that does so in a running reactor, so a golden file holds its key, too.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

from bus import subjects
from bus.errors import Refused
from bus.jetstream import JetStreamBus
from bus.messages import DecisionRecord, Notify, SetWeights, WorkloadRef, iso
from bus.port import Fence, KeyValueEntry, Outgoing
from bus.testing.memory import MemoryBus
from bus.topology import ACTIONS, ALERTS, GROUPS, INTENTS, LEASES, LINKS, TEMPLATES, Bucket, Stream
from reactor.actions.notify.approval_link import ApprovalLinks
from reactor.actions.workload.templates import BusTemplates
from reactor.alerts.states import AlertState
from reactor.alerts.store import AlertStore
from reactor.audit.chain import ChainEntry, Head
from reactor.audit.position import Position
from reactor.audit.shared_chain import SharedChain
from reactor.decide.kept_rules import KeptRules, kept_rules
from reactor.decide.store import PartitionStore
from reactor.execute.executor import _key
from reactor.execute.intent import Intent
from reactor.fleet.fleet import Fleet
from reactor.fleet.layout import partitions_of
from reactor.fleet.presence import Presence, Process
from reactor.process.session import agree_on_partitions
from rules.core.group import Group
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing
from rules.kinds.zone.kind import way_back_only
from rules.kinds.zone.state import Isolation, ZoneState
from tests.clock import START, HandClock
from tests.golden_files import GOLDEN
from tests.unit.rules.zone.builders import zone_rule

ENTRIES = GOLDEN / "entries"
LATER = START + timedelta(minutes=5)

Entries = list[KeyValueEntry]


@dataclass(frozen=True, slots=True)
class EntryForm:
    """One kind of entry of a bucket, or of message of a stream that is read again by its subject."""

    place: Bucket | Stream
    writer: str
    """The module of the product that writes it."""
    write: Callable[[MemoryBus], Coroutine[Any, Any, Entries]]
    """Write an example with a value in every field, and give what is in its place then."""
    read: Callable[[MemoryBus], Awaitable[Any]]
    """Read that example, as the product does."""
    expected: Any
    """Value that `read` gives."""
    write_again: Callable[[MemoryBus], Awaitable[Any]] | None = None
    """Read an entry that is there and write it again, changed, as the product does. None: the product never does so:
    what was read is only read, and a new entry comes whole in its place."""
    knows_all: bool = False
    """An entry with a key that this release does not know is refused, and stays as it is."""


def new_bus() -> MemoryBus:
    """Give an empty bus on which it is START."""
    return MemoryBus(lambda: START)


async def stored(bus: MemoryBus, place: Bucket | Stream) -> Entries:
    """Give all entries of a bucket, or the newest message of each subject of a stream."""
    if isinstance(place, Bucket):
        return list(await bus.store(place).entries(">"))
    return [KeyValueEntry(one.subject, one.body, one.sequence) for one in await bus.last_of_each(place, ">")]


async def put(bus: MemoryBus, place: Bucket | Stream, key: str, value: bytes) -> None:
    """Write one entry into a bucket, or one message with this subject into a stream."""
    if isinstance(place, Bucket):
        await bus.store(place).put(key, value, revision=None)
    else:
        await bus.publish(Outgoing(key, value, id=key))


def text(entries: Entries) -> str:
    """Give entries as a golden file has them: a line each, those that are no UTF-8 in base64."""
    return "".join(json.dumps({"key": one.key} | _value(one.value), sort_keys=True) + "\n" for one in entries)


def _value(body: bytes) -> dict[str, str]:
    try:
        return {"text": body.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode()}


async def put_back(bus: MemoryBus, place: Bucket | Stream, file: Path) -> None:
    """Write what a golden file has into a bucket or a stream."""
    for line in file.read_text("utf-8").splitlines():
        found = json.loads(line)
        value = found["text"].encode() if "text" in found else base64.b64decode(found["base64"])
        await put(bus, place, found["key"], value)


POSITION = Position(41, iso(START), "0123456789ab", Head(7, "f" * 64, START))
RULE = zone_rule()
ISOLATED = Isolation("a", "Failover", "Done", "Commanded", START, START, touched=("Fence",))
GROUP = Group("zones", "prod", ZoneState(isolation=ISOLATED))
PROCESS = Process("one", ("decider", "router"), "0123456789ab", START, ("shop.yaml:3: not a rule",), "1.2.3")
RECORD = DecisionRecord.model_validate(
    json.loads((GOLDEN / "messages" / "DecisionRecord.json").read_text("utf-8"))["data"] | {"decidedAt": iso(START)}
)
WEIGHTS = SetWeights.model_validate(json.loads((GOLDEN / "messages" / "SetWeights.json").read_text("utf-8"))["data"])
INTENT = Intent(WEIGHTS.generation, WEIGHTS.epoch, WEIGHTS.id, True, iso(LATER), iso(START), iso(START))
ALERT = AlertState(
    source="pager", signal="errors", target="backend/shop", fingerprint="0123456789abcdef", labels={"job": "shop"},
    detail="shop is down", status="resolved", starts_at=START, resolved_at=LATER, changed_at=LATER, last_post_at=LATER,
    opened=True, confirmed=True, listed=True,
)  # fmt: skip
WORKLOAD = WorkloadRef(api_version="apps/v1", kind="Deployment", namespace="shop", name="web")
COPY = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 3}}
NOTIFY = Notify.model_validate(
    json.loads((GOLDEN / "messages" / "Notify.json").read_text("utf-8"))["data"] | {"decidedAt": iso(START)}
)
WORDS = "approved by kim"


async def _write_position(bus: MemoryBus) -> Entries:
    store = bus.store(GROUPS)
    for key in (subjects.key("7", "position"), subjects.commands_position()):
        await store.put(key, POSITION.dump("one"), revision=0)
    return await stored(bus, GROUPS)


async def _read_position(bus: MemoryBus) -> list[Position]:
    keys = (subjects.key("7", "position"), subjects.commands_position())
    return [Position.read((await bus.store(GROUPS).get(key)).value) for key in keys]


async def _position_again(bus: MemoryBus) -> None:
    partition = PartitionStore(bus, 7, "two", "other rules")
    await partition.load()
    await partition.checkpoint(GroupStore(Routing([RULE])), 42, Head(8, "e" * 64, LATER))
    await SharedChain(bus).write(ChainEntry(RECORD, id="one", source="/test"))


async def _write_rule(bus: MemoryBus) -> Entries:
    await KeptRules(bus.store(GROUPS), 7).before(GroupStore(Routing([RULE]), [GROUP]), [("zones", "prod")])
    return await stored(bus, GROUPS)


async def _read_rule(bus: MemoryBus) -> list[Any]:
    return list(await kept_rules(bus.store(GROUPS)))


async def _write_fleet(bus: MemoryBus) -> Entries:
    one = Fleet(bus, "one", 64, HandClock())
    async with one.joined():
        assert await one.claim(7)
        return await stored(bus, LEASES)


async def _read_fleet(bus: MemoryBus) -> tuple[list[str], bool, str]:
    two = Fleet(bus, "two", 64, HandClock())
    async with two.joined():
        return two.members(), await two.claim(7), two._owners.owner(7)


async def _write_marker(bus: MemoryBus) -> Entries:
    await bus.acquire_epoch(subjects.owner(7), "one")
    return await stored(bus, ACTIONS)


async def _read_marker(bus: MemoryBus) -> tuple[bytes, bool, str]:
    """Its body, whether the next owner has a greater epoch, and how the owner before is refused then."""
    before = await bus.last(ACTIONS, subjects.owner(7))
    assert before is not None
    fence = await bus.acquire_epoch(subjects.owner(7), "two")
    refused = ""
    try:
        late = Fence(subjects.owner(7), before.sequence)
        await bus.publish(Outgoing(subjects.action(7, "shop", "checkout"), b"{}", id="late", fence=late))
    except Refused as error:
        refused = str(error)
    return before.body, fence.epoch > before.sequence, refused


async def _write_process(bus: MemoryBus) -> Entries:
    async with Presence(bus, PROCESS).here():
        return await stored(bus, LEASES)


async def _read_process(bus: MemoryBus) -> Process:
    return Process.read((await bus.store(LEASES).get(subjects.key("process", "one"))).value)


async def _write_layout(bus: MemoryBus) -> Entries:
    await agree_on_partitions(cast("JetStreamBus", bus), 48)
    return await stored(bus, LEASES)


async def _read_layout(bus: MemoryBus) -> int | None:
    return await partitions_of(cast("JetStreamBus", bus))


async def _write_intent(bus: MemoryBus) -> Entries:
    await bus.store(INTENTS).put(_key(WEIGHTS), INTENT.dump(), revision=0)
    return await stored(bus, INTENTS)


async def _read_intent(bus: MemoryBus) -> Intent:
    return Intent.read((await bus.store(INTENTS).get(_key(WEIGHTS))).value)


async def _intent_again(bus: MemoryBus) -> None:
    store, key = bus.store(INTENTS), _key(WEIGHTS)
    entry = await store.get(key)
    await store.put(key, replace(Intent.read(entry.value), until="").dump(), revision=entry.revision)


async def _write_alert(bus: MemoryBus) -> Entries:
    await AlertStore(bus.store(ALERTS)).change({ALERT.key: lambda _: ALERT})
    return await stored(bus, ALERTS)


async def _read_alert(bus: MemoryBus) -> AlertState | None:
    alerts = AlertStore(bus.store(ALERTS))
    await alerts.read()
    return alerts.alert_cache.held(ALERT.key).state


async def _alert_again(bus: MemoryBus) -> None:
    alerts = AlertStore(bus.store(ALERTS))
    await alerts.read()
    await alerts.change({ALERT.key: lambda known: known and known.model_copy(update={"listed": False})})


async def _write_template(bus: MemoryBus) -> Entries:
    await BusTemplates(bus.store(TEMPLATES)).put(WORKLOAD, COPY)
    return await stored(bus, TEMPLATES)


async def _read_template(bus: MemoryBus) -> Any:
    return await BusTemplates(bus.store(TEMPLATES)).get(WORKLOAD)


async def _write_link(bus: MemoryBus) -> Entries:
    links = ApprovalLinks(bus.store(LINKS))
    token = await links.token(NOTIFY, timedelta(hours=1))
    await bus.store(LINKS).put("sent", token.encode(), revision=0)  # no entry of ours: what a person has been sent
    await links.use(await links.read(token, START), WORDS)
    return await stored(bus, LINKS)


async def _read_link(bus: MemoryBus) -> tuple[str, str, str]:
    links, token = ApprovalLinks(bus.store(LINKS)), (await bus.store(LINKS).get("sent")).value.decode()
    link = await links.read(token, START)
    return link.rule, link.object, await links.used(link)


FORMS = {
    "position": EntryForm(
        GROUPS, "reactor/decide/store.py", _write_position, _read_position, [POSITION, POSITION], _position_again
    ),
    "rule": EntryForm(
        GROUPS, "reactor/decide/kept_rules.py", _write_rule, _read_rule, [way_back_only(RULE)], knows_all=True
    ),
    "owner": EntryForm(LEASES, "reactor/fleet/owners.py", _write_fleet, _read_fleet, (["one", "two"], False, "one")),
    "marker": EntryForm(
        ACTIONS,
        "reactor/decide/partition.py",
        _write_marker,
        _read_marker,
        (b"one", True, "reactor.owner.7 has a newer owner"),
    ),
    "process": EntryForm(LEASES, "reactor/fleet/presence.py", _write_process, _read_process, PROCESS),
    "layout": EntryForm(LEASES, "reactor/process/session.py", _write_layout, _read_layout, 48),
    "intent": EntryForm(INTENTS, "reactor/execute/executor.py", _write_intent, _read_intent, INTENT, _intent_again),
    "alert": EntryForm(ALERTS, "reactor/alerts/store.py", _write_alert, _read_alert, ALERT, _alert_again),
    "template": EntryForm(TEMPLATES, "reactor/actions/workload/templates.py", _write_template, _read_template, COPY),
    "link": EntryForm(
        LINKS, "reactor/actions/notify/approval_link.py", _write_link, _read_link, (NOTIFY.rule, NOTIFY.object, WORDS)
    ),
}
"""By the name of their golden files. The groups of reactor/decide/store.py are in tests/golden/groups."""
ALSO_WRITTEN = {"reactor/fleet/fleet.py": "owner", "reactor/audit/shared_chain.py": "position"}
"""Modules that write an entry of a form that another one writes, too, and the form whose golden file has it."""
