"""Keys of a later release that an intent keeps."""

from __future__ import annotations

import json
from datetime import timedelta

from reactor.execute.intent import Intent
from tests.unit.actions.zone.builders import zone_step

LATER = {"later": {"what": ["a later release", "says"]}, "since_2_0": 7}
FIRST = zone_step("Fence")


def test_an_action_that_begins_again_keeps_what_a_later_release_said_of_it() -> None:
    stored = json.loads(Intent.of(FIRST).dump()) | LATER
    known = Intent.read(json.dumps(stored).encode())
    again = json.loads(Intent.of(FIRST, until="2026-01-01T00:00:00Z", known=known).dump())
    assert again == stored | {"until": "2026-01-01T00:00:00Z"}


def test_what_a_later_release_said_of_an_action_goes_with_it() -> None:
    known = Intent.read(json.dumps(json.loads(Intent.of(FIRST).dump()) | LATER).encode())
    for other in (
        zone_step("Fence", generation=2),
        zone_step("Fence", decided_at=FIRST.decided_at + timedelta(days=1)),
    ):
        assert Intent.of(other, known=known).dump() == Intent.of(other).dump()
