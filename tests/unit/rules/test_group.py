"""A stored group is read back as it was."""

from __future__ import annotations

import zlib
from datetime import datetime
from typing import Any, get_args

import pytest

from bus.errors import Malformed
from bus.messages import Action, Evict, Mode, Notify, Place, RouteRef, SetTaints, SetWeights, WorkloadRef, ZoneStep
from rules.core.group import Group, NoState, OutboxEntry
from rules.engine.group_codec import dump_group, load_group, unpacked
from rules.limits.state import LimiterState, QueuedRequest
from rules.rehearsal.simulation import at

ROUTE = RouteRef(cluster="east", kind="TrafficSplit", namespace="shop", name="web")
MORE: dict[type[Any], dict[str, Any]] = {
    SetWeights: {"route": ROUTE, "weights": {"web": 1}},
    Notify: {"message": "bad"},
    Place: {"clusters": {"member1": 1}},
    Evict: {"purge_mode": "Never"},
    SetTaints: {"cluster": "member1", "taints": ()},
    ZoneStep: {"cluster": "prod", "zone": "a", "phase": "Failover", "status": "Pending", "step": "Fence"},
}


def an(verb: type[Any], now: datetime) -> Any:
    common = {"id": "r/o/1", "rule": "r", "object": "o", "generation": 1, "mode": Mode.ENFORCE, "because": "Drift"}
    has = verb.model_fields
    where = {"workload": WorkloadRef(kind="Deployment", name="web"), "carrier": "Kubernetes", "from_": "member1"}
    return verb(**common, decided_at=now, **{key: where[key] for key in where if key in has}, **MORE.get(verb, {}))


@pytest.mark.parametrize("verb", get_args(Action), ids=lambda verb: verb.__name__)
def test_an_action_that_is_owed_is_still_the_same_one_after_a_restart(verb: type[Any]) -> None:
    group = Group("r", "o", NoState(), outbox=(OutboxEntry(an(verb, at(5)), at(20)),))
    again = load_group(dump_group(group))
    assert type(again.outbox[0].action) is verb
    assert again == group


def test_an_unknown_verb_is_malformed() -> None:
    stored = unpacked(dump_group(Group("r", "o", NoState(), outbox=(OutboxEntry(an(Place, at(5)), at(20)),))))
    body = stored.replace(b'"action":"Place"', b'"action":"Fly"')
    with pytest.raises(Malformed, match="Fly"):
        load_group(body)


def test_a_guard_that_ten_thousand_workloads_ask_fits_into_one_message_and_is_read_back() -> None:
    claims = tuple(QueuedRequest("fleet", f"shop/Deployment/{n:05d}", n, at(n), at(n)) for n in range(10_000))
    group = Group("@evictions", "*", LimiterState(queue=claims))
    body = dump_group(group)
    assert len(body) < 1_000_000  # what a NATS server takes by default
    assert load_group(body) == group


@pytest.mark.parametrize("body", [b"", b"\x78\x9c", zlib.compress(b'{"rule": 1}'), zlib.compress(b"{" * 9)[:-3]])
def test_what_is_no_stored_group_is_malformed(body: bytes) -> None:
    with pytest.raises(Malformed):
        load_group(body)
