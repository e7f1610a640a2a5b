"""The shop: an emulated cluster with TrafficSplits, and the truth about what was written to them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from reactor.demo.kube import EmulatedCluster, Emulator, JsonObject, LoggedWrite

MANAGER = "alert-reactor"
LABELS = {"team": "shop"}
WEIGHT = re.compile(r"/spec/backends/(\d+)/weight")


class Shop:
    """Namespace `shop` of cluster `east`."""

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator
        self.east: EmulatedCluster = emulator.cluster("east")
        self._first: dict[str, dict[str, int]] = {}

    def split(
        self, name: str, *secondaries: str, labels: Mapping[str, str] = LABELS, primary_annotation: bool = False
    ) -> None:
        """Create a TrafficSplit whose primary, a service of its own name, has all the traffic."""
        annotations = {"failover.linkerd.io/primary-service": name} if primary_annotation else {}
        self.odd_split(name, *secondaries, labels=labels, annotations=annotations)

    def odd_split(
        self, name: str, *secondaries: str, labels: Mapping[str, str] = LABELS, annotations: Mapping[str, str]
    ) -> None:
        """The same, with annotations of the test's own."""
        weights = {name: 1, **dict.fromkeys(secondaries, 0)}
        metadata = {"name": name, "namespace": "shop", "labels": dict(labels), "annotations": dict(annotations)}
        backends = [{"service": service, "weight": weight} for service, weight in weights.items()]
        self.east.create(
            {
                "apiVersion": "split.smi-spec.io/v1alpha2", "kind": "TrafficSplit", "metadata": metadata,
                "spec": {"service": f"{name}-apex", "backends": backends},
            }
        )  # fmt: skip
        self._first[name] = weights

    def splits(self, names: Iterable[str], *secondaries: str) -> None:
        """Create many."""
        for name in names:
            self.split(name, *secondaries)

    def endpoints(self, service: str, ready: int) -> float:
        """Let a service have this many ready endpoints of two; gives when that was, on the event loop's clock."""
        self.east.set_endpoints("shop", service, ready=ready, not_ready=2 - ready)
        return self.east.monotonic()

    def find(self, name: str) -> JsonObject | None:
        """Give a TrafficSplit, if it exists."""
        return self.east.find("trafficsplits", name, "shop")

    def writes(self, name: str = "") -> list[LoggedWrite]:
        """Writes of the reactor to one split, or to any, in the cluster's order."""
        ours = self.emulator.writes.effective("trafficsplits", manager=MANAGER)
        return [write for write in ours if name in ("", write.name)]

    def all_writes(self) -> list[LoggedWrite]:
        """Everything the reactor wrote to anything, effective or not."""
        return [write for write in self.emulator.writes if write.manager == MANAGER]

    def history(self, name: str) -> list[dict[str, int]]:
        """The weights after each of the reactor's writes, as the writes themselves tell it."""
        weights, told = dict(self._first[name]), []
        services = list(weights)
        for write in self.writes(name):
            for operation in write.body:
                if (found := WEIGHT.fullmatch(operation["path"])) and operation["op"] != "test":
                    weights[services[int(found[1])]] = operation["value"]
            told.append(dict(weights))
        return told

    def moves(self, name: str) -> list[str]:
        """The same in words: `away` from the primary, or `home`."""
        return ["home" if weights[name] else "away" for weights in self.history(name)]
