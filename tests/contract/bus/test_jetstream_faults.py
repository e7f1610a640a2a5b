"""JetStream on servers that are killed, frozen, cut off and wiped."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from nats.aio.client import Client, Srv
from nats.aio.msg import Msg

from bus import subjects, topology
from bus.embedded import EmbeddedServer
from bus.errors import Malformed, Refused, StreamRecreated, Unavailable, WrongServer
from bus.jetstream import Credentials, JetStreamBus, newest, provision, publishing, pushing
from bus.jetstream.batch_choice import BatchChoice
from bus.jetstream.connection import Connection
from bus.jetstream.incoming import JetStreamDelivery, stored
from bus.jetstream.lookup import Last, last
from bus.jetstream.pending_publish import EXPECTED, PendingPublish
from bus.jetstream.pushing import SILENCE, PushConsumer
from bus.port import KeyValueEntry, Outgoing
from bus.topology import FACTS, GROUPS, Queue
from tests.contract.bus.servers import Configured, cluster
from tests.contract.bus.test_bus_contract import LONG, SHORT, action, bodies, fact, observed, read_all, take


async def test_a_reader_goes_on_after_the_server_was_killed(server: EmbeddedServer, jetstream: JetStreamBus) -> None:
    await jetstream.publish_all([fact(number) for number in range(5)])
    async with jetstream.read(FACTS, subjects.facts(3), after=0) as reading:
        await read_all(reading, 5)
        await server.kill()
        waiting = asyncio.create_task(read_all(reading, 5))
        await jetstream_lost(jetstream)
        assert not reading.current
        await server.restart()
        await jetstream.publish_all([fact(number) for number in range(5, 10)])
        assert bodies(await waiting) == [b"%d" % number for number in range(5, 10)]
        assert reading.current


async def test_what_was_said_last_is_unavailable_without_a_server_and_there_when_it_is_back(
    server: EmbeddedServer, jetstream: JetStreamBus
) -> None:
    await jetstream.publish_all([fact(1), fact(2)])
    await server.kill()
    with pytest.raises(Unavailable):
        await jetstream.last_of_each(FACTS, subjects.facts(3))
    await server.start()
    async with asyncio.timeout(60):
        await jetstream.connection.up.wait()
    assert bodies(await jetstream.last_of_each(FACTS, subjects.facts(3))) == [b"1", b"2"]


async def test_what_was_said_last_and_is_removed_meanwhile_is_not_waited_without_end(
    jetstream: JetStreamBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = PushConsumer.start

    async def promised_more(consumer: PushConsumer, stream: str, subject: str, after: int | None) -> None:
        await start(consumer, stream, subject, after)
        consumer._pending = 1

    monkeypatch.setattr(PushConsumer, "start", promised_more)
    assert await jetstream.last_of_each(FACTS, subjects.facts(3)) == []


async def test_what_is_counted_and_was_replaced_before_it_came_is_not_waited_for(
    jetstream: JetStreamBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's count of what is pending may stay too high where keys are written while they are read."""

    def one_too_many(message: Msg) -> JetStreamDelivery:
        one = stored(message)
        return replace(one, pending=one.pending + 1)

    monkeypatch.setattr(pushing, "stored", one_too_many)
    await jetstream.publish_all([fact(1), fact(2)])
    store = jetstream.store(GROUPS)
    await store.put_all([(f"3.{number}", b"1", 0) for number in range(3)])
    assert [entry.key for entry in await store.entries("3.*")] == ["3.0", "3.1", "3.2"]
    assert bodies(await jetstream.last_of_each(FACTS, subjects.facts(3))) == [b"1", b"2"]
    async with jetstream.read(FACTS, subjects.facts(3), after=0) as reading:
        await read_all(reading, 2)
        async with asyncio.timeout(60):
            while not reading.current:
                assert await reading.next(SHORT) == ()


async def test_what_comes_while_it_is_asked_whether_there_is_more_is_not_lost(
    jetstream: JetStreamBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine nothing comes for a while, and then all at once, as the end is asked for."""

    async def slow(connection: Connection, stream: str, subject: str) -> Last:
        await asyncio.sleep(0.5)
        return await last(connection, stream, subject)

    monkeypatch.setattr(newest, "QUIET", timedelta(0))
    monkeypatch.setattr(newest, "last", slow)
    await jetstream.publish_all([fact(number) for number in range(100)])
    assert len(await jetstream.last_of_each(FACTS, subjects.facts(3))) == 100


async def test_a_publish_in_flight_over_a_crash_is_stored_once(server: EmbeddedServer, jetstream: JetStreamBus) -> None:
    messages = [fact(number) for number in range(2_000)]
    sending = asyncio.create_task(jetstream.publish_all(messages))
    async with jetstream.read(FACTS, subjects.facts(3), after=0) as reading:
        some = await reading.next(LONG)  # so that the crash comes in the middle
        assert len(some) < len(messages)
        await server.kill()
        assert not sending.done()
        await server.restart()
        await sending
        await jetstream.publish(last := fact(len(messages)))
        rest = await read_all(reading, len(messages) + 1 - len(some))
    assert bodies([*some, *rest]) == [one.body for one in [*messages, last]]


async def test_what_a_killed_server_did_not_answer_is_not_waited_for(server: EmbeddedServer) -> None:
    """Neither before it is published again, nor before it is told: the time for an answer is a minute here."""
    minute = timedelta(minutes=1)
    async with JetStreamBus.connect(server.url, name="test", timeout=minute, patience=minute) as bus:
        await provision(bus)
        os.kill(server.pid, signal.SIGSTOP)
        sending = asyncio.create_task(bus.publish(fact(1)))
        asking = asyncio.create_task(bus.connection.api("INFO", {}))
        async with asyncio.timeout(30):
            while not (bus._publisher._rounds and bus.connection.client._resp_map):
                await asyncio.sleep(0)
            await server.kill()
            with pytest.raises(Unavailable):
                await asking
            await server.start()
            await sending
        assert bodies(await bus.last_of_each(FACTS, subjects.facts(3))) == [b"1"]


async def test_what_was_acknowledged_survives_a_crash(server: EmbeddedServer, jetstream: JetStreamBus) -> None:
    fence = await jetstream.acquire_epoch(subjects.owner(3), "owner")
    await jetstream.publish(action(1, fence))
    revision = await jetstream.store(GROUPS).put("3.a", b"1", revision=0)
    await server.kill()
    await server.restart()
    assert await jetstream.store(GROUPS).get("3.a") == KeyValueEntry("3.a", b"1", revision)
    await jetstream.publish(action(2, fence))
    async with jetstream.work(topology.EXECUTORS, batch=10) as work:
        assert bodies(await take(work, 2)) == [b"1", b"2"]


async def test_work_goes_on_after_the_server_was_killed(
    server: EmbeddedServer, jetstream: JetStreamBus, queue: Queue
) -> None:
    async with jetstream.work(queue, batch=10) as work:
        assert not await work.next(timedelta(milliseconds=50))
        await server.kill()
        waiting = asyncio.create_task(take(work, 1))
        await server.restart()
        await jetstream.publish(observed(1))
        [one] = await waiting
        await work.ack([one])


async def test_a_watch_goes_on_after_the_server_was_killed(server: EmbeddedServer, jetstream: JetStreamBus) -> None:
    store = jetstream.store(GROUPS)
    first = await store.put("3.a", b"1", revision=0)
    async with store.watch("3.*") as changes:
        await anext(changes)
        await server.kill()
        await server.restart()
        second = await store.put("3.a", b"2", revision=first)
        assert await anext(changes) == KeyValueEntry("3.a", b"2", second)


async def wipe(server: EmbeddedServer, jetstream: JetStreamBus) -> None:
    await server.stop()
    shutil.rmtree(server.folder / "store")
    await server.start()
    await provision(jetstream)


async def test_a_reader_is_told_that_the_store_was_wiped(server: EmbeddedServer, jetstream: JetStreamBus) -> None:
    await jetstream.publish_all([fact(number) for number in range(5)])
    async with jetstream.read(FACTS, subjects.facts(3), after=0) as reading:
        await read_all(reading, 5)
        await wipe(server, jetstream)
        await jetstream.publish(fact(7))
        with pytest.raises(StreamRecreated):
            await reading.next(LONG)
        with pytest.raises(StreamRecreated):
            await reading.newest()


async def test_a_reader_that_waits_for_a_deleted_stream_is_told_when_there_is_another(jetstream: JetStreamBus) -> None:
    async with jetstream.read(FACTS, subjects.facts(3), after=0) as reading:
        await jetstream.connection.api(f"STREAM.DELETE.{FACTS.name}", {})
        assert not await reading.next(timedelta(seconds=3))
        with pytest.raises(Unavailable):
            await reading.newest()
        await provision(jetstream)
        with pytest.raises(StreamRecreated):
            await reading.next(LONG)


async def test_a_watch_goes_on_in_a_bucket_that_was_created_again(
    server: EmbeddedServer, jetstream: JetStreamBus
) -> None:
    store = jetstream.store(GROUPS)
    await store.put_all([(f"3.{key}", b"old", 0) for key in "abc"])
    async with store.watch("3.*") as changes:
        for _ in "abc":
            await anext(changes)
        await wipe(server, jetstream)
        revision = await store.put("3.d", b"new", revision=0)
        assert await anext(changes) == KeyValueEntry("3.d", b"new", revision)


async def test_a_frozen_server_fails_the_probe_within_seconds(server: EmbeddedServer, jetstream: JetStreamBus) -> None:
    """After the time of one answer, and not after the patience of those who publish."""
    clock, patience = asyncio.get_running_loop().time, timedelta(minutes=1)
    async with (
        JetStreamBus.connect(server.url, name="probe", patience=patience) as bus,
        jetstream.read(FACTS, subjects.facts(3), after=0) as reading,
    ):
        started = clock()
        os.kill(server.pid, signal.SIGSTOP)
        try:
            with pytest.raises(Unavailable):
                await bus.probe()
            assert clock() - started < patience.total_seconds() / 2
            assert not await reading.next(SILENCE)
            assert not reading.current
        finally:
            os.kill(server.pid, signal.SIGCONT)
        await jetstream.publish(fact(1))
        assert bodies(await read_all(reading, 1)) == [b"1"]
    await jetstream.probe()


async def test_a_slow_reader_loses_nothing(jetstream: JetStreamBus) -> None:
    large = b"x" * 8_192
    async with jetstream.read(FACTS, subjects.facts(3), after=0) as reading:
        for start in range(0, 2_000, 500):  # more than the server sends before it waits for us
            await jetstream.publish_all([_large(number, large) for number in range(start, start + 500)])
        assert not reading.current
        read = await read_all(reading, 2_000)
    assert [one.sequence for one in read] == list(range(1, 2_001))


def _large(number: int, body: bytes) -> Outgoing:
    return Outgoing(fact(number).subject, body, f"large-{number}")


async def test_a_write_whose_answer_was_lost_is_no_refusal(jetstream: JetStreamBus) -> None:
    """A server alone compares the revision before the id, and refuses a second time what it stored the first time."""
    store = jetstream.store(GROUPS)
    post = PendingPublish("$KV.reactor_groups.3.a", b"1", {"Nats-Msg-Id": "same", EXPECTED: "0"})
    write = store._write  # type: ignore[attr-defined]
    [first] = await write([post])
    [second] = await write([post])
    assert first == second
    [other] = await write([PendingPublish(post.subject, b"2", {"Nats-Msg-Id": "other", EXPECTED: "0"})])
    assert isinstance(other, Refused)


async def test_a_message_that_is_too_large_is_the_senders_mistake(jetstream: JetStreamBus) -> None:
    with pytest.raises(Malformed, match="maximum payload"):
        await jetstream.publish(Outgoing(fact(1).subject, b"x" * (2 << 20), "large"))


async def test_a_subject_that_no_stream_takes_is_unavailable(server: EmbeddedServer, jetstream: JetStreamBus) -> None:
    async with JetStreamBus.connect(server.url, name="hasty", patience=timedelta(seconds=5)) as hasty:
        with pytest.raises(Unavailable, match="no stream takes this subject"):
            await hasty.publish(Outgoing("reactor.nowhere", b"", "1"))


async def test_without_a_server_connecting_says_where_it_looked(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"no NATS server at 127.0.0.1:1 within 3 s: .*Connect call failed"):
        async with JetStreamBus.connect("nats://user:secret@127.0.0.1:1", name="test", patience=timedelta(seconds=3)):
            pass


async def test_a_server_without_jetstream_is_refused(tmp_path: Path) -> None:
    async with Configured(tmp_path, "") as server:
        with pytest.raises(WrongServer, match="without JetStream"):
            async with JetStreamBus.connect(server.url, name="test"):
                pass


async def test_an_account_without_jetstream_is_refused(tmp_path: Path) -> None:
    accounts = """
        jetstream { store_dir: "%s" }
        accounts { plain { users: [{user: me, password: secret}] } }
        """
    async with Configured(tmp_path, accounts % tmp_path) as server:
        with pytest.raises(WrongServer, match="JetStream not enabled for account"):
            async with JetStreamBus.connect(
                server.url, name="test", credentials=Credentials(user="me", password="secret")
            ):
                pass


async def test_a_server_that_is_too_old_is_refused_by_its_version(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bus.jetstream.connection.OLDEST", (99, 0))
    with pytest.raises(WrongServer, match=r"nats-server 2\.\d+\.\d+ is too old"):
        async with JetStreamBus.connect(server.url, name="test"):
            pass


async def test_only_who_has_the_password_gets_in(tmp_path: Path) -> None:
    users = f'jetstream {{ store_dir: "{tmp_path}" }}\nauthorization {{ user: me, password: secret }}'
    async with Configured(tmp_path, users) as server:
        right, wrong = (Credentials(user="me", password=password) for password in ("secret", "guess"))
        async with JetStreamBus.connect(server.url, name="test", credentials=right) as bus:
            await provision(bus)
        with pytest.raises(Unavailable, match="Authorization Violation"):
            async with JetStreamBus.connect(server.url, name="test", credentials=wrong, patience=timedelta(seconds=5)):
                pass


async def test_a_connection_that_is_over_for_good_says_so(server: EmbeddedServer) -> None:
    async with JetStreamBus.connect(server.url, name="test") as bus:
        assert not bus.connection.closed.is_set()
        # A control line this long makes the server hang up, and nats-py then does not come back.
        await bus.connection.client.publish("x." + "y" * 5_000, b"")
        async with asyncio.timeout(LONG.total_seconds()):
            await bus.connection.closed.wait()
        with pytest.raises(Unavailable):
            await bus.is_present(subjects.alive("reactor-1"), SHORT)


async def test_a_stream_that_keeps_messages_otherwise_is_refused_and_left_alone(server: EmbeddedServer) -> None:
    async with JetStreamBus.connect(server.url, name="test") as bus:
        mine = {"name": FACTS.name, "subjects": ["mine.>"], "retention": "limits", "storage": "file"}
        await bus.connection.api(f"STREAM.CREATE.{FACTS.name}", mine)
        with pytest.raises(WrongServer, match=r"REACTOR_FACTS exists with subjects \['mine\.>'\]"):
            await provision(bus)
        info = await bus.connection.api(f"STREAM.INFO.{FACTS.name}", {})
        assert info["config"]["subjects"] == ["mine.>"]


async def test_an_operators_sizes_are_kept_and_what_is_missing_is_added(server: EmbeddedServer) -> None:
    async with JetStreamBus.connect(server.url, name="test") as bus:
        theirs = {
            "name": FACTS.name, "subjects": list(FACTS.subjects), "retention": "limits", "storage": "file",
            "max_bytes": 1 << 20, "description": "theirs",
        }  # fmt: skip
        await bus.connection.api(f"STREAM.CREATE.{FACTS.name}", theirs)
        await provision(bus)
        config = (await bus.connection.api(f"STREAM.INFO.{FACTS.name}", {}))["config"]
        assert (config["max_bytes"], config["description"], config["allow_direct"]) == (1 << 20, "theirs", True)
        before = await bus.connection.api(f"STREAM.INFO.{FACTS.name}", {})
        await provision(bus)
        assert (await bus.connection.api(f"STREAM.INFO.{FACTS.name}", {}))["config"] == before["config"]


async def test_a_bucket_that_an_operator_made_is_used(server: EmbeddedServer) -> None:
    async with JetStreamBus.connect(server.url, name="test") as bus:
        await bus.connection.client.jetstream().create_key_value(bucket=GROUPS.name)
        await provision(bus)
        store = bus.store(GROUPS)
        await store.delete("3.a", revision=await store.put("3.a", b"1", revision=0))
        assert await store.entries(">") == []


async def test_a_removal_comes_after_a_write_that_was_given_up(
    jetstream: JetStreamBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write is on its way: the server does not show it yet, and stores it a moment later."""
    store = jetstream.store(GROUPS)
    shown = last

    async def not_stored_yet(connection: Connection, stream: str, subject: str) -> Last:
        return Last(0) if subject.endswith("late") else await shown(connection, stream, subject)

    monkeypatch.setattr("bus.jetstream.keyvalue.last", not_stored_yet)
    writing = asyncio.create_task(store.put("3.late", b"1", revision=None))
    await asyncio.sleep(0)
    while not writing.done() and not jetstream._publisher._rounds:
        await asyncio.sleep(0)
    writing.cancel()
    await store.delete("3.late", revision=None)
    assert await store.entries("3.late") == []


async def test_a_full_queue_refuses_so_that_nothing_owed_is_lost(server: EmbeddedServer) -> None:
    async with JetStreamBus.connect(server.url, name="test", patience=timedelta(seconds=8)) as bus:
        await provision_with_a_small_inbox(bus)
        with pytest.raises(Unavailable, match="maximum bytes exceeded"):
            await bus.publish_all([observed(number) for number in range(200)])
        async with bus.work(topology.ROUTERS, batch=200) as work:
            assert (await take(work, 1))[0].body == b"0"


async def test_what_the_server_said_is_told_though_it_gave_no_answer_at_the_end(
    server: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, refused, read = list[str](), asyncio.Event(), publishing._verdict

    def noted(answer: Msg) -> int | Refused | str:
        verdict = read(answer)
        if isinstance(verdict, str):
            said.append(verdict)
            if len(said) > 1:  # the first may be to a batch, which is sent again as single messages
                refused.set()
        return verdict

    monkeypatch.setattr(publishing, "_verdict", noted)
    async with JetStreamBus.connect(server.url, name="test", patience=timedelta(seconds=8)) as bus:
        await provision_with_a_small_inbox(bus)
        sending = asyncio.create_task(bus.publish_all([observed(number) for number in range(200)]))
        await refused.wait()
        os.kill(server.pid, signal.SIGSTOP)
        try:
            with pytest.raises(Unavailable, match="before: maximum bytes exceeded"):
                await sending
        finally:
            os.kill(server.pid, signal.SIGCONT)


async def provision_with_a_small_inbox(bus: JetStreamBus) -> None:
    small = {
        "name": topology.INBOX.name, "subjects": list(topology.INBOX.subjects), "retention": "workqueue",
        "storage": "file", "max_bytes": 4_096,
    }  # fmt: skip
    await bus.connection.api(f"STREAM.CREATE.{topology.INBOX.name}", small)
    await provision(bus)


async def test_a_cluster_of_three_goes_on_when_its_leader_is_killed(tmp_path: Path) -> None:
    async with (
        cluster(tmp_path) as members,
        JetStreamBus.connect([member.url for member in members], name="test", patience=timedelta(seconds=20)) as bus,
    ):
        await provision_when_elected(bus)
        await bus.publish_all([fact(number) for number in range(10)])
        async with bus.read(FACTS, subjects.facts(3), after=0) as reading:
            await read_all(reading, 10)
            leader = (await bus.connection.api(f"STREAM.INFO.{FACTS.name}", {}))["cluster"]["leader"]
            await members[int(leader[1:])].kill()
            await bus.publish_all([fact(number) for number in range(20)])
            assert sorted(bodies(await read_all(reading, 10))) == sorted(b"%d" % number for number in range(10, 20))


async def test_batches_on_a_cluster_that_loses_its_leader_are_stored_once_and_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BatchChoice, "next", lambda _: True)
    publishers, rounds, size = 6, 20, 40
    async with (
        cluster(tmp_path) as members,
        JetStreamBus.connect([member.url for member in members], name="test", patience=timedelta(seconds=30)) as bus,
    ):
        await provision_when_elected(bus)
        leader = (await bus.connection.api(f"STREAM.INFO.{FACTS.name}", {}))["cluster"]["leader"]
        begun = asyncio.Event()

        async def publish(publisher: int) -> None:
            for number in range(rounds):
                first = (publisher * rounds + number) * size
                await bus.publish_all([fact(first + place) for place in range(size)])
                if number == 1:
                    begun.set()

        async def lose_the_leader() -> None:
            await begun.wait()
            await members[int(leader[1:])].kill()

        await asyncio.gather(lose_the_leader(), *(publish(publisher) for publisher in range(publishers)))
        read = [int(body) for body in await read_when_elected(bus, publishers * rounds * size)]
    for publisher in range(publishers):
        own = range(publisher * rounds * size, (publisher + 1) * rounds * size)
        assert [number for number in read if number in own] == list(own)


async def provision_when_elected(bus: JetStreamBus) -> None:
    """A cluster that has just started needs about a second to choose who leads."""
    async with asyncio.timeout(60):
        provisioned = False
        while not provisioned:
            try:
                await provision(bus, replicas=3)
                provisioned = True
            except (Unavailable, WrongServer):  # the servers have not found each other yet
                await asyncio.sleep(0.1)


async def read_when_elected(bus: JetStreamBus, count: int) -> list[bytes]:
    """Read from the start; a cluster that has lost its leader makes no consumers until another is chosen."""
    async with asyncio.timeout(60):
        while True:
            try:
                async with bus.read(FACTS, subjects.facts(3), after=0) as reading:
                    return bodies(await read_all(reading, count))
            except Unavailable:
                await asyncio.sleep(0.1)


async def jetstream_lost(bus: JetStreamBus) -> None:
    """Come back when the connection is down."""
    async with asyncio.timeout(LONG.total_seconds()):
        while bus.connection.up.is_set():
            await asyncio.sleep(0.01)


async def test_an_error_that_meets_the_end_of_patience_does_not_keep_connecting_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """asyncio.wait_for of Python 3.11 gives the error then, and the cancellation is lost."""

    async def refused_when_cancelled(_client: Client, _server: Srv) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ConnectionRefusedError from None

    monkeypatch.setattr(Client, "_connect_to_server", refused_when_cancelled)
    async with asyncio.timeout(60):
        with pytest.raises(Unavailable, match="no NATS server at"):
            async with JetStreamBus.connect("nats://127.0.0.1:1", name="test", patience=SHORT):
                pass
