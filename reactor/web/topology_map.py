"""The map: clusters with their zones and services, and routes with the weights that flow to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reactor.settings.model import ClusterSettings
from reactor.web.rows import Row
from rules.core.group import Group

_OF_CLUSTERS = ("service", "workload", "node", "zone")
"""Kinds of targets whose second part is a cluster."""
_WORST = ("Healthy", "Unknown", "Unhealthy")


def fleet_map(groups: Iterable[Group], rows: Sequence[Row], described: Mapping[str, ClusterSettings]) -> dict[str, Any]:
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
    routes = [
        {key: row[key] for key in ("key", "rule", "object", "mode", "state", "failedOver", "primary", "weights")}
        | {"backends": [_backend(one) for one in row["backends"]]}
        for row in rows if row["weights"] is not None
    ]  # fmt: skip
    return {"clusters": [*clusters.values()], "routes": routes}


def _cluster(name: str, described: ClusterSettings | None) -> Row:
    region, zone, provider = (described.region, described.zone, described.provider) if described else ("", "", "")
    return {"name": name, "region": region, "zone": zone, "provider": provider, "status": None, "targets": []}


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
