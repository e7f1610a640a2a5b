"""The map: clusters with their zones and services, and routes with the weights that flow to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from reactor.settings.server_settings import ClusterSettings
from reactor.views.rows import Row, stamp
from rules.core.group import Group
from rules.kinds.zone.state import ZoneState

_OF_CLUSTERS = ("service", "workload", "node", "zone")
"""Kinds of targets whose second part is a cluster."""
_WORST = ("Healthy", "Unknown", "Unhealthy")


def fleet_map(groups: Sequence[Group], rows: Sequence[Row], described: Mapping[str, ClusterSettings]) -> dict[str, Any]:
    """Give `clusters`, each with its targets, and `routes`. `described`: the clusters of the settings."""
    clusters: dict[str, Row] = {name: _cluster(name, one) for name, one in described.items()}
    for target, status in sorted(_targets(groups).items()):
        kind, _, rest = target.partition("/")
        name = rest.partition("/")[0]
        if not name or kind not in (*_OF_CLUSTERS, "cluster"):
            continue
        cluster = clusters.setdefault(name, _cluster(name, None))
        if kind == "cluster":
            cluster["status"] = status
        else:
            cluster["targets"].append({"target": target, "kind": kind, "status": status})
    for group in groups:
        if isinstance(group.state, ZoneState):
            name = group.object.rpartition("/")[2]
            clusters.setdefault(name, _cluster(name, None))["zones"] += _zones(group.rule, group.state)
    routes = [
        {key: row[key] for key in ("key", "rule", "object", "mode", "state", "failedOver", "primary", "weights")}
        | {"backends": [_backend(one) for one in row["backends"]]}
        for row in rows if row["weights"] is not None
    ]  # fmt: skip
    return {"clusters": [*clusters.values()], "routes": routes}


def _cluster(name: str, described: ClusterSettings | None) -> Row:
    region, zone, provider = (described.region, described.zone, described.provider) if described else ("", "", "")
    return {"name": name, "region": region, "zone": zone, "provider": provider, "status": None,
            "targets": [], "zones": []}  # fmt: skip


def _zones(rule: str, state: ZoneState) -> Iterator[Row]:
    """Give each zone of a cluster with its nodes, and with its isolation where it has one."""
    seen, isolation = state.seen.zones if state.seen is not None else {}, state.isolation
    for name in sorted({*seen, *([isolation.zone] if isolation is not None else [])}):
        nodes, mine = seen.get(name), isolation if isolation is not None and isolation.zone == name else None
        yield {
            "zone": name, "rule": rule, "nodes": nodes.nodes if nodes else 0, "healthy": nodes.healthy if nodes else 0,
            "isolation": None if mine is None else {
                "phase": mine.phase, "status": mine.status, "because": mine.because, "since": stamp(mine.since),
                "by": mine.by, "rehearsed": mine.rehearsed, "trouble": mine.trouble or mine.failure,
            },
        }  # fmt: skip


def _backend(backend: Mapping[str, Any]) -> Row:
    kind, _, rest = (backend["target"] or "").partition("/")
    return {**backend, "cluster": rest.partition("/")[0] if kind in (*_OF_CLUSTERS, "cluster") else ""}


def _targets(groups: Iterable[Group]) -> dict[str, str]:
    """Give the status of each target; the worst one where rules use different signals."""
    found: dict[str, str] = {}
    for group in groups:
        for target, member in group.members.items():
            known, new = found.get(target, _WORST[0]), str(member.status.value)
            found[target] = max(known, new, key=_rank)
    return found


def _rank(status: str) -> int:
    return _WORST.index(status) if status in _WORST else 1
