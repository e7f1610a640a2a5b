"""What has waited is done only if it is still wanted; what has not is not looked up."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bus import subjects
from bus.errors import NotFound
from bus.messages import Mode, ZoneStep
from bus.port import Entry
from reactor.roles.wanted import FRESH, Wanted
from rules.bench.play import at
from rules.engine.routing import Routing
from rules.group import Group, Owed, Paused, dump
from tests.unit.rules.zone.builders import zone_rule

RULE = zone_rule()
PARTITIONS = 8
PAUSED = Paused("ann", "INC-7", at(5))
STEP = ZoneStep(
    id="zones/prod/a/1", rule="zones", object="prod/a", generation=1, mode=Mode.ENFORCE, because="Commanded",
    decided_at=at(0), cluster="prod", zone="a", carrier="Kubernetes", phase="Failover", status="InProgress",
    step="Fence",
)  # fmt: skip
OWED = Owed(STEP, at(15))
GROUP = Group("zones", "prod", generation=1, owed=(OWED,))


class Stored:
    """A bucket with one group in it, or none."""

    def __init__(self, body: bytes | None) -> None:
        self.body = body
        self.asked = 0

    async def get(self, key: str) -> Entry:
        self.asked += 1
        assert key == subjects.group(subjects.partition_of("zones", "prod", PARTITIONS), "zones", "prod")
        if self.body is None:
            raise NotFound(key)
        return Entry(key, self.body, 1)


def wanted(stored: Any) -> Wanted:
    return Wanted(stored, Routing([RULE]), PARTITIONS)


async def said(group: Group | None, *, body: bytes | None = None) -> str | None:
    stored = Stored(dump(group) if group is not None else body)
    return await wanted(stored).called_off(STEP, STEP.decided_at + FRESH)


async def test_what_is_owed_is_done_also_in_a_pause_when_the_rule_still_wants_it() -> None:
    assert await said(GROUP) is None
    assert await said(replace(GROUP, paused=PAUSED)) is None  # a person's way back is owed in a pause


async def test_what_a_pause_has_called_off_is_not_begun_and_the_reason_has_who_and_why() -> None:
    for owed in ((replace(OWED, wanted=False),), ()):
        why = await said(replace(GROUP, owed=owed, paused=PAUSED))
        assert why == "paused by ann since 1970-01-01T00:00:05+00:00: INC-7"


async def test_what_nobody_wants_any_more_is_not_begun() -> None:
    assert await said(replace(GROUP, owed=(replace(OWED, wanted=False),))) == "nobody wants it any more"
    # Another action has taken its place, and it is asked for no more.
    assert await said(replace(GROUP, generation=2, owed=())) == "nobody wants it any more"


async def test_a_group_that_has_not_come_so_far_says_nothing_of_the_action() -> None:
    assert await said(replace(GROUP, generation=0, owed=())) is None


@pytest.mark.parametrize("body", [None, b"{}", b'{"rule": "zones", "object": "prod", "version": 99}'])
async def test_where_nothing_can_be_read_the_action_is_all_there_is_to_go_by(body: bytes | None) -> None:
    assert await said(None, body=body) is None


async def test_what_was_decided_just_now_is_begun_without_a_look() -> None:
    stored = Stored(None)
    early = STEP.decided_at + FRESH - timedelta(milliseconds=1)
    assert await wanted(stored).called_off(STEP, early) is None
    assert stored.asked == 0
