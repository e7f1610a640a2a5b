"""The audit on a real server: what was edited, taken out, put in or cut off is found."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from bus import subjects
from bus.embedded import EmbeddedServer
from bus.envelope import encode
from bus.errors import Refused
from bus.jetstream import JetStreamBus, provision
from bus.jetstream.connection import ApiError
from bus.messages import DecisionRecord
from bus.port import Delivery, Outgoing
from bus.topology import DECISIONS, GROUPS
from reactor.audit.audit_reader import audit_of
from reactor.audit.chain import ChainEntry, ChainWriter, Head
from reactor.audit.links import check
from reactor.audit.shared_chain import SharedChain
from reactor.audit.signing import Signer
from reactor.runtime.clock import Clock
from reactor.runtime.errors import SettingsError

NOW = Clock().now()
Records = list[tuple[str, bytes]]


def entry(number: int, rule: str = "checkout") -> ChainEntry:
    record = DecisionRecord(rule=rule, object="x", decided_at=NOW + timedelta(seconds=number), because=(f"{number}",))
    return ChainEntry(record, f"id-{rule}-{number}", "/test")


@pytest.fixture
async def bus(tmp_path: Path) -> AsyncIterator[JetStreamBus]:
    """A bus with an audit of five records in partition 3 by two rules, one in partition 4, and two commands."""
    async with (
        EmbeddedServer(tmp_path / "nats") as server,
        JetStreamBus.connect(server.url, name="test", timeout=timedelta(seconds=10)) as bus,
    ):
        await provision(bus)
        for partition, numbers in ((3, range(5)), (4, range(1))):
            chain = ChainWriter(bus, partition)
            await chain.load(Head())
            for number in numbers:
                await chain.write(entry(number, f"rule-{number % 2}"))
            state = json.dumps({"sequence": 1, "audit": chain.head.stored()}).encode()
            await bus.store(GROUPS).put(f"{partition}.position", state, revision=None)
        for number in range(2):
            await SharedChain(bus).write(entry(number, "pause"))
        yield bus


async def broken(bus: JetStreamBus, signer: Signer | None = None) -> list[str]:
    audit = await audit_of(bus)
    verdict = check(audit.stored, audit.heads, audit.kept_since, signer)
    assert verdict.tested["chain"] == len(audit.stored)
    return [one.what.partition(":")[0] if ":" in one.what else one.what for one in verdict.breaches]


async def forge(bus: JetStreamBus, change: Callable[[Records], Records]) -> None:
    """Replace the stream by one of the same name with other records, as a client with all permissions can."""
    audit: Sequence[Delivery] = [
        one
        for sequence in range(1, 1 + (await bus.extent(DECISIONS)).last)
        if (one := await stored_at(bus, sequence)) is not None
    ]
    config = (await bus.connection.api(f"STREAM.INFO.{DECISIONS.name}", {}))["config"]
    await bus.connection.api(f"STREAM.DELETE.{DECISIONS.name}", {})
    await bus.connection.api(f"STREAM.CREATE.{DECISIONS.name}", config)
    records = change([(one.subject, one.body) for one in audit])
    for number, (subject, body) in enumerate(records):
        await bus.publish(Outgoing(subject, body, f"forged-{number}"))


async def stored_at(bus: JetStreamBus, sequence: int) -> Delivery | None:
    async with bus.read(DECISIONS, DECISIONS.subjects[0], after=sequence - 1) as reading:
        [first, *_] = await reading.next(timedelta(seconds=60))
        return first if first.sequence == sequence else None


def edited(records: Records, place: int) -> Records:
    subject, body = records[place]
    return [
        *records[:place],
        (subject, body.replace(b"because", b"because", 1).replace(b'"x"', b'"y"')),
        *records[place + 1 :],
    ]


async def test_an_untouched_audit_is_whole(bus: JetStreamBus) -> None:
    assert await broken(bus) == []
    await forge(bus, lambda records: records)
    assert await broken(bus) == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda records: edited(records, 2), ["edited"]),
        (lambda records: edited(records, 4), ["edited"]),  # the newest one: only the state knows its hash
        (lambda records: edited(records, 6), ["edited"]),  # a command
        (lambda records: edited(records, 7), ["edited"]),  # the newest command: only its stored head knows its hash
        (lambda records: records[:7], ["cut off"]),
        (lambda records: records[:6], ["cut off"]),
        (lambda records: [*records[:2], *records[3:]], ["1 records before it are missing"]),
        (lambda records: [*records[:1], *records[3:]], ["2 records before it are missing"]),
        (lambda records: records[1:], ["cut off"]),
        (lambda records: [*records[:4], *records[5:]], ["cut off"]),
        (lambda records: [*records[:3], records[1], *records[3:]], ["inserted"]),
        (lambda records: [*records[:3], (records[3][0], _alone()), *records[3:]], ["inserted"]),
        (lambda records: [*records[:3], (records[3][0], b"{}"), *records[3:]], ["inserted"]),
    ],
)
async def test_what_was_done_to_it_is_found(
    bus: JetStreamBus, change: Callable[[Records], Records], found: list[str]
) -> None:
    await forge(bus, change)
    assert await broken(bus) == found


def _alone() -> bytes:
    return encode(entry(9, "rule-1").record, id="9", source="/eve", time=NOW)


async def test_what_retention_has_removed_is_no_breach(bus: JetStreamBus) -> None:
    """Its first record says when the one before it was decided: long ago, as the month is over."""
    await forge(bus, lambda records: records[1:])
    audit = await audit_of(bus)
    assert check(audit.stored, audit.heads, NOW + timedelta(days=31)).breaches == []
    assert check(audit.stored, audit.heads, None).breaches == []


async def test_a_partition_whose_records_are_all_older_than_retention_is_no_breach(bus: JetStreamBus) -> None:
    """Nothing was decided there for more than a month: its state still names the last record."""
    await forge(bus, lambda records: [one for one in records if ".3." not in one[0]])
    audit = await audit_of(bus)
    assert [one.what.partition(":")[0] for one in check(audit.stored, audit.heads, NOW).breaches] == ["cut off"]
    assert check(audit.stored, audit.heads, NOW + timedelta(days=31)).breaches == []
    assert check(audit.stored, audit.heads, None).breaches == []


async def test_a_command_that_was_cut_off_is_found_after_further_commands_too(bus: JetStreamBus) -> None:
    await forge(bus, lambda records: records[:7])
    for number in range(2, 4):
        await SharedChain(bus).write(entry(number, "pause"))
    assert await broken(bus) == ["1 records before it are missing"]


async def test_the_server_takes_nothing_out_of_the_audit(bus: JetStreamBus) -> None:
    for request, body in (("MSG.DELETE", {"seq": 2}), ("PURGE", {})):
        with pytest.raises(ApiError, match="not permitted"):
            await bus.connection.api(f"STREAM.{request}.{DECISIONS.name}", body)
    config = (await bus.connection.api(f"STREAM.INFO.{DECISIONS.name}", {}))["config"]
    with pytest.raises(ApiError, match="can not cancel deny"):
        await bus.connection.api(f"STREAM.UPDATE.{DECISIONS.name}", {**config, "deny_delete": False})


async def test_a_former_owner_writes_nothing_more(bus: JetStreamBus) -> None:
    former, owner = ChainWriter(bus, 3), ChainWriter(bus, 3)
    await former.load(Head())
    await owner.load(Head())
    await owner.write(entry(5))
    with pytest.raises(Refused):
        await former.write(entry(6))
    await owner.write(entry(7))
    assert await broken(bus) == []


async def test_records_that_are_written_together_are_one_chain(bus: JetStreamBus) -> None:
    owner, former = ChainWriter(bus, 3), ChainWriter(bus, 3)
    await owner.load(Head())
    await former.load(Head())
    await owner.write_all([entry(number) for number in range(5, 11)])
    with pytest.raises(Refused):
        await former.write_all([entry(number) for number in range(11, 17)])
    again = [entry(number) for number in (17, 18, 5, 19, 20)]  # one of them is stored already
    await owner.write_all(again)
    assert owner.head.number == 15
    assert await broken(bus) == []


async def test_a_batch_whose_answer_was_lost_is_found(bus: JetStreamBus) -> None:
    owner, again = ChainWriter(bus, 3), ChainWriter(bus, 3)
    await owner.load(Head())
    await again.load(Head())
    sent = [entry(number) for number in range(5, 10)]
    await owner.write_all(sent)
    await again.write_all(sent)
    await again.write(entry(10))
    assert again.head.number == 11
    assert await broken(bus) == []


async def test_a_stream_that_takes_no_batches_gets_each_by_itself(bus: JetStreamBus) -> None:
    config = (await bus.connection.api(f"STREAM.INFO.{DECISIONS.name}", {}))["config"]
    await bus.connection.api(f"STREAM.UPDATE.{DECISIONS.name}", {**config, "allow_atomic": False})
    owner = ChainWriter(bus, 3)
    await owner.load(Head())
    await owner.write_all([entry(number) for number in range(5, 11)])
    await owner.write_all([entry(number) for number in range(11, 17)])
    assert owner.head.number == 17
    assert await broken(bus) == []


async def test_an_owner_goes_on_after_what_its_state_does_not_know_yet(bus: JetStreamBus) -> None:
    """The state is written every second: what was published since is in the stream."""
    known = (await audit_of(bus)).heads["3"]
    late = ChainWriter(bus, 3)
    await late.load(known)
    await late.write(entry(5))
    taking_over = ChainWriter(bus, 3)
    await taking_over.load(known)
    await taking_over.write(entry(6))
    assert taking_over.head.number == 7
    assert await broken(bus) == []


async def test_many_routers_write_one_chain_of_commands(bus: JetStreamBus) -> None:
    routers = [SharedChain(bus) for _ in range(4)]
    await asyncio.gather(
        *(router.write(entry(10 + n)) for n, router in enumerate(routers * 2))
    )  # fmt: skip
    assert await broken(bus) == []
    audit = await audit_of(bus)
    assert max(one.link.number for one in audit.stored if one.link and one.chain == subjects.COMMANDS) == 10


async def test_a_command_that_is_routed_twice_is_in_the_audit_once(bus: JetStreamBus) -> None:
    for _ in range(2):
        await SharedChain(bus).write(entry(1, "pause"))
    await SharedChain(bus).write(entry(2, "pause"))
    assert await broken(bus) == []
    assert len([one for one in (await audit_of(bus)).stored if one.chain == subjects.COMMANDS]) == 3


async def test_records_of_before_chains_are_left_alone(tmp_path: Path) -> None:
    async with (
        EmbeddedServer(tmp_path / "nats") as server,
        JetStreamBus.connect(server.url, name="test", timeout=timedelta(seconds=10)) as bus,
    ):
        await provision(bus)
        for number in range(3):
            await bus.publish(Outgoing(subjects.decision(3, "rule-1"), _alone(), f"old-{number}"))
        chain = ChainWriter(bus, 3)
        await chain.load(Head())
        await chain.write(entry(1))
        assert await broken(bus) == []


KEY = Signer(b"k" * 32)
ANOTHER = Signer(b"n" * 32)


async def written(bus: JetStreamBus, numbers: range, signer: Signer | None) -> None:
    """Records of partition 5, as an owner with this key writes them."""
    chain = ChainWriter(bus, 5, signer)
    await chain.load(Head())
    for number in numbers:
        await chain.write(entry(number, f"rule-{number % 2}"))
    state = json.dumps({"sequence": 1, "audit": chain.head.stored()}).encode()
    await bus.store(GROUPS).put("5.position", state, revision=None)


async def test_a_signed_chain_is_whole_also_where_it_began_before_there_was_a_key(bus: JetStreamBus) -> None:
    await written(bus, range(2), None)
    await written(bus, range(2, 4), KEY)
    assert await broken(bus, KEY) == []
    audit = await audit_of(bus)
    assert check(audit.stored, audit.heads, audit.kept_since, KEY).tested["unsigned"] == len(audit.stored) - 2


async def test_a_chain_that_was_rewritten_without_the_key_is_found(bus: JetStreamBus) -> None:
    await written(bus, range(3), KEY)
    assert await broken(bus, KEY) == []
    await forge(bus, lambda records: [one for one in records if ".5." not in one[0]])
    await written(bus, range(3), ANOTHER)
    assert await broken(bus) == [], "its hashes are right"
    assert await broken(bus, KEY) == ["forged"] * 3


async def test_a_chain_that_was_rewritten_without_any_signature_is_found_by_when_the_key_came(
    bus: JetStreamBus,
) -> None:
    await written(bus, range(3), KEY)
    await forge(bus, lambda records: [one for one in records if ".5." not in one[0]])
    await written(bus, range(3), None)
    audit = await audit_of(bus)

    def forged(since: datetime) -> list[str]:
        found = check(audit.stored, audit.heads, audit.kept_since, KEY, signed_since=since).breaches
        return [one.what.partition(":")[0] for one in found if one.route.startswith("partition 5")]

    assert forged(NOW - timedelta(days=1)) == ["forged"] * 3
    assert forged(Clock().now()) == [], "from before the key"


async def test_a_record_without_a_signature_after_signed_ones_is_found(bus: JetStreamBus) -> None:
    await written(bus, range(2), KEY)
    await written(bus, range(2, 3), None)
    assert await broken(bus, KEY) == ["forged"]


async def test_the_start_that_retention_leaves_is_signed(bus: JetStreamBus) -> None:
    """A client that removes the first records may mark the next one as the first: it was signed as another."""
    await written(bus, range(3), KEY)

    def cut(records: Records) -> Records:
        others = [one for one in records if ".5." not in one[0]]
        _, second, third = (one for one in records if ".5." in one[0])
        body = json.loads(second[1])
        body["data"]["chain"] |= {"number": 1, "previous": "", "previousAt": None}
        return [*others, (second[0], json.dumps(body).encode()), third]

    await forge(bus, cut)
    assert "forged" in await broken(bus, KEY)


@pytest.mark.parametrize(("content", "says"), [(b"short", "has 5 bytes, and needs 32"), (None, "No such file")])
def test_a_key_that_cannot_be_used_is_refused_by_its_name(tmp_path: Path, content: bytes | None, says: str) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingsError, match=f"audit.keyFile: .*{says}"):
        Signer.of(file)
