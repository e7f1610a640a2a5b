"""Observations are kept for groups that may come to subscribe to their target, and for no other: 1.5 kB a target."""

from __future__ import annotations

import gc
import weakref
from datetime import UTC, datetime

import pytest

from bus.messages import Health, Observation
from rules import loader
from rules.engine.groups import GroupStore
from rules.engine.routing import Routing

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TELLS = """
- {name: told, kind: Notification, mode: DryRun, match: "custom/**"}
"""
MOVES = """
- name: moved
  kind: TrafficFailover
  mode: DryRun
  route: {cluster: east, kind: TrafficSplit, selector: app=shop}
"""


@pytest.mark.parametrize(("rules", "kept"), [(TELLS, False), (TELLS + MOVES, True)], ids=["nobody asks", "routes may"])
def test_what_was_heard_is_kept_where_a_group_may_still_ask_for_it(rules: str, kept: bool) -> None:
    routing = Routing.of(loader.load_rules([("rules.yaml", f"apiVersion: reactor/v1\nrules:{rules}")]))
    groups = GroupStore(routing)
    said = Observation(target="custom/a", status=Health.UNHEALTHY, signal="probe", observed_at=NOW)
    seen = weakref.ref(said)
    groups.apply([said], NOW, [1])
    del said
    gc.collect()
    assert ("told", "custom/a") in groups.groups
    assert (seen() is not None) is kept
