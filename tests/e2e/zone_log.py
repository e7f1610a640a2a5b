"""The cluster's own write log of an isolation: objects that were changed, how often, and with which permission.

The log is the witness: neither the reactor's messages nor the emulator's answers are believed.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from reactor.demo.kube import LoggedWrite
from tests.e2e.zone_objects import ZONE_LABEL
from tests.e2e.zone_world import MANAGER, SICK, ZoneWorld

RELEASED = "reactor/isolation-released-at"


def node_writes(world: ZoneWorld) -> list[LoggedWrite]:
    """Writes of the reactor to nodes."""
    return [write for write in world.writes() if write.resource == "nodes"]


def evictions(world: ZoneWorld) -> list[LoggedWrite]:
    """All evictions that the reactor asked for, let through or not."""
    return [
        write for write in world.emulator.writes if write.manager == MANAGER and write.subresource == "eviction"
    ]  # fmt: skip


def changes(write: LoggedWrite) -> list[tuple[str, str, str]]:
    """Changes of a write to a node: operation, path and value; when a node was released does not matter."""
    found = []
    for one in write.body:
        if one["op"] == "test":
            continue
        value = sorted(one["value"]) if isinstance(one.get("value"), dict) else one.get("value")
        found.append((one["op"], one["path"], "" if _releases(one) else json.dumps(value)))
    return found


def releases(world: ZoneWorld) -> list[float]:
    """Time of release of each node of the sick zone, in order."""
    return sorted(write.at for write in node_writes(world) if any(_releases(one) for one in write.body))


def _releases(operation: dict[str, Any]) -> bool:
    return operation["op"] == "add" and RELEASED in json.dumps([operation["path"], operation["value"]]).replace(
        "~1", "/"
    )


def batches(moments: list[float], *, apart: float) -> list[int]:
    """Sizes of the batches, where batches are more than `apart` seconds apart."""
    sizes: list[int] = []
    last = None
    for at in moments:
        if last is None or at - last > apart:
            sizes.append(0)
        sizes[-1] += 1
        last = at
    return sizes


def check_nothing_doubled(world: ZoneWorld) -> None:
    """Each change was made once to each node, and each pod was asked out once."""
    done = Counter((write.name, *change) for write in node_writes(world) for change in changes(write))
    doubled = [change for change, times in done.items() if times > 1]
    assert not doubled, doubled
    gone = Counter(write.name for write in evictions(world) if write.code == 201)
    assert max(gone.values(), default=0) <= 1, gone


def check_only_the_sick_zone(world: ZoneWorld, zone: str = SICK) -> None:
    """No node of another zone was written, and no pod on one was asked to leave; nothing else was written at all."""
    log = Ledger.of(world)
    assert {write.resource for write in world.writes()} <= {"nodes", "pods"}
    assert {log.zones[write.name] for write in node_writes(world)} <= {zone}
    assert {log.zones[log.nodes[write.name, write.before]] for write in evictions(world)} <= {zone}


def check_budgets(world: ZoneWorld) -> None:
    """No eviction was let through that a budget did not allow."""
    overdrawn = Ledger.of(world).overdrawn
    assert not overdrawn, overdrawn


def check_whole(world: ZoneWorld) -> None:
    """All of these."""
    check_nothing_doubled(world)
    check_only_the_sick_zone(world)
    check_budgets(world)


@dataclass
class Ledger:
    """The log, played again: pods, where they ran, and what their budgets allowed at each moment."""

    zones: dict[str, str] = field(default_factory=dict)
    """Node to zone."""
    nodes: dict[tuple[str, str], str] = field(default_factory=dict)
    """Pod's name and resourceVersion to its node."""
    apps: dict[str, str] = field(default_factory=dict)
    on: dict[str, str] = field(default_factory=dict)
    ready: dict[str, bool] = field(default_factory=dict)
    budgets: dict[str, dict[str, int]] = field(default_factory=dict)
    overdrawn: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, world: ZoneWorld) -> Ledger:
        self = cls()
        for write in world.emulator.writes:
            match write.resource:
                case "nodes" if write.verb == "create":
                    self.zones[write.name] = write.body["metadata"]["labels"][ZONE_LABEL]
                case "pods":
                    self._pod(write)
                case "poddisruptionbudgets" if write.subresource == "status":
                    self.budgets[write.name] = dict(write.body["status"])
        return self

    def _pod(self, write: LoggedWrite) -> None:
        if write.subresource == "eviction":
            self.nodes[write.name, write.before] = self.on[write.name]
            if write.code == 201:
                self._spend(write)
            return
        status = write.body.get("status") or {} if isinstance(write.body, dict) else {}
        if write.verb == "create":
            self.on[write.name] = write.body["spec"]["nodeName"]
            self.apps[write.name] = write.body["metadata"]["labels"]["app"]
        if "conditions" in status:
            self.ready[write.name] = any(
                one["type"] == "Ready" and one["status"] == "True" for one in status["conditions"]
            )

    def _spend(self, write: LoggedWrite) -> None:
        budget = self.budgets.get(self.apps[write.name])
        if budget is None:
            return
        if not self.ready[write.name] and 0 < budget["desiredHealthy"] <= budget["currentHealthy"]:
            return  # it counts for nothing, and the others are enough
        if budget["disruptionsAllowed"] < 1:
            self.overdrawn.append(f"{write.name}: {budget}")
        budget["disruptionsAllowed"] -= 1
