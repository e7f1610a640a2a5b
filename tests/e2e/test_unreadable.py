"""An unreadable value, in whatever bucket, stream or annotation it is, is quarantined and affects nothing else."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import nats
import pytest
from nats.errors import Error as NatsError
from nats.js import JetStreamContext

from bus.topology import BUCKETS, GROUPS, LEASES, Bucket
from reactor.actions.annotations import EPOCH_ANNOTATION
from rules.kinds.traffic.route_state import DECISION_ANNOTATION, HEALTHY_ANNOTATION
from tests.e2e.alerts import body, firing
from tests.e2e.conftest import MakeReactor
from tests.e2e.rulefiles import ALERTS, document, failover
from tests.e2e.service import Service
from tests.e2e.shop import Shop
from tests.e2e.waiting import until, until_told

LATER = {
    "specversion": "1.0", "id": "1", "source": "/reactor/later", "type": "dev.alert-reactor.observation.v99",
    "time": "2036-01-01T00:00:00Z", "data": {"target": "service/east/shop/x", "state": "Fine"},
}  # fmt: skip
"""As a later release may write it."""
WORDS = [
    b"\xff\xfe", b"", b"{}", b"[]", b"null", b"7", b'{"id": "zz"}', "\u202e\x1b[2J".encode(), b"[" * 20_000,
    json.dumps(LATER).encode(), b'{"version": 99, "kind": "LaterFailover", "state": {"generation": 7}}',
]  # fmt: skip
KEYS = {
    "reactor_groups": ("3.group.shop-x", "3.position", "zz", "99.position"),
    "reactor_leases": ("member.zz", "owner.zz", "owner.3", "process.zz", "zz"),
    "reactor_intents": ("zz", "intent.zz", "east.shop.checkout"),
    "reactor_alerts": ("am.zz", "zz", "am.0123456789abcdef"),
    "reactor_links": ("key.2026-11-24", "used.zz", "zz"),
    "reactor_templates": ("zz", "east.shop.Deployment.x"),
}
SUBJECTS = (
    "reactor.observations.readiness.x", "reactor.observations.x.y", "reactor.inventory.x.y", "reactor.webhooks.am",
    "reactor.commands.pause.reactor", "reactor.facts.5.observation.x.y", "reactor.facts.zz.x.y",
    "reactor.actions.3.SetWeights.x", "reactor.actions.zz.x.y", "reactor.decisions.3.shop", "reactor.decisions.zz.x",
    "reactor.parked.am", "reactor.parked.zz", "reactor.excess.zz",
)  # fmt: skip
# Not partition 3, whose position is written over: its owner starts again, and reads all facts of it again.
READ = {"REACTOR_INBOX": 5, "REACTOR_FACTS": 1, "REACTOR_ACTIONS": 2, "REACTOR_PARKED": 2, "REACTOR_EXCESS": 1}
"""Number of these subjects that a process reads, by their stream: there is no partition zz, and only people read
decisions."""
NOT_OURS = ("layout",)
"""The agreed number of partitions: a word of the operator's, without which nothing may be decided."""


async def put(stream: JetStreamContext, bucket: Bucket, key: str, word: bytes) -> None:
    """Write as one of us does: with an id. What has none counts as not there."""
    await stream.publish(f"$KV.{bucket.name}.{key}", word, headers={"Nats-Msg-Id": uuid4().hex})


async def write_everywhere(service: Service) -> None:
    """Write unreadable values under every subject, new keys, and over each value of all buckets but a takeover's."""
    connection = await nats.connect(str(service.bus_url))
    try:
        stream = connection.jetstream()
        for subject in SUBJECTS:
            for word in WORDS:
                await stream.publish(subject, word)
        for bucket in BUCKETS:
            store = await stream.key_value(bucket.name)
            for word in WORDS:
                for key in KEYS[bucket.name]:
                    await put(stream, bucket, key, word)
            if bucket in (GROUPS, LEASES):
                continue  # the other test
            for number, key in enumerate(await _keys(store)):
                await put(stream, bucket, key, WORDS[number % len(WORDS)])
    finally:
        await connection.close()


async def _keys(store: Any) -> list[str]:
    try:
        return list(await store.keys())
    except NatsError:
        return []


async def counted(service: Service, stream: str, words: int) -> None:
    """Each word is quarantined, once: what is given again and again would be counted again and again."""

    async def all_of_them() -> bool:
        return await service.metric("reactor_quarantined_messages_total", stream=stream) >= words

    await until_told(all_of_them, f"{words} words in {stream} are counted")
    assert await service.metric("reactor_quarantined_messages_total", stream=stream) == words


async def away(shop: Shop, service: Service, name: str) -> None:
    """The reactor fails this route over."""
    assert await service.post(body(firing(name))) == 200
    await until(lambda: shop.moves(name) == ["away"], f"{name} is failed over")


@pytest.mark.timeout(240)
async def test_unreadable_values_everywhere_affect_nothing_else(shop: Shop, reactor: MakeReactor) -> None:
    shop.splits(["checkout", "search", "cart"], "fallback")
    for number, word in enumerate(("\u202e{[\x01", "[" * 5000, "shop/odd/zz", "9" * 400)):
        marks = {DECISION_ANNOTATION: word, EPOCH_ANNOTATION: word, HEALTHY_ANNOTATION: word}
        shop.odd_split(f"odd-{number}", "fallback", annotations=marks | {"failover.linkerd.io/primary-service": word})
    async with reactor(document(ALERTS, rules=failover())) as service:
        await service.settled(3)
        await away(shop, service, "checkout")
        await write_everywhere(service)
        await away(shop, service, "search")
        for stream, subjects in READ.items():
            await counted(service, stream, subjects * len(WORDS))
        assert await service.metric("reactor_quarantined_messages_total", stream="KV_reactor_leases") > 0
        assert await service.metric("reactor_quarantined_messages_total", stream="KV_reactor_alerts") > 0
        assert await service.is_ready()
        assert await service.stop() == 0
        await service.start()
        await service.ready()
        await away(shop, service, "cart")
        assert shop.moves("checkout") == shop.moves("search") == ["away"]
        assert "Traceback" not in service.log.read_text(), "told in one line"


@pytest.mark.timeout(240)
async def test_a_takeover_reads_unreadable_state_and_goes_on(shop: Shop, reactor: MakeReactor) -> None:
    shop.splits(["checkout", "search"], "fallback")
    async with reactor(document(ALERTS, rules=failover())) as service:
        await service.settled(2)
        service.freeze()  # it would write its own state over what is unreadable, before the next one reads that
        url = str(service.bus_url)
        connection = await nats.connect(url)
        for bucket in (GROUPS, LEASES):
            store = await connection.jetstream().key_value(bucket.name)
            for number, key in enumerate(await _keys(store)):
                if key not in NOT_OURS:
                    await put(connection.jetstream(), bucket, key, WORDS[number % len(WORDS)])
        await connection.close()
        for words in (("status",), ("members",), ("zone", "list"), ("audit", "verify"), ("explain", "shop")):
            code, said = await service.answered(*words)
            assert "Traceback" not in said, said
            assert code in (0, 1), said
        await service.kill()
        await service.start()
        await service.ready()
        await away(shop, service, "search")
        assert await service.metric("reactor_quarantined_messages_total") > 0
        assert "Traceback" not in service.log.read_text()
