"""Contract of every bus. `bus` is each of them in turn."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from bus import subjects, topology
from bus.errors import KeyNotFound, Refused, StreamRecreated
from bus.jetstream import JetStreamBus, provision
from bus.port import Bus, Delivery, Fence, KeyValueEntry, LogReader, Outgoing, StreamBounds
from bus.subjects import ROOT
from bus.testing.memory import MemoryBus
from bus.topology import ACTIONS, FACTS, GROUPS, Queue, Stream

LONG = timedelta(seconds=30)
"""For what comes at once where nothing else has the processor and the disk."""
SHORT = timedelta(milliseconds=50)


def fact(number: int, *, partition: int = 3) -> Outgoing:
    return Outgoing(subjects.fact(partition, "observation", f"t{number}"), b"%d" % number, f"fact-{partition}-{number}")


def observed(number: int) -> Outgoing:
    return Outgoing(subjects.observation("probe", f"t{number}"), b"%d" % number, f"observed-{number}")


def action(number: int, fence: Fence | None = None) -> Outgoing:
    return Outgoing(subjects.action(3, "notify", f"o{number}"), b"%d" % number, f"action-{number}", fence=fence)


async def read_all(reading: LogReader, count: int) -> list[Delivery]:
    read: list[Delivery] = []
    while len(read) < count:
        got = await reading.next(LONG)
        assert got, f"only {len(read)} of {count} came"
        read += got
    return read


def bodies(deliveries: Sequence[Delivery]) -> list[bytes]:
    return [one.body for one in deliveries]


async def test_a_published_message_comes_out_as_it_went_in(bus: Bus) -> None:
    sent = fact(1)._replace(traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
    sequence = await bus.publish(sent)
    async with bus.read(FACTS, subjects.facts(3), after=0) as reading:
        [one] = await reading.next(LONG)
    assert (one.subject, one.body, one.sequence, one.traceparent) == (
        sent.subject, sent.body, sequence, sent.traceparent,
    )  # fmt: skip
    assert one.stored_at.tzinfo is not None


async def test_a_reader_knows_how_many_messages_are_unread(bus: Bus) -> None:
    await bus.publish_all([fact(number) for number in range(5)])
    async with bus.read(FACTS, subjects.facts(3), after=0) as reading:
        async with asyncio.timeout(LONG.total_seconds()):
            while reading.unread < 5:
                await asyncio.sleep(0.01)
        await read_all(reading, 5)
        assert reading.unread == 0


async def test_the_same_id_is_stored_once_and_gives_the_same_sequence(bus: Bus) -> None:
    first = await bus.publish(fact(1))
    await bus.publish(fact(2))
    assert await bus.publish(fact(1)) == first
    await bus.publish_all([fact(1), fact(2), fact(3)])
    async with bus.read(FACTS, subjects.facts(3), after=0) as reading:
        await bus.publish(fact(4))
        assert bodies(await read_all(reading, 4)) == [b"1", b"2", b"3", b"4"]


async def test_many_messages_are_stored_in_order(bus: Bus) -> None:
    await bus.publish_all([fact(number) for number in range(1_200)])
    async with bus.read(FACTS, subjects.facts(3), after=0) as reading:
        assert bodies(await read_all(reading, 1_200)) == [b"%d" % number for number in range(1_200)]


async def test_publishing_nothing_is_no_error(bus: Bus) -> None:
    await bus.publish_all([])


MANY = 40
"""Number of messages in one batch, where the server takes batches."""


def record(number: int, last: int | None = None) -> Outgoing:
    """One of the audit of partition 3. `last`: what has to be the newest there."""
    fence = Fence(subjects.decisions(3), last) if last is not None else None
    return Outgoing(subjects.decision(3, f"rule-{number % 2}"), b"%d" % number, f"record-{number}", fence)


async def recorded(bus: Bus) -> list[bytes]:
    return bodies(await bus.last_of_each(topology.DECISIONS, subjects.decisions(3)))


async def test_a_batch_is_stored_in_its_order_behind_what_it_names(bus: Bus) -> None:
    last = await bus.publish_batch([record(1, 0), record(2), record(3)])
    assert last is not None
    async with bus.read(topology.DECISIONS, subjects.decisions(3), after=0) as reading:
        read = await read_all(reading, 3)
    assert bodies(read) == [b"1", b"2", b"3"]
    assert read[-1].sequence == last
    newest = await bus.publish_batch([record(4, last), record(5)])
    assert newest == last + 2


async def test_of_a_batch_that_is_refused_nothing_is_stored(bus: Bus) -> None:
    last = await bus.publish_batch([record(1, 0), record(2)])
    assert last is not None
    for late in ([record(3, 0), record(4)], [record(5, last), record(2)]):  # another was faster; one is stored already
        with pytest.raises(Refused):
            await bus.publish_batch(late)
    assert await recorded(bus) == [b"1", b"2"]


async def test_many_values_are_written_at_their_revisions(bus: Bus) -> None:
    store = bus.store(topology.GROUPS)
    keys = [f"3.group.{number}" for number in range(MANY)]
    first = await store.put_all([(key, b"a", 0) for key in keys])
    assert None not in first
    late = {key: revision or 0 for key, revision in zip(keys, first, strict=True)} | {keys[2]: 1_000_000}
    assert (await store.put_all([(key, b"b", revision) for key, revision in late.items()]))[2] is None
    found = {entry.key: (entry.value, entry.revision) for entry in await store.entries("3.>")}
    assert {key: value for key, (value, _) in found.items()} == dict.fromkeys(keys, b"b") | {keys[2]: b"a"}
    assert found[keys[2]][1] == first[2]


async def test_many_messages_are_stored_once_and_in_order_also_where_some_were_stored_before(bus: Bus) -> None:
    def fact(number: int) -> Outgoing:
        return Outgoing(f"{ROOT}.facts.3.observation.t{number % 3}.a", b"%d" % number, f"fact-{number}")

    await bus.publish_all([fact(7), fact(8)])
    await bus.publish_all([fact(number) for number in range(MANY)])
    await bus.publish_all([fact(number) for number in range(MANY)])
    await bus.publish_all([fact(MANY)])
    async with bus.read(topology.FACTS, f"{ROOT}.facts.3.>", after=0) as reading:
        read = [int(body) for body in bodies(await read_all(reading, MANY + 1))]
    assert read == [7, 8, *(number for number in range(MANY) if number not in (7, 8)), MANY]


async def test_a_paused_owner_cannot_publish_after_its_partition_was_taken(bus: Bus) -> None:
    paused = await bus.acquire_epoch(subjects.owner(3), "paused")
    await bus.publish(action(1, paused))
    successor = await bus.acquire_epoch(subjects.owner(3), "successor")
    with pytest.raises(Refused):
        await bus.publish(action(2, paused))
    with pytest.raises(Refused):
        await bus.publish_all([action(3, paused), action(4, paused)])
    await bus.publish_all([action(5, successor), action(6, successor)])
    async with bus.work(topology.EXECUTORS, batch=10) as work:
        assert bodies(await take(work, 3)) == [b"1", b"5", b"6"]


async def test_an_owner_may_publish_again_what_it_is_not_sure_of(bus: Bus) -> None:
    owner = await bus.acquire_epoch(subjects.owner(3), "owner")
    sequence = await bus.publish(action(1, owner))
    await bus.publish(action(2, owner))
    assert await bus.publish(action(1, owner)) == sequence


async def test_epochs_only_grow_and_other_partitions_keep_theirs(bus: Bus) -> None:
    other = await bus.acquire_epoch(subjects.owner(4), "other")
    epochs = [(await bus.acquire_epoch(subjects.owner(3), f"owner-{number}")).epoch for number in range(3)]
    assert epochs == sorted(set(epochs))
    await bus.publish(action(1, other))


async def test_of_many_who_take_an_epoch_at_once_one_succeeds(bus: Bus) -> None:
    taken = await asyncio.gather(
        *(bus.acquire_epoch(subjects.owner(3), f"owner-{number}") for number in range(8)), return_exceptions=True
    )
    fences = [one for one in taken if isinstance(one, Fence)]
    assert fences
    assert all(isinstance(one, Fence | Refused) for one in taken)
    stored = await asyncio.gather(
        *(bus.publish(action(number, fence)) for number, fence in enumerate(fences)), return_exceptions=True
    )
    assert sum(isinstance(one, int) for one in stored) == 1


async def test_a_reader_goes_on_from_its_position(bus: Bus) -> None:
    await bus.publish_all([fact(number) for number in range(5)])
    async with bus.read(FACTS, subjects.facts(3), after=0) as reading:
        first = await read_all(reading, 5)
    async with bus.read(FACTS, subjects.facts(3), after=first[2].sequence) as reading:
        assert bodies(await read_all(reading, 2)) == [b"3", b"4"]


async def test_a_reader_sees_its_own_partition_only(bus: Bus) -> None:
    await bus.publish_all([fact(1, partition=3), fact(2, partition=30), fact(3, partition=3)])
    async with bus.read(FACTS, subjects.facts(3), after=0) as reading:
        read = await read_all(reading, 2)
    assert bodies(read) == [b"1", b"3"]
    assert read[-1].pending == 0


async def test_the_last_of_each_subject_is_given_in_order(bus: Bus) -> None:
    assert not await bus.last_of_each(FACTS, subjects.facts(3))
    said = [fact(number % 1_500)._replace(id=f"{number}", body=b"%d" % number) for number in range(3_001)]
    await bus.publish_all([*said, fact(1, partition=30)])
    last = await bus.last_of_each(FACTS, subjects.facts(3))
    assert bodies(last) == [b"%d" % number for number in range(1_501, 3_001)]
    assert [one.sequence for one in last] == sorted(one.sequence for one in last)
    [one] = await bus.last_of_each(FACTS, said[0].subject)
    assert (one.body, one.subject) == (b"3000", said[0].subject)


async def test_a_reader_is_current_when_and_only_when_nothing_is_unread(bus: Bus) -> None:
    async with bus.read(FACTS, subjects.facts(3), after=0) as reading:
        assert reading.current
    await bus.publish_all([fact(number) for number in range(3)])
    async with bus.read(FACTS, subjects.facts(3), after=0) as reading:
        assert not reading.current
        await read_all(reading, 3)
        assert reading.current


async def test_a_reader_can_ask_how_far_it_has_to_read(bus: Bus) -> None:
    async with bus.read(FACTS, subjects.facts(3), after=0) as reading:
        assert (await reading.newest(), reading.position) == (0, 0)
        await bus.publish_all([fact(number) for number in range(3)])
        newest = await reading.newest()
        assert newest > reading.position
        await read_all(reading, 3)
        await bus.publish(fact(4, partition=4))
        assert await reading.newest() == reading.position == newest


async def recreate(bus: Bus, stream: Stream) -> None:
    """Delete a stream and create it again, as an operator may."""
    if isinstance(bus, MemoryBus):
        bus.wipe(stream)
        return
    assert isinstance(bus, JetStreamBus)
    await bus.connection.api(f"STREAM.DELETE.{stream.name}", {})
    await provision(bus)


async def test_a_stream_says_when_it_was_created_and_another_one_of_the_same_name_says_otherwise(bus: Bus) -> None:
    created = (await bus.extent(FACTS)).created
    assert created.tzinfo is not None
    await bus.publish(fact(1))
    assert (await bus.extent(FACTS)).created == created
    await recreate(bus, FACTS)
    again = await bus.extent(FACTS)
    assert (again.first, again.last) == (1, 0)
    assert again.created > created


async def test_a_reader_is_told_that_its_stream_is_not_the_one_it_was(bus: Bus) -> None:
    await bus.publish_all([fact(number) for number in range(3)])
    async with bus.read(FACTS, subjects.facts(3), after=0) as reading:
        await read_all(reading, 3)
        await recreate(bus, FACTS)
        await bus.publish_all([fact(number) for number in range(10, 15)])
        with pytest.raises(StreamRecreated):
            await reading.newest()
        for _ in range(2):  # a reader that did not get it the first time gets it again
            with pytest.raises(StreamRecreated):
                await reading.next(LONG)
        assert not reading.current
    async with bus.read(FACTS, subjects.facts(3), after=0) as reading:
        assert bodies(await read_all(reading, 5)) == [b"%d" % number for number in range(10, 15)]


async def test_a_reader_that_waits_is_told_that_its_stream_is_not_the_one_it_was(bus: Bus) -> None:
    async with bus.read(FACTS, subjects.facts(3), after=0) as reading:
        waiting = asyncio.create_task(reading.next(LONG))
        await asyncio.sleep(0)
        await recreate(bus, FACTS)
        with pytest.raises(StreamRecreated):
            await waiting


async def test_no_reader_goes_on_from_a_position_that_the_stream_never_had(bus: Bus) -> None:
    last = await bus.publish(fact(1))
    async with bus.read(FACTS, subjects.facts(3), after=last) as reading:
        await bus.publish(fact(2))
        assert bodies(await read_all(reading, 1)) == [b"2"]
        last = reading.position
    with pytest.raises(StreamRecreated):
        async with bus.read(FACTS, subjects.facts(3), after=last + 1):
            pass


async def test_a_waiting_reader_is_woken_by_a_message(bus: Bus) -> None:
    async with bus.read(FACTS, subjects.facts(3), after=0) as reading:
        waiting = asyncio.create_task(read_all(reading, 1))
        await asyncio.sleep(0)
        await bus.publish(fact(1))
        assert bodies(await waiting) == [b"1"]


async def test_a_work_queue_cannot_be_read_like_a_log(bus: Bus) -> None:
    with pytest.raises(ValueError, match="work queue"):
        async with bus.read(ACTIONS, "reactor.actions.>", after=0):
            pass


async def take(work: object, count: int) -> list[Delivery]:
    taken: list[Delivery] = []
    while len(taken) < count:
        got = await work.next(LONG)  # type: ignore[attr-defined]
        assert got, f"only {len(taken)} of {count} came"
        taken += got
    return taken


async def test_a_queue_begins_at_its_oldest_unfinished_message(bus: Bus) -> None:
    empty = await bus.extent(topology.INBOX)
    assert empty.first == empty.last + 1
    await bus.publish_all([observed(number) for number in range(3)])
    async with bus.work(topology.ROUTERS, batch=8) as work:
        first, second, third = await take(work, 3)
        await work.ack([first, third])
        await until_extent(bus, StreamBounds(second.sequence, third.sequence, empty.created))
        await work.ack([second])
        await until_extent(bus, StreamBounds(third.sequence + 1, third.sequence, empty.created))


async def until_extent(bus: Bus, wanted: StreamBounds) -> None:
    """Wait for this extent: done messages are not confirmed, and disappear a moment later."""
    async with asyncio.timeout(LONG.total_seconds()):
        while await bus.extent(topology.INBOX) != wanted:
            await asyncio.sleep(0.01)


async def test_two_processes_share_a_queue_and_nothing_is_given_twice(bus: Bus, queue: Queue) -> None:
    await bus.publish_all([observed(number) for number in range(20)])
    async with bus.work(queue, batch=8) as one, bus.work(queue, batch=8) as other:
        seen: list[bytes] = []
        while b"20" not in seen:
            for work in (one, other):
                got = await work.next(SHORT)
                seen += bodies(got)
                await work.ack(got)
            if len(seen) == 20:
                await bus.publish(observed(20))
        assert sorted(seen) == sorted(b"%d" % number for number in range(21))


async def test_no_more_than_a_batch_is_in_flight(bus: Bus, queue: Queue) -> None:
    await bus.publish_all([observed(number) for number in range(6)])
    async with bus.work(queue, batch=4) as work:
        first = await take(work, 4)
        async with bus.work(queue, batch=1) as other:
            [fifth] = await take(other, 1)
            assert fifth.body == b"4"  # the first worker had room for no more
            await other.ack([fifth])
        await work.ack(first)
        assert bodies(await take(work, 1)) == [b"5"]


async def test_what_is_not_done_in_time_is_given_to_another(bus: Bus, queue: Queue) -> None:
    await bus.publish(observed(1))
    async with bus.work(queue, batch=4) as slow, bus.work(queue, batch=4) as other:
        [late] = await slow.next(LONG)
        assert not late.redelivered
        [again] = await other.next(LONG)
        assert (again.body, again.redelivered) == (late.body, True)


async def test_a_late_done_does_not_end_the_work_of_another(bus: Bus, queue: Queue) -> None:
    await bus.publish(observed(1))
    async with bus.work(queue, batch=4) as slow:
        [late] = await slow.next(LONG)
        async with bus.work(queue, batch=4) as other:
            await other.next(LONG)  # and then this process is gone, without a word
            await slow.ack([late])
        [again] = await slow.next(LONG)
        assert again.body == late.body


@pytest.mark.parametrize("queue", [4], indirect=True)  # an extension may be 3 s late
async def test_extended_work_stays_in_flight(bus: Bus, queue: Queue) -> None:
    await bus.publish(observed(1))
    async with bus.work(queue, batch=4) as work, bus.work(queue, batch=4) as other:
        [one] = await work.next(LONG)
        for _ in range(5):
            assert not await other.next(queue.ack_wait / 4)
            await work.in_progress(one)
        await work.ack([one])
        assert not await other.next(1.2 * queue.ack_wait)


@pytest.mark.parametrize("queue", [4], indirect=True)  # an extension may be 3 s late
async def test_a_queue_that_is_extended_by_itself_stays_in_flight_while_its_user_works(bus: Bus, queue: Queue) -> None:
    await bus.publish(observed(1))
    kept = replace(queue, in_progress=queue.ack_wait / 4)
    async with bus.work(kept, batch=4) as work, bus.work(kept, batch=4) as other:
        [one] = await work.next(LONG)
        assert not await other.next(1.25 * queue.ack_wait)
        await work.ack([one])
        assert not await other.next(1.2 * queue.ack_wait)


@pytest.mark.parametrize("queue", [30], indirect=True)  # otherwise it would be in flight for this long
async def test_what_is_in_flight_at_a_clean_stop_is_given_to_the_next_at_once(bus: Bus, queue: Queue) -> None:
    await bus.publish_all([observed(number) for number in range(8)])
    clock = asyncio.get_running_loop().time
    async with bus.work(queue, batch=8) as work:
        await take(work, 4)  # the other half was sent, and not asked for yet
    stopped_at = clock()
    async with bus.work(queue, batch=8) as work:
        again = await take(work, 8)
    assert clock() - stopped_at < queue.ack_wait.total_seconds() / 2
    assert sorted(bodies(again)) == [b"%d" % number for number in range(8)]


@pytest.mark.parametrize("queue", [30], indirect=True)  # so it would be given after 30 s without being asked for
async def test_later_gives_it_again_after_the_delay(bus: Bus, queue: Queue) -> None:
    await bus.publish(observed(1))
    clock = asyncio.get_running_loop().time
    async with bus.work(queue, batch=4) as work:
        [one] = await work.next(LONG)
        asked_at = clock()
        await work.nak(one, timedelta(seconds=0.3))
        [again] = await work.next(LONG)
        assert again.redelivered
        assert 0.25 <= clock() - asked_at < queue.ack_wait.total_seconds() / 2
        await work.ack([again])


async def test_a_value_is_written_only_at_its_current_revision(bus: Bus) -> None:
    store = bus.store(GROUPS)
    first = await store.put("3.a", b"1", revision=0)
    with pytest.raises(Refused):
        await store.put("3.a", b"x", revision=0)
    second = await store.put("3.a", b"2", revision=first)
    with pytest.raises(Refused):
        await store.put("3.a", b"x", revision=first)
    third = await store.put("3.a", b"3", revision=None)
    assert first < second < third
    assert await store.get("3.a") == KeyValueEntry("3.a", b"3", third)


async def test_a_removed_key_holds_nothing_and_can_be_made_again(bus: Bus) -> None:
    store = bus.store(GROUPS)
    first = await store.put("3.a", b"1", revision=0)
    with pytest.raises(Refused):
        await store.delete("3.a", revision=first + 1)
    await store.delete("3.a", revision=first)
    await store.delete("3.a", revision=None)
    with pytest.raises(KeyNotFound):
        await store.get("3.a")
    assert await store.entries(">") == []
    with pytest.raises(Refused):
        await store.put("3.a", b"x", revision=first)
    assert await store.put("3.a", b"2", revision=0) > first
    [again] = await store.put_all([("3.b", b"1", 0)])
    await store.delete("3.b", revision=again)
    assert [bool(new) for new in await store.put_all([("3.b", b"2", 0), ("3.a", b"x", 0)])] == [True, False]


async def test_a_key_that_never_was_is_not_found(bus: Bus) -> None:
    with pytest.raises(KeyNotFound):
        await bus.store(GROUPS).get("3.never")
    await bus.store(GROUPS).delete("3.never", revision=None)


async def test_of_many_who_make_a_key_at_once_one_succeeds(bus: Bus) -> None:
    store = bus.store(GROUPS)
    made = await asyncio.gather(*(store.put("3.a", b"1", revision=0) for _ in range(8)), return_exceptions=True)
    assert sum(isinstance(one, int) for one in made) == 1
    assert sum(isinstance(one, Refused) for one in made) == 7


async def test_writing_many_says_for_each_whether_it_was_refused(bus: Bus) -> None:
    store = bus.store(GROUPS)
    there = await store.put("3.there", b"1", revision=0)
    new, refused, updated = await store.put_all([("3.new", b"1", 0), ("3.there", b"x", 0), ("3.there", b"2", there)])
    assert new
    assert refused is None
    assert updated
    assert {entry.key: entry.value for entry in await store.entries("3.*")} == {"3.new": b"1", "3.there": b"2"}


async def test_entries_are_those_under_the_pattern(bus: Bus) -> None:
    store = bus.store(GROUPS)
    await store.put_all([("3.a", b"1", 0), ("3.b", b"2", 0), ("4.a", b"3", 0), ("3.a.b", b"4", 0)])
    assert {entry.key for entry in await store.entries("3.*")} == {"3.a", "3.b"}
    assert {entry.key for entry in await store.entries("3.>")} == {"3.a", "3.b", "3.a.b"}
    assert {entry.key for entry in await store.entries("4.a")} == {"4.a"}
    assert await store.entries("5.*") == []


async def test_a_scan_finds_what_is_stored_under_the_pattern(bus: Bus) -> None:
    store = bus.store(GROUPS)
    await store.put_all([("3.rule.a", b"1", 0), ("3.group.b", b"2", 0), ("14.rule.a", b"3", 0), ("3.rule.c", b"4", 0)])
    await store.delete("3.rule.c", revision=None)
    found = await store.scan("*.rule.*")
    assert [(entry.key, entry.value) for entry in found] == [("3.rule.a", b"1"), ("14.rule.a", b"3")]
    assert await store.scan("5.*") == []


async def test_a_watch_gives_what_is_stored_and_then_each_change(bus: Bus) -> None:
    store = bus.store(GROUPS)
    first = await store.put("3.a", b"1", revision=0)
    await store.put("4.a", b"elsewhere", revision=0)
    async with store.watch("3.*") as changes:
        assert await anext(changes) == KeyValueEntry("3.a", b"1", first)
        second = await store.put("3.a", b"2", revision=first)
        assert await anext(changes) == KeyValueEntry("3.a", b"2", second)
        await store.delete("3.a", revision=second)
        assert await anext(changes) == "3.a"
        third = await store.put("3.a", b"3", revision=0)
        assert await anext(changes) == KeyValueEntry("3.a", b"3", third)


async def wiped(bus: Bus) -> None:
    """Replace the bucket GROUPS by another one of the same name."""
    if isinstance(bus, MemoryBus):
        bus.store(GROUPS).wipe()
    else:
        assert isinstance(bus, JetStreamBus)
        await bus.connection.api(f"STREAM.DELETE.KV_{GROUPS.name}", {})
        await provision(bus)


async def test_a_bucket_that_was_created_again_says_so(bus: Bus) -> None:
    store = bus.store(GROUPS)
    created_at = await store.created_at()
    await store.put("3.a", b"1", revision=0)
    assert await store.created_at() == created_at
    await wiped(bus)
    assert await store.created_at() > created_at


async def test_a_watch_goes_on_in_a_bucket_that_was_created_again(bus: Bus) -> None:
    store = bus.store(GROUPS)
    await store.put_all([(f"3.{key}", b"old", 0) for key in "abc"])
    async with store.watch("3.*") as changes:
        for _ in "abc":
            await anext(changes)
        await wiped(bus)
        revision = await store.put("3.d", b"new", revision=0)
        assert await anext(changes) == KeyValueEntry("3.d", b"new", revision)


async def test_who_listens_on_a_subject_is_present(bus: Bus) -> None:
    async def answer(_: bytes) -> bytes:
        return b"here"

    stop = await bus.listen(subjects.alive("reactor-3"), answer)
    assert await bus.is_present(subjects.alive("reactor-3"), LONG) is True
    await stop()
    assert await bus.is_present(subjects.alive("reactor-3"), LONG) is False


async def test_asking_tells_at_once_that_there_is_no_listener(bus: Bus) -> None:
    clock = asyncio.get_running_loop().time
    started = clock()
    assert await bus.is_present(subjects.alive("reactor-3"), LONG) is False
    stop = await bus.announce(subjects.alive("reactor-3"))
    assert await bus.is_present(subjects.alive("reactor-3"), LONG) is True
    assert await bus.is_present(subjects.alive("reactor-4"), LONG) is False
    await stop()
    assert await bus.is_present(subjects.alive("reactor-3"), LONG) is False
    assert clock() - started < LONG.total_seconds() / 2


async def test_a_probe_of_a_bus_that_works_says_nothing(bus: Bus) -> None:
    await bus.probe()
    await bus.probe()


async def test_a_core_message_reaches_who_listens_and_its_answer_who_asked(bus: Bus) -> None:
    heard: list[bytes] = []

    async def handler(body: bytes) -> bytes | None:
        heard.append(body)
        return body.upper() if body != b"no answer" else None

    subject = subjects.refresh("readiness")
    assert await bus.request(subject, b"nobody", LONG) is None
    await bus.notify(subject, b"nobody")
    stop = await bus.listen(subject, handler)
    assert await bus.request(subject, b"look", LONG) == b"LOOK"
    assert await bus.request(subject, b"no answer", timedelta(seconds=0.1)) is None
    await bus.notify(subject, b"again")
    assert await bus.request(subject, b"after it", LONG) == b"AFTER IT"  # one subject's messages are in order
    await stop()
    assert await bus.request(subject, b"nobody", LONG) is None
    assert heard == [b"look", b"no answer", b"again", b"after it"]


async def test_who_waits_for_an_answer_is_told_at_once_that_the_listener_stops(bus: Bus) -> None:
    asked = asyncio.Event()

    async def handler(_: bytes) -> bytes | None:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError("it is stopped before it has an answer")

    clock = asyncio.get_running_loop().time
    stop = await bus.listen(subjects.wanted(3), handler)
    started, question = clock(), asyncio.create_task(bus.request(subjects.wanted(3), b"still wanted?", LONG))
    await asked.wait()
    await stop()
    assert await question is None
    assert clock() - started < LONG.total_seconds() / 2


async def test_who_is_cancelled_while_it_begins_to_listen_ends_and_harms_no_other(bus: Bus) -> None:
    """nats-py loses a cancellation that comes with the answer, and breaks its connection by a pong without a reader."""

    async def handler(body: bytes) -> bytes | None:
        return body

    for number in range(200):
        task = asyncio.create_task(bus.listen(subjects.refresh(f"source-{number}"), handler))
        for _ in range(number % 20):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task}, timeout=LONG.total_seconds())
        assert task.done()
    stop = await bus.listen(subjects.refresh("another"), handler)
    assert await bus.request(subjects.refresh("another"), b"still there", LONG) == b"still there"
    await stop()
