"""NATS sends its answers to whatever subject the asker names, also where that user may not publish.

A stream stores such an answer like any message. None of them is believed.
"""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import pytest

from bus import subjects
from bus.embedded import EmbeddedServer
from bus.envelope import encode
from bus.errors import KeyNotFound, Malformed
from bus.jetstream import provision
from bus.jetstream.lookup import last
from bus.message_admission import read_message
from bus.messages import IsolateZone, Pause
from bus.port import Outgoing
from bus.topology import EXECUTORS, FACTS, INBOX, LEASES, LINKS, PARTITIONS, ROUTERS
from reactor.actions.notify.approval_link import ApprovalLinks
from reactor.fleet.layout import LAYOUT, partitions_of
from reactor.runtime.clock import Clock
from tests.contract.bus.servers import Configured
from tests.integration.bus.authority import jetstream
from tests.integration.bus.test_permissions import PASSWORD, bus_of, client_of, server

__all__ = ["server"]
ROOT = Path(__file__).parents[3]
WAIT = timedelta(seconds=5)
EVIL = "$KV.reactor_leases.evil"
READ_IT = json.dumps({"last_by_subj": EVIL}).encode()


def command() -> bytes:
    now = Clock().now()
    wanted = IsolateZone(rule="zones", zone="a", by="alice", reason="x", observed_at=now)
    return encode(wanted, id="1", source="/cli", time=now)


@pytest.mark.parametrize("asker", ["receiver", "viewer"])
@pytest.mark.parametrize("how", ["DIRECT.GET", "STREAM.MSG.GET"])
async def test_what_is_stored_cannot_be_sent_on_as_a_command_or_an_action(
    server: EmbeddedServer, asker: str, how: str
) -> None:
    """A process with the least rights writes it where it may, and has the server's answer sent where it may not."""
    fact = subjects.fact(0, "isolatezone", "zones")
    queues = {subjects.command("isolatezone", "zones"): ROUTERS, subjects.action(0, "SetWeights", "x"): EXECUTORS}
    async with bus_of(server, "reactor") as bus:
        async with client_of(server, "receiver") as (client, _):
            await client.request(EVIL, command(), headers={"Nats-Msg-Id": "evil"})
        async with client_of(server, asker) as (client, denied):
            for subject in (*queues, fact):
                await client.publish(f"$JS.API.{how}.KV_reactor_leases", READ_IT, reply=subject)
            await client.flush()
            assert denied == []
        for subject, queue in queues.items():
            async with bus.work(queue, batch=1) as work:
                [delivery] = await work.next(WAIT)
                assert delivery.subject == subject
                with pytest.raises(Malformed):
                    read_message(delivery.subject, delivery.body)
                await work.ack([delivery])
        async with bus.read(FACTS, subjects.facts(0), after=0) as reading:
            [delivery] = await reading.next(WAIT)
            with pytest.raises(Malformed):
                read_message(delivery.subject, delivery.body)


async def test_a_command_of_before_cannot_be_given_again_by_who_may_only_look(server: EmbeddedServer) -> None:
    fact, again = subjects.fact(0, "pause", "*"), subjects.command("pause", "operator")
    async with bus_of(server, "reactor") as bus:
        now = Clock().now()
        paused = Pause(rule="*", by="ann", user="operator", reason="x", observed_at=now)
        await bus.publish_all([Outgoing(fact, encode(paused, id="1", source="/cli", time=now), "1")])
        async with client_of(server, "viewer") as (client, _):
            request = json.dumps({"last_by_subj": fact}).encode()
            await client.publish("$JS.API.DIRECT.GET.REACTOR_FACTS", request, reply=again)
            await client.flush()
        async with bus.work(ROUTERS, batch=1) as work:
            [delivery] = await work.next(WAIT)
            with pytest.raises(Malformed):
                read_message(delivery.subject, delivery.body)
            await work.ack([delivery])


@pytest.mark.parametrize(("user", "subject", "body"), [
    ("backup-check", subjects.observation("backup-check", "x"), b"x"),
    ("viewer", "$JS.API.STREAM.INFO.KV_reactor_leases", b""),
    ("viewer", "$JS.API.DIRECT.GET.KV_reactor_leases", READ_IT),
])  # fmt: skip
async def test_an_answer_that_was_sent_to_a_bucket_is_no_value(
    server: EmbeddedServer, user: str, subject: str, body: bytes
) -> None:
    """An acknowledgement, what is said of a stream, and a value of another key."""
    async with bus_of(server, "reactor") as bus:
        store, links = bus.store(LEASES), ApprovalLinks(bus.store(LINKS))
        day = f"key.{Clock().now().date().isoformat()}"
        async with client_of(server, "receiver") as (client, _):
            await client.request(EVIL, b'{"partitions": 3}')  # without an id: one that is there already is not stored
        async with client_of(server, user) as (client, denied):
            for key in (f"$KV.{LEASES.name}.{LAYOUT}", f"$KV.{LEASES.name}.member.x", f"$KV.{LINKS.name}.{day}"):
                await client.publish(subject, body, reply=key)
                async with asyncio.timeout(60):
                    while not (await last(bus.connection, f"KV_{key.split('.')[1]}", key)).sequence:
                        pass
            assert denied == []
        assert await partitions_of(bus) is None, "not agreed on, rather than agreed on by a stranger"
        with pytest.raises(KeyNotFound):
            await store.get("member.x")
        assert {one.key: one.value for one in await store.entries("member.*")} == {"member.x": b""}
        async with store.watch("member.*") as changes:
            assert (await anext(aiter(changes))).value == b""  # type: ignore[union-attr]
        await store.put(LAYOUT, json.dumps({"partitions": PARTITIONS}).encode(), revision=0)
        assert await partitions_of(bus) == PARTITIONS, "and it can be written again"
        assert len(await links._key(day.partition(".")[2])) == 32


async def test_a_publisher_in_an_account_of_its_own_reaches_its_subject_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the documentation has it."""
    _, _, rest = (ROOT / "docs/how-to/external-nats.md").read_text().partition("\naccounts {\n")
    accounts = "accounts {\n" + rest.partition("```")[0]
    for user in ("REACTOR", "BACKUP_CHECK"):
        monkeypatch.setenv(f"NATS_PASSWORD_{user}", PASSWORD)
    async with (
        Configured(tmp_path / "nats", f"{jetstream(tmp_path)}\n{accounts}") as server,
        bus_of(server, "reactor") as bus,
    ):
        await provision(bus)
        async with client_of(server, "backup-check") as (client, _):
            mine = subjects.observation("backup-check", "x")
            assert json.loads((await client.request(mine, b"x")).data)["stream"] == INBOX.name
            await client.publish(mine, b"x", reply=f"$KV.{LEASES.name}.{LAYOUT}")
            await client.publish(subjects.observation("other", "x"), b"x")
            await client.publish(subjects.command("pause", "reactor"), b"x")
            assert json.loads((await client.request(mine, b"x")).data)["seq"] == 3
        assert (await last(bus.connection, f"KV_{LEASES.name}", f"$KV.{LEASES.name}.{LAYOUT}")).sequence == 0
