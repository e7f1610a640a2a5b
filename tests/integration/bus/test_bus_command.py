"""`reactor bus init|check|status` on real servers: it says what it did, what is missing, and what to do."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from bus import jetstream as jetstream_bus
from bus import subjects, topology
from bus.embedded import EmbeddedServer
from bus.errors import NotPermitted, NotReady
from bus.jetstream import JetStreamBus
from bus.port import Outgoing
from bus.topology import EXECUTORS, FACTS
from reactor.cli.main import cli
from tests.contract.bus.servers import Configured, cluster, three
from tests.integration.bus.authority import jetstream

RIGHTS = """
authorization {{ users: [{{ user: me, password: pw, permissions: {{
  publish: ["reactor.>", "$JS.API.>", "$JS.ACK.>", "$JS.FC.>", "_INBOX.>", {buckets}]
  subscribe: ["_INBOX_me.>"{more}]
}} }}] }}
"""
EVERYTHING = len(topology.STREAMS) + len(topology.BUCKETS) + len(topology.QUEUES)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    """A nats-server of this test's own."""
    async with EmbeddedServer(tmp_path / "nats") as server:
        yield server


async def reactor_bus(url: str, *words: str, **environment: str) -> Result:
    """Run `reactor bus …`, in a thread as it has an event loop of its own."""
    argv = ["bus", *words, "--bus", url]
    return await asyncio.to_thread(CliRunner(env=environment).invoke, cli, argv)


def buckets(*, but: str = "") -> str:
    """The permissions to write to all of them, or to all but one."""
    return ", ".join(f'"$KV.{bucket.name}.>"' for bucket in topology.BUCKETS if bucket.name != but)


def printed(result: Result) -> Any:
    return json.loads(result.stdout)


async def test_init_makes_everything_and_the_second_time_nothing(server: EmbeddedServer) -> None:
    first = await reactor_bus(server.url, "init", "-o", "json")
    assert first.exit_code == 0, first.output
    assert {row["done"] for row in printed(first)["changes"]} == {"made"}
    assert len(printed(first)["changes"]) == EVERYTHING
    second = await reactor_bus(server.url, "init")
    assert (second.exit_code, second.output) == (0, "everything exists already: nothing was changed\n")


async def test_init_says_what_it_changes_in_what_is_there(server: EmbeddedServer) -> None:
    await reactor_bus(server.url, "init")
    async with JetStreamBus.connect(server.url, name="test", timeout=timedelta(seconds=10)) as bus:
        there = await bus.connection.api(f"CONSUMER.INFO.{EXECUTORS.stream}.{EXECUTORS.name}", {})
        slow = there["config"] | {"ack_wait": 30 * 10**9}
        await bus.connection.api(
            f"CONSUMER.DURABLE.CREATE.{EXECUTORS.stream}.{EXECUTORS.name}",
            {"stream_name": EXECUTORS.stream, "config": slow},
        )
    found = await reactor_bus(server.url, "check", "-o", "json")
    assert found.exit_code == 1
    assert "ack_wait 30000000000 -> 5000000000: run reactor bus init" in found.stdout
    done = await reactor_bus(server.url, "init", "-o", "json")
    assert printed(done)["changes"] == [
        {"name": "REACTOR_ACTIONS > executors", "done": "changed", "what": "ack_wait: 30000000000 -> 5000000000"}
    ]
    assert (await reactor_bus(server.url, "check")).exit_code == 0


async def test_another_number_of_partitions_is_refused_and_it_says_what_to_do(server: EmbeddedServer) -> None:
    assert (await reactor_bus(server.url, "init", "--partitions", "8")).exit_code == 0
    other = await reactor_bus(server.url, "init", "--partitions", "16")
    assert other.exit_code == 1
    assert "this bus was set up with 8: use 8, or another bus; to change it, stop all reactors" in other.output
    assert (await reactor_bus(server.url, "init")).exit_code == 0  # it takes what is there
    assert (await reactor_bus(server.url, "check")).exit_code == 1
    assert (await reactor_bus(server.url, "check", REACTOR_BUS__PARTITIONS="8")).exit_code == 0


async def test_copies_need_a_cluster(server: EmbeddedServer) -> None:
    refused = await reactor_bus(server.url, "init", "--replicas", "3")
    assert refused.exit_code == 1
    assert "copies need a cluster" in refused.output


async def test_in_a_cluster_copies_become_more_and_never_fewer(tmp_path: Path) -> None:
    async with cluster(tmp_path) as members:
        url = members[0].url
        async with asyncio.timeout(60):
            while (await reactor_bus(url, "init")).exit_code != 0:
                await asyncio.sleep(0.2)  # the cluster chooses its leader
        grown = await reactor_bus(url, "init", "--replicas", "3", "-o", "json")
        assert grown.exit_code == 0, grown.output
        assert {row["what"] for row in printed(grown)["changes"]} == {"num_replicas: 1 -> 3"}
        shrunk = await reactor_bus(url, "init", "--replicas", "1")
        assert shrunk.exit_code == 1
        assert "REACTOR_FACTS: 3" in shrunk.output
        assert "does not reduce them" in shrunk.output
        seen = printed(await reactor_bus(url, "status", "-o", "json"))
        assert {stream["replicas"] for stream in seen["streams"]} == {3}


async def test_before_init_check_names_everything_that_is_missing_and_writes_nothing(server: EmbeddedServer) -> None:
    found = await reactor_bus(server.url, "check", "-o", "json")
    assert found.exit_code == 1
    failed = [row for row in printed(found)["checks"] if row["result"] == "failed"]
    assert sum("is missing: run reactor bus init" in row["detail"] for row in failed) == EVERYTHING
    status = await reactor_bus(server.url, "status")
    assert (status.exit_code, "run reactor bus init" in status.output) == (1, True)
    async with JetStreamBus.connect(server.url, name="test", timeout=timedelta(seconds=10)) as bus:
        assert (await bus.connection.api("STREAM.NAMES", {}))["total"] == 0


async def test_check_names_each_permission_that_is_missing_and_leaves_nothing_behind(tmp_path: Path) -> None:
    rights = RIGHTS.format(buckets=buckets(but="reactor_intents"), more="")
    async with Configured(tmp_path / "nats", f"{jetstream(tmp_path)}\n{rights}") as server:
        url = server.url.replace("nats://", "nats://me:pw@")
        assert (await reactor_bus(url, "init")).exit_code == 0
        found = await reactor_bus(url, "check", "-o", "json")
        assert found.exit_code == 1
        told = [row["detail"] for row in printed(found)["checks"] if row["check"] == "permissions"]
        assert [text.rpartition(" ")[2] for text in told] == [
            '"$kv.reactor_intents.check"',
            '"reactor.alive.check"',
            '"reactor.refresh.check"',
            '"reactor.wanted.0"',
        ]
        seen = printed(await reactor_bus(url, "status", "-o", "json"))
    stored = {stream["name"]: stream["messages"] for stream in seen["streams"]}
    assert {name: count for name, count in stored.items() if count} == {"KV_reactor_groups": 1, "KV_reactor_leases": 1}


async def test_the_permissions_that_are_printed_are_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rights = CliRunner().invoke(cli, ["bus", "permissions", "--role", "reactor"]).stdout
    monkeypatch.setenv("NATS_PASSWORD_REACTOR", "pw")
    as_reactor = {"REACTOR_BUS__USER": "reactor", "REACTOR_BUS__PASSWORD": "pw"}
    async with Configured(tmp_path / "nats", f"{jetstream(tmp_path)}\n{rights}") as server:
        done = await reactor_bus(server.url, "init", **as_reactor)
        assert done.exit_code == 0, done.output
        found = await reactor_bus(server.url, "check", **as_reactor)
        assert found.exit_code == 0, found.output


async def test_who_may_not_publish_is_told_so_at_once_and_on_which_subject(tmp_path: Path) -> None:
    rights = RIGHTS.format(buckets=buckets(), more="").replace('"reactor.>"', '"reactor.commands.pause.me"')
    async with Configured(tmp_path / "nats", f"{jetstream(tmp_path)}\n{rights}") as server:
        url = server.url.replace("nats://", "nats://me:pw@")
        assert (await reactor_bus(url, "init")).exit_code == 0
        async with JetStreamBus.connect(url, name="test", patience=timedelta(seconds=60)) as bus:
            denied = subjects.command("IsolateZone", "me")
            for _ in range(2):
                async with asyncio.timeout(30):  # half of the patience
                    with pytest.raises(NotPermitted, match=f"may not publish on {denied}"):
                        await bus.publish(Outgoing(denied, b"{}", "1"))
            assert await bus.publish(Outgoing(subjects.command("pause", "me"), b"{}", "2")) == 1


async def test_init_waits_for_a_server_of_the_cluster_that_joins_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried, provision = threading.Event(), jetstream_bus.provision

    async def noted(bus: JetStreamBus, *, replicas: int) -> Any:
        try:
            return await provision(bus, replicas=replicas)
        except NotReady:
            tried.set()
            raise

    monkeypatch.setattr(jetstream_bus, "provision", noted)
    first, second, third = three(tmp_path / "nats")
    async with AsyncExitStack() as stack:
        await asyncio.gather(*(stack.enter_async_context(member) for member in (first, second)))
        running = asyncio.create_task(reactor_bus(first.url, "init", "--replicas", "3"))
        assert await asyncio.to_thread(tried.wait, 60)
        await stack.enter_async_context(third)
        done = await running
    assert (done.exit_code, done.stderr.count("waiting up to")) == (0, 1), done.output


async def test_streams_that_cannot_be_used_are_named_by_check_and_left_alone_by_init(server: EmbeddedServer) -> None:
    async with JetStreamBus.connect(server.url, name="test", timeout=timedelta(seconds=10)) as bus:
        mine = {"name": FACTS.name, "subjects": ["mine.>"], "retention": "limits", "storage": "file"}
        await bus.connection.api(f"STREAM.CREATE.{FACTS.name}", mine)
    for words in (("init",), ("check",)):
        result = await reactor_bus(server.url, *words)
        assert result.exit_code == 1
        assert "REACTOR_FACTS exists with subjects ['mine.>']" in result.output
    async with JetStreamBus.connect(server.url, name="test", timeout=timedelta(seconds=10)) as bus:
        assert (await bus.connection.api("STREAM.NAMES", {}))["streams"] == [FACTS.name]


async def test_status_is_the_same_in_every_form(server: EmbeddedServer) -> None:
    await reactor_bus(server.url, "init", "--partitions", "4")
    seen = printed(await reactor_bus(server.url, "status", "-o", "json"))
    assert yaml.safe_load((await reactor_bus(server.url, "status", "-o", "yaml")).stdout) == seen
    assert len(seen["streams"]) + len(seen["queues"]) == EVERYTHING
    assert len(seen["partitions"]) == 4
    table = (await reactor_bus(server.url, "status")).stdout
    assert all(row["name"] in table for row in (*seen["streams"], *seen["queues"]))


@pytest.mark.parametrize("command", ["init", "check", "status"])
async def test_a_bus_that_is_out_of_reach_is_exit_code_3(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reactor.cli.bus.PATIENCE", timedelta(seconds=0.3))
    result = await reactor_bus("nats://127.0.0.1:1", command)
    assert (result.exit_code, result.stdout) == (3, "")
    assert "no NATS server at" in result.stderr


@pytest.mark.parametrize(
    "words", [["status"], ["members"], ["audit", "export"], ["pause", "*", "--comment", "x", "-y"]]
)
async def test_a_bus_without_a_reactors_streams_is_told_and_is_no_bus_out_of_reach(
    words: list[str], server: EmbeddedServer
) -> None:
    done = await asyncio.to_thread(CliRunner().invoke, cli, [*words, "--bus", server.url])
    assert done.exit_code == 1
    assert done.stderr.startswith("reactor: this bus has no streams of a reactor: is it the right one?")
    assert done.stderr.count("\n") == 1
