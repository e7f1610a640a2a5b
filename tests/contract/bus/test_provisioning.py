"""Provisioning as a process that runs does it: again and again, while an operator deletes what it made."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from bus import subjects, topology
from bus.jetstream import JetStreamBus, provision
from bus.port import KeyValueEntry
from bus.topology import FACTS, GROUPS, Bucket, Queue
from tests.contract.bus.test_bus_contract import bodies, fact, observed, read_all, take

THINGS = len(topology.STREAMS) + len(topology.BUCKETS) + len(topology.QUEUES)


@pytest.fixture
def asked(jetstream: JetStreamBus, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the requests to the server from now on."""
    names: list[str] = []
    api = jetstream.connection.api

    async def note(name: str, request: Mapping[str, Any]) -> dict[str, Any]:
        names.append(name)
        return await api(name, request)

    monkeypatch.setattr(jetstream.connection, "api", note)
    return names


async def state(bus: JetStreamBus) -> list[Any]:
    """Configuration and creation time of the streams and queues."""
    streams = [*(one.name for one in topology.STREAMS), *(f"KV_{one.name}" for one in topology.BUCKETS)]
    names = [f"STREAM.INFO.{name}" for name in streams]
    names += [f"CONSUMER.INFO.{queue.stream}.{queue.name}" for queue in topology.QUEUES]
    return [(info["config"], info["created"]) for info in [await bus.connection.api(name, {}) for name in names]]


async def test_where_all_is_there_each_thing_is_asked_for_once_and_nothing_changes(
    jetstream: JetStreamBus, asked: list[str]
) -> None:
    before = await state(jetstream)
    asked.clear()
    assert not await provision(jetstream)
    assert len(asked) == THINGS == 16
    assert all(".INFO." in name for name in asked)
    assert await state(jetstream) == before


@pytest.mark.parametrize("only_missing", [False, True])
async def test_what_was_deleted_is_made_again_and_nothing_else_is_touched(
    jetstream: JetStreamBus, asked: list[str], only_missing: bool
) -> None:
    for name in (
        f"STREAM.DELETE.{FACTS.name}", f"STREAM.DELETE.KV_{GROUPS.name}",
        f"CONSUMER.DELETE.{topology.INBOX.name}.{topology.ROUTERS.name}",
    ):  # fmt: skip
        await jetstream.connection.api(name, {})
    asked.clear()
    made = await provision(jetstream, only_missing=only_missing)
    assert [(step.name, step.new) for step in made] == [
        (FACTS.name, True), (f"KV_{GROUPS.name}", True), (f"{topology.INBOX.name} > {topology.ROUTERS.name}", True),
    ]  # fmt: skip
    assert len(asked) == THINGS + len(made)
    assert not await provision(jetstream)
    await jetstream.publish(fact(1))
    async with jetstream.read(FACTS, subjects.facts(3), after=0) as reading:
        assert bodies(await read_all(reading, 1)) == [b"1"]
    revision = await jetstream.store(GROUPS).put("3.a", b"1", revision=0)
    assert await jetstream.store(GROUPS).get("3.a") == KeyValueEntry("3.a", b"1", revision)


async def test_a_stream_that_was_deleted_comes_back_with_its_queue(jetstream: JetStreamBus, queue: Queue) -> None:
    await jetstream.connection.api(f"STREAM.DELETE.{topology.INBOX.name}", {})
    made = await provision(jetstream, only_missing=True)
    assert [step.name for step in made] == [topology.INBOX.name, f"{topology.INBOX.name} > {queue.name}"]


async def test_a_worker_of_a_queue_goes_on_when_it_was_made_again(jetstream: JetStreamBus, queue: Queue) -> None:
    async with jetstream.work(queue, batch=8) as work:
        working = asyncio.create_task(take(work, 1))
        await asyncio.sleep(0.2)  # its request is pending
        await jetstream.connection.api(f"CONSUMER.DELETE.{queue.stream}.{queue.name}", {})
        await provision(jetstream, only_missing=True)
        await jetstream.publish(observed(1))
        async with asyncio.timeout(20):
            assert bodies(await working) == [b"1"]


async def test_many_processes_may_do_it_at_once(jetstream: JetStreamBus) -> None:
    for stream in topology.STREAMS:
        await jetstream.connection.api(f"STREAM.DELETE.{stream.name}", {})
    await asyncio.gather(*(provision(jetstream) for _ in range(8)))
    assert not await provision(jetstream)


async def test_a_process_that_runs_leaves_what_another_version_has_set(jetstream: JetStreamBus) -> None:
    create = f"STREAM.UPDATE.{FACTS.name}"
    there = (await jetstream.connection.api(f"STREAM.INFO.{FACTS.name}", {}))["config"]
    await jetstream.connection.api(create, {**there, "discard": "new"})
    assert not await provision(jetstream, only_missing=True)
    assert [step.name for step in await provision(jetstream)] == [FACTS.name]


async def test_a_bucket_of_an_older_version_gets_its_age_and_an_operators_age_stays(jetstream: JetStreamBus) -> None:
    async def config(bucket: Bucket) -> dict[str, Any]:
        found: dict[str, Any] = (await jetstream.connection.api(f"STREAM.INFO.KV_{bucket.name}", {}))["config"]
        return found

    month = topology.INTENTS.max_age // timedelta(microseconds=1) * 1000
    for bucket, age in ((topology.INTENTS, 0), (topology.TEMPLATES, 2 * month)):
        await jetstream.connection.api(f"STREAM.UPDATE.KV_{bucket.name}", {**await config(bucket), "max_age": age})
    await provision(jetstream)
    assert [(await config(one))["max_age"] for one in topology.BUCKETS] == [0, 0, month, 0, 2 * month, month]


async def test_a_stream_of_an_older_version_gets_the_subjects_that_it_lacks(jetstream: JetStreamBus) -> None:
    info, name = topology.INBOX, topology.INBOX.name
    there = (await jetstream.connection.api(f"STREAM.INFO.{name}", {}))["config"]
    older = [one for one in info.subjects if "inventory" not in one]
    await jetstream.connection.api(f"STREAM.UPDATE.{name}", {**there, "subjects": older})
    assert [step.name for step in await provision(jetstream)] == [name]
    there = (await jetstream.connection.api(f"STREAM.INFO.{name}", {}))["config"]
    assert sorted(there["subjects"]) == sorted(info.subjects)
