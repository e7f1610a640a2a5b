"""Karmada's bindings, Clusters and policies as facts: pure, and total. What is odd or missing is simply not said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from pydantic import ValidationError

from bus.messages import Cluster, Health, Observation, Taint, Workload
from reactor.actions.karmada.tasks import copies, held_by_us
from reactor.clients.changes import ObjectKey, dict_of, list_of, metadata_of, strings_of, text_of
from reactor.clients.kubernetes_port import JsonObject
from reactor.clients.object_fields import MalformedField
from reactor.clients.quantities import quantity
from rules.kinds.workload.preservation import state_of
from rules.rulefile.targets import encode_segment

SIGNAL = "karmada"
STALE_SECONDS = 90.0  # as for every source, unless it says otherwise
REPLICAS_MAX = 1_000_000  # what a message takes
_READY = {"True": Health.HEALTHY, "False": Health.UNHEALTHY}
_POLICY = "propagationpolicy.karmada.io/"
_CLUSTER_POLICY = "clusterpropagationpolicy.karmada.io/"
_DETAIL = 500


class PolicyKey(NamedTuple):
    """A policy; without a namespace a ClusterPropagationPolicy."""

    namespace: str
    name: str


def policy_of(binding: JsonObject) -> PolicyKey | None:
    """Give the policy that governs a binding: Karmada notes it in annotations, older releases in labels."""
    metadata = metadata_of(binding)
    for notes in (strings_of(metadata.get("annotations")), strings_of(metadata.get("labels"))):
        if name := notes.get(f"{_POLICY}name"):
            return PolicyKey(notes.get(f"{_POLICY}namespace", ""), name)
        if name := notes.get(f"{_CLUSTER_POLICY}name"):
            return PolicyKey("", name)
    return None


def project_binding(found: JsonObject, preserved: Iterable[str] = ()) -> JsonObject:
    """Keep what is read: placements and member statuses can be large, and there are ten thousand bindings.

    `preserved`: JSONPaths into a copy's status whose values are kept.
    """
    paths = [*preserved]
    metadata, spec, status = metadata_of(found), dict_of(found.get("spec")), dict_of(found.get("status"))
    fields = ("resource", "replicas", "clusters", "gracefulEvictionTasks", "requiredBy")
    items = [
        {
            "clusterName": one.get("clusterName"),
            "health": one.get("health"),
            "state": state_of(paths, one.get("status")),
        }
        for one in list_of(status.get("aggregatedStatus"))
    ]
    return {
        "metadata": {
            key: metadata.get(key) for key in ("namespace", "name", "labels", "annotations", "uid", "resourceVersion")
        },
        "spec": {key: spec[key] for key in fields if key in spec},
        "status": {"aggregatedStatus": items},
    }


def workload_of(
    binding: JsonObject, policy: JsonObject | None, *, at: datetime, exists: bool = True
) -> Workload | None:
    """Give the workload that a binding is about, or None where that is no name of a workload."""
    spec = dict_of(binding.get("spec"))
    resource = dict_of(spec.get("resource"))
    told = list_of(dict_of(binding.get("status")).get("aggregatedStatus"))
    states = {text_of(one.get("clusterName")): strings_of(one.get("state")) for one in told if one.get("state")}
    placed = {text_of(one.get("name")): _count(one.get("replicas")) or 0 for one in list_of(spec.get("clusters"))}
    try:
        return Workload(
            namespace=text_of(resource.get("namespace")), kind=text_of(resource.get("kind")),
            name=text_of(resource.get("name")), api_version=text_of(resource.get("apiVersion")) or "v1",
            uid=text_of(resource.get("uid")), replicas=_count(spec.get("replicas")),
            clusters={key: count for key, count in placed.items() if key}, policy=policy, exists=exists, observed_at=at,
            states=states, evicting=tuple(sorted(held_by_us(spec))),
        )  # fmt: skip
    except ValidationError:
        return None


def health_of(binding: JsonObject, workload: Workload, *, at: datetime) -> Iterator[Observation]:
    """Give the health of each copy that should be there and of which Karmada has collected a status.

    A kind for which Karmada has no health rule is said to be Healthy by Karmada itself; what it could not tell is
    Unknown.
    """
    spec, status = dict_of(binding.get("spec")), dict_of(binding.get("status"))
    there = copies(spec)
    for item in list_of(status.get("aggregatedStatus")):
        cluster, health = text_of(item.get("clusterName")), item.get("health")
        if cluster in there:
            status_ = next((one for one in Health if one == health), Health.UNKNOWN)
            target = f"workload/{encode_segment(cluster)}/{workload.object}"
            try:
                yield _observation(target, status_, "", at)
            except ValidationError:
                continue


def cluster_of(found: JsonObject, *, at: datetime, exists: bool = True) -> Cluster | None:
    """Give a member cluster, or None where its name is none."""
    metadata, spec = metadata_of(found), dict_of(found.get("spec"))
    zones = spec.get("zones")
    zone = spec.get("zone") or (zones[0] if isinstance(zones, list) and zones else "")
    try:
        return Cluster(
            name=text_of(metadata.get("name")), labels=strings_of(metadata.get("labels")),
            region=text_of(spec.get("region")), zone=text_of(zone), provider=text_of(spec.get("provider")),
            available_replicas=_room(found), taints=tuple(_taints(spec)), exists=exists, observed_at=at,
        )  # fmt: skip
    except ValidationError:
        return None


def ready_of(found: JsonObject, name: str, *, at: datetime) -> Observation:
    """Give the health of the cluster of this name: its Ready condition; Unknown where it has none."""
    conditions = list_of(dict_of(found.get("status")).get("conditions"))
    ready = next((one for one in conditions if one.get("type") == "Ready"), {})
    words = ": ".join(filter(None, (text_of(ready.get("reason")), text_of(ready.get("message")))))
    health = _READY.get(str(ready.get("status")), Health.UNKNOWN)
    return _observation(f"cluster/{encode_segment(name)}", health, words, at)


def project_cluster(found: JsonObject) -> JsonObject:
    """Keep what is read: a Cluster lists every API that its members serve."""
    metadata, spec, status = metadata_of(found), dict_of(found.get("spec")), dict_of(found.get("status"))
    return {
        "metadata": {key: metadata.get(key) for key in ("name", "labels", "uid", "resourceVersion")},
        "spec": {key: spec.get(key) for key in ("region", "zone", "zones", "provider", "taints")},
        "status": {key: status.get(key) for key in ("conditions", "resourceSummary")},
    }


def project_policy(found: JsonObject) -> JsonObject:
    """Keep the labels, by which rules choose policies, and the spec."""
    metadata = metadata_of(found)
    return {
        "metadata": {key: metadata.get(key) for key in ("namespace", "name", "labels")},
        "spec": dict_of(found.get("spec")),
    }


def key_of_policy(key: ObjectKey) -> PolicyKey:
    """Give the key by which bindings name the policy."""
    return PolicyKey(key.namespace, key.name)


def _observation(target: str, status: Health, detail: str, at: datetime) -> Observation:
    return Observation(
        target=target, status=status, signal=SIGNAL, observed_at=at, stale_seconds=STALE_SECONDS,
        detail=" ".join(detail.split())[:_DETAIL],
    )  # fmt: skip


def _room(found: JsonObject) -> int | None:
    """Number of further pods for which there is room; None where the cluster does not say. Pods, as it is not known of
    which workload."""
    summary = dict_of(dict_of(found.get("status")).get("resourceSummary"))
    try:
        has = quantity(dict_of(summary.get("allocatable")).get("pods"))
        used = sum(quantity(dict_of(summary.get(part)).get("pods", 0)) for part in ("allocated", "allocating"))
    except MalformedField:
        return None
    return min(max(int(has - used), 0), REPLICAS_MAX)


def _taints(spec: Mapping[str, object]) -> Iterator[Taint]:
    for one in list_of(spec.get("taints")):
        added = _moment(one.get("timeAdded"))
        try:
            known = {"key": one.get("key"), "effect": one.get("effect"), "value": text_of(one.get("value"))}
            yield Taint.model_validate({**known, "timeAdded": added})
        except ValidationError:
            continue


def _moment(found: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(text_of(found))
    except ValueError:
        return None
    return at if at.tzinfo is not None else None


def _count(found: object) -> int | None:
    return min(max(found, 0), REPLICAS_MAX) if isinstance(found, int) and not isinstance(found, bool) else None
