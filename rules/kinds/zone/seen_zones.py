"""Zones of a cluster, as their inventory lists them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from bus.messages import ZoneInventory, Zones
from rules.core.values import replace
from rules.kinds.zone.model import ZoneIsolation
from rules.kinds.zone.state import ZoneMarks, ZoneNodes, ZonesSeen, ZoneState


def with_inventory(rule: ZoneIsolation, state: ZoneState, fact: Zones, at: datetime) -> ZoneState:
    """Give the state with the zones as they are listed; a late list changes nothing."""
    before = state.seen
    if before is not None and at < before.observed_at:
        return state
    zones = {}
    for name, one in sorted(fact.zones.items()):
        known = before.zones.get(name) if before is not None else None
        dark = one.nodes > 0 and not one.healthy_nodes
        since = (known.dark_since if known is not None else None) or at
        zones[name] = ZoneNodes(one.nodes, one.healthy_nodes, since if dark else None, _marks(rule, one))
    seen = ZonesSeen(
        at, zones, fact.demand_nodes, dict(fact.quorum_members), fact.quorum_size, tuple(fact.single_zone_services),
        dict(fact.leases_expired), fact.api_reachable, fact.maintenance,
    )  # fmt: skip
    if not fact.api_reachable and before is not None:
        # Who could not ask has seen nothing: what was seen before is kept, and that it is old is known.
        seen = replace(before, observed_at=at, api_reachable=False)
    isolation = state.isolation
    if isolation is not None and isolation.nodes is not None and isolation.zone in seen.zones:
        isolation = replace(isolation, nodes=min(isolation.nodes, seen.zones[isolation.zone].nodes))
    return replace(state, seen=seen, isolation=isolation)


def _marks(rule: ZoneIsolation, zone: ZoneInventory) -> ZoneMarks | None:
    said = zone.marked
    if said is None or said.rule != rule.name:
        return None
    return ZoneMarks(said.nodes, said.by, said.practice, said.released)


def lost_zones(rule: ZoneIsolation, state: ZoneState) -> Mapping[str, ZoneMarks]:
    """Give the zones whose nodes say that this rule has isolated them, and of which it has no record, with what they
    say; the one with the most such nodes first."""
    if rule.carrier != "Kubernetes" or state.seen is None or state.has_ended or state.ended_at is not None:
        return {}
    known = state.isolation.zone if state.isolation is not None else None
    marked = {
        name: one.marks
        for name, one in state.seen.zones.items()
        if one.marks is not None and name != known and rule.zone(name) is not None
    }
    return dict(sorted(marked.items(), key=lambda item: (-item[1].nodes, item[0])))
